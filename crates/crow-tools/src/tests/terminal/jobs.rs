use std::time::{Duration, Instant};

use crow_core::{CallId, Confinement, ToolArguments, ToolCall};
use expect_test::expect;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::super::{Machine, check, show};
use crate::{BuiltinToolConfig, ToolCx, ToolRegistry, Workspace};

/// Far longer than any step of a test; only reached if something hangs.
const STUCK: Duration = Duration::from_secs(60);

/// Reads a job until it printed a text; returns all output and the last line with its state.
async fn until(machine: &Machine, text: &str) -> String {
    let began = Instant::now();
    let mut said = String::new();
    loop {
        let call = json!({"command": "", "is_input": true});
        let heard = machine.call("terminal", call).await;
        let (_, heard) = heard.split_once('\n').unwrap();
        said += heard.trim_start_matches("Completed: ").trim_start_matches("(nothing new)\n");
        if said.contains(text) {
            return said;
        }
        said = said.replace("job-1 is running\n", "");
        assert!(began.elapsed() < STUCK, "it said only {said:?}");
    }
}

async fn start(machine: &Machine, command: &str) -> String {
    machine.call("terminal", json!({"command": command, "background": true})).await
}

async fn kind(machine: &Machine, text: &str) -> String {
    machine.call("terminal", json!({"command": text, "is_input": true})).await
}

#[tokio::test]
async fn job_is_started_read_typed_to_and_ended() {
    let machine = Machine::new(|_| ());
    let begun = start(&machine, "echo up; read name; echo \"hello $name\"; sleep 1000").await;
    expect![[r#"
        > `echo up; read name; echo "hello $name"; sleep 1000` in the background Execute Runs("echo up; read name; echo \"hello $name\"; sleep 1000")
        Completed: up
        job-1 is running; with is_input=true it is read (command empty) or typed to, with reset=true it is ended
    "#]]
    .assert_eq(&begun);
    let typed = kind(&machine, "crow").await;
    assert!(typed.starts_with("> job-1 ← crow Execute Runs(\"crow\")\nCompleted: crow\n"), "{typed}");
    let said = if typed.contains("hello") { typed } else { until(&machine, "hello").await };
    assert!(said.ends_with("hello crow\njob-1 is running\n"), "{said}");
    let ended = machine.call("terminal", json!({"command": "", "reset": true, "job": "job-1"})).await;
    expect![[r#"
        > End job-1 Execute Nothing
        Completed: ended job-1 `echo up; read name; echo "hello $name"; sleep 1000`
    "#]]
    .assert_eq(&ended);
    assert_eq!(machine.tools.count_programs(), 0);
}

#[tokio::test]
async fn shell_becomes_a_job_and_exits_on_request() {
    let machine = Machine::new(|_| ());
    let begun = machine.call("terminal", json!({"command": "PS1='> ' sh"})).await;
    assert!(begun.contains("\njob-1 is running; "), "{begun}");
    let mut said = kind(&machine, "echo $((6 * 7)) $TERM $PAGER ${CARGO_MANIFEST_DIR-hidden}").await;
    if !said.contains("42 dumb") {
        said = until(&machine, "42 dumb").await;
    }
    assert!(said.contains("42 dumb cat hidden\n"), "{said}");
    let mut said = kind(&machine, "exit 3").await;
    if !said.contains("is over") {
        said = machine.call("terminal", json!({"command": "", "is_input": true, "timeout": 60})).await;
    }
    assert!(said.contains("Failed: ") && said.ends_with("job-1 is over: exit code 3\n"), "{said}");
    let again = machine.call("terminal", json!({"command": "", "is_input": true})).await;
    expect![[r#"
        > Read job-1 Execute Nothing
        Failed: (nothing new)
        job-1 is over: exit code 3
    "#]]
    .assert_eq(&again);
}

#[tokio::test]
async fn command_that_ends_at_once_is_no_job() {
    let machine = Machine::new(|_| ());
    let said = start(&machine, "tty > /dev/null && echo hi").await;
    assert!(said.ends_with("Completed: hi\n"), "{said}");
    let said = start(&machine, "echo no; exit 4").await;
    assert!(said.ends_with("Failed: no\nexit code 4\n"), "{said}");
    let said = kind(&machine, "x").await;
    assert!(said.contains("there is no job in this session"), "{said}");
}

fn hasty() -> Machine {
    let machine = Machine::new(|_| ());
    let config = BuiltinToolConfig {
        spill_dir: machine.dir.path().to_owned(),
        soft_limit: Some(Duration::from_secs(1)),
        ..BuiltinToolConfig::default()
    };
    Machine { tools: ToolRegistry::with_builtin_tools(config), ..machine }
}

#[tokio::test]
async fn command_beyond_the_soft_limit_becomes_a_job() {
    let machine = hasty();
    let said = machine.call("terminal", json!({"command": "echo begun; sleep 1000"})).await;
    let (_, said) = said.split_once('\n').unwrap();
    expect![[r#"
        Completed: begun
        not done after 1 s, it continues as job-1; with is_input=true it is read (command empty) or typed to, with reset=true it is ended
    "#]]
    .assert_eq(said);
    let refused = kind(&machine, "go").await;
    assert!(
        refused.contains("Failed: nothing can be typed to job-1: it was not started in the background"),
        "{refused}"
    );
    let ended = kind(&machine, "C-c").await;
    let (_, ended) = ended.split_once('\n').unwrap();
    assert_eq!(ended, "Failed: (nothing new)\njob-1 is over: ended by signal 2\n");
    assert_eq!(machine.tools.count_programs(), 0);
}

#[tokio::test]
async fn job_end_is_reported_with_the_next_call() {
    let machine = Machine::new(|_| ());
    start(&machine, "echo up; while [ ! -e go ]; do sleep 0.02; done; echo bye").await;
    // Not by a call, which might report the end itself.
    std::fs::write(machine.path("go"), "").unwrap();
    let began = Instant::now();
    let told = loop {
        let said = machine.call("terminal", json!({"command": "echo well"})).await;
        if said.contains("job-1") {
            break said;
        }
        assert!(began.elapsed() < STUCK, "{said}");
    };
    let told = told.split_once('\n').unwrap().1;
    expect![[r#"
        Completed: well
        (job-1 `echo up; while [ ! -e go ]; do sleep 0.02; done; echo bye` is over: exit code 0; its remaining output can be read with is_input)
    "#]]
    .assert_eq(told);
    let said = machine.call("terminal", json!({"command": "echo well"})).await;
    assert!(said.ends_with("Completed: well\n"), "{said}");
    let said = machine.call("terminal", json!({"command": "", "is_input": true})).await;
    assert!(said.ends_with("Completed: bye\njob-1 is over: exit code 0\n"), "{said}");
}

#[tokio::test]
async fn jobs_and_variables_outlive_a_change_of_directories() {
    let machine = Machine::new(|_| ());
    let Machine { tools, workspace, dir, cancel } = machine;
    let variables = vec![("FEATURE".to_owned(), "001".to_owned())];
    workspace.set_variables(variables.clone());
    let moved = Workspace::new(dir.path().to_owned(), &[], Vec::new()).with_state_of(&workspace);
    assert_eq!(moved.variables(), variables);
    let machine = Machine { tools, workspace, dir, cancel };
    start(&machine, "echo up; sleep 1000").await;
    assert_eq!(machine.tools.count_programs(), 1);
    let Machine { tools, workspace, .. } = machine;
    drop(workspace);
    assert_eq!(tools.count_programs(), 1, "the session goes on elsewhere");
    drop(moved);
    let began = Instant::now();
    while tools.count_programs() > 0 {
        assert!(began.elapsed() < STUCK);
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn jobs_end_with_everything() {
    let machine = Machine::new(|_| ());
    start(&machine, "echo up; sleep 1000").await;
    machine.tools.stop_programs();
    let said = machine.call("terminal", json!({"command": "", "is_input": true, "timeout": 60})).await;
    assert!(said.ends_with("job-1 is over: ended by signal 9\n"), "{said}");
}

#[tokio::test]
async fn cancelled_turn_leaves_its_job_running() {
    let machine = Machine::new(|_| ());
    start(&machine, "echo up; sleep 1000").await;
    let cancel = CancellationToken::new();
    let cx = ToolCx { cancel: &cancel, ..machine.cx(&|_| ()) };
    let call = call(&json!({"command": "", "is_input": true, "timeout": 60}));
    let (result, ()) = tokio::join!(machine.tools.run_call(&call, cx), async { cancel.cancel() });
    expect![[r#"
        Failed: (nothing new)
        job-1 is running
        stopped: the turn was cancelled
    "#]]
    .assert_eq(&show(&result));
    assert_eq!(machine.tools.count_programs(), 1);
}

fn call(arguments: &Value) -> ToolCall {
    let arguments = ToolArguments::Valid(arguments.as_object().unwrap().clone());
    ToolCall { id: CallId::from_position(1, 0), provider_id: "1".into(), name: "terminal".into(), arguments }
}

#[tokio::test]
async fn jobs_are_limited() {
    let machine = Machine::new(|_| ());
    for _ in 0..16 {
        start(&machine, "echo up; sleep 1000").await;
    }
    let said = start(&machine, "echo up; sleep 1000").await;
    assert!(said.contains("Failed: not started: 16 jobs are running"), "{said}");
    let said = machine.call("terminal", json!({"reset": true, "job": "job-7", "command": "echo next"})).await;
    assert!(said.ends_with("Completed: ended job-7 `echo up; sleep 1000`\nnext\n"), "{said}");
    let said = start(&machine, "echo up; sleep 1000").await;
    assert!(said.contains("job-17 is running"), "{said}");
    let said = machine.call("terminal", json!({"reset": true, "command": ""})).await;
    assert_eq!(said.lines().count(), 17, "{said}");
    assert_eq!(machine.tools.count_programs(), 0);
}

#[tokio::test]
async fn job_that_was_not_read_outlives_those_that_were() {
    let machine = Machine::new(|_| ());
    let until_there =
        |name: &str, after: &str| format!("echo up; while [ ! -e {name} ]; do sleep 0.02; done; {after}");
    start(&machine, &until_there("go", "echo failed; exit 5")).await;
    for _ in 1..16 {
        start(&machine, &until_there("short", "true")).await;
    }
    std::fs::write(machine.path("short"), "").unwrap();
    for number in 2..=16 {
        let call = json!({"is_input": true, "job": format!("job-{number}"), "timeout": 60});
        let said = machine.call("terminal", call).await;
        assert!(said.contains("is over: exit code 0"), "{said}");
    }
    std::fs::write(machine.path("go"), "").unwrap();
    let began = Instant::now();
    while machine.workspace.has_running_jobs() {
        assert!(began.elapsed() < STUCK);
        tokio::task::yield_now().await;
    }
    let said = start(&machine, "echo up; sleep 1000").await;
    assert!(said.contains("job-17 is running") && said.contains("is over: exit code 5"), "{said}");
    let said = machine.call("terminal", json!({"is_input": true, "job": "job-1"})).await;
    assert!(said.ends_with("Failed: failed\njob-1 is over: exit code 5\n"), "{said}");
}

#[tokio::test]
async fn input_with_fewer_rights_than_the_job_is_rejected() {
    let machine = Machine::new(|_| ());
    start(&machine, "echo up; cat").await;
    let cx = ToolCx { confinement: Confinement::Project, ..machine.cx(&|_| ()) };
    let result = machine.tools.run_call(&call(&json!({"command": "rm x", "is_input": true})), cx).await;
    assert!(show(&result).contains("not typed: job-1 was started with more rights"), "{result:?}");
    let result =
        machine.tools.run_call(&call(&json!({"command": "C-c", "is_input": true, "timeout": 60})), cx).await;
    assert!(show(&result).ends_with("job-1 is over: ended by signal 2\n"), "{result:?}");
}

#[tokio::test]
async fn jobs_of_another_session_are_not_visible() {
    let machine = Machine::new(|_| ());
    start(&machine, "echo up; sleep 1000").await;
    let other = Workspace::new(machine.workspace.cwd().to_owned(), &[], Vec::new());
    let cx = ToolCx { workspace: &other, ..machine.cx(&|_| ()) };
    let result = machine.tools.run_call(&call(&json!({"reset": true, "job": "job-1"})), cx).await;
    assert!(show(&result).contains("there is no job `job-1` in this session. There are none."), "{result:?}");
    let result = machine.tools.run_call(&call(&json!({"reset": true})), cx).await;
    assert!(show(&result).contains("there was no job to end"), "{result:?}");
    assert_eq!(machine.tools.count_programs(), 1);
}

#[tokio::test]
async fn invalid_calls_are_rejected() {
    let calls = [
        json!({"reset": true}),
        json!({"command": "x", "is_input": true}),
        json!({"command": "", "is_input": true, "job": "job-9"}),
        json!({"command": "ls", "timeout": -1}),
        json!({"command": "C-c", "is_input": true}),
        json!({"command": "Enter", "is_input": true, "job": "../x\ny"}),
        json!({"command": 7, "background": "yes"}),
    ];
    let calls: Vec<_> = calls.into_iter().map(|call| ("terminal", call)).collect();
    check(
        |_| (),
        &calls,
        expect![[r#"
            > End all jobs Execute Nothing
            Completed: there was no job to end
            > job ← x Execute Runs("x")
            Failed: there is no job in this session; background=true starts one
            > Read job-9 Execute Nothing
            Failed: there is no job `job-9` in this session. There are none.
            > terminal Execute Nothing
            Failed: `terminal` was not run: `timeout` must be at least 0, not -1
            > job ← C-c Execute Nothing
            Failed: there is no job in this session; background=true starts one
            > ../x… Execute Runs("Enter")
            Failed: there is no job `../x
            y` in this session. There are none.
            > terminal Execute Nothing
            Failed: `terminal` was not run: `background` must be true or false, not the string "yes"
        "#]],
    )
    .await;
}
