mod jobs;

use std::sync::Mutex;

use crow_core::{CallId, ToolArguments, ToolCall, ToolCallContent};
use expect_test::expect;
use serde_json::{Value, json};

use super::{Machine, check, show};
use crate::{BuiltinToolConfig, Shell, ToolProgress, ToolRegistry};

fn terminal(command: &str) -> (&'static str, Value) {
    ("terminal", json!({"command": command}))
}

#[tokio::test]
async fn commands_report_their_exit() {
    let calls = [
        terminal("pwd"),
        terminal("true"),
        terminal("echo out; echo err >&2; exit 3"),
        terminal("printf half; kill -15 $$"),
        ("terminal", json!({"command": "echo begun; sleep 1000", "timeout": 1})),
    ];
    check(
        |_| (),
        &calls,
        expect![[r#"
            > `pwd` Execute Runs("pwd")
            Completed: $DIR/project
            > `true` Execute Runs("true")
            Completed: (no output)
            > `echo out; echo err >&2; exit 3` Execute Runs("echo out; echo err >&2; exit 3")
            Failed: out
            err
            exit code 3
            > `printf half; kill -15 $$` Execute Runs("printf half; kill -15 $$")
            Failed: half
            ended by signal 15
            > `echo begun; sleep 1000` Execute Runs("echo begun; sleep 1000")
            Failed: begun
            stopped: it ran longer than 1 s
        "#]],
    )
    .await;
}

#[tokio::test]
async fn cwd_sets_another_directory() {
    let setup = |project: &std::path::Path| {
        std::fs::create_dir(project.join("sub dir")).unwrap();
        std::os::unix::fs::symlink("..", project.join("up")).unwrap();
        std::fs::write(project.join("file"), "").unwrap();
    };
    let within = |cwd: &str| ("terminal", json!({"command": "pwd", "cwd": cwd}));
    check(
        setup,
        &[
            within("sub dir"),
            within("."),
            within("up/project"),
            within("up"),
            within("/"),
            within("nowhere"),
            within("file"),
            ("terminal", json!({"command": "sleep 100; true", "dir": "sub dir", "timeout": 0.05})),
        ],
        expect![[r#"
            > `pwd` in sub dir Execute Runs("cd '$DIR/project/sub dir' && pwd")
            Completed: $DIR/project/sub dir
            > `pwd` Execute Runs("pwd")
            Completed: $DIR/project
            > `pwd` Execute Runs("pwd")
            Completed: $DIR/project
            > `pwd` in $DIR Execute Runs("cd $DIR && pwd")
            Completed: $DIR
            > `pwd` in / Execute Runs("cd / && pwd")
            Completed: /
            > `pwd` in nowhere Execute Runs("cd $DIR/project/nowhere && pwd")
            Failed: could not run the command: `cwd` nowhere cannot be used: there is no such directory
            > `pwd` in file Execute Runs("cd $DIR/project/file && pwd")
            Failed: could not run the command: `cwd` file cannot be used: it is not a directory
            > `sleep 100; true` in sub dir Execute Runs("cd '$DIR/project/sub dir' && sleep 100; true")
            Failed: stopped: it ran longer than 0.05 s
        "#]],
    )
    .await;
}

#[tokio::test]
async fn final_directory_is_reported() {
    check(
        |project| std::fs::create_dir_all(project.join("sub/deep")).unwrap(),
        &[
            terminal("cd sub && pwd"),
            terminal("cd sub/deep; false"),
            terminal("cd sub; cd .."),
            terminal("(cd sub); pwd"),
            terminal("cd sub && exit 3"),
            terminal("for name in sub deep; do cd $name; done"),
            terminal("echo cd; echo ] | cat"),
            terminal("cd nowhere 2>/dev/null"),
            ("terminal", json!({"command": "cd deep", "cwd": "sub"})),
        ],
        expect![[r#"
            > `cd sub && pwd` Execute Runs("cd sub && pwd")
            Completed: $DIR/project/sub
            (the command ended in $DIR/project/sub; the next one starts in $DIR/project unless `cwd` says otherwise)
            > `cd sub/deep; false` Execute Runs("cd sub/deep; false")
            Failed: exit code 1
            (the command ended in $DIR/project/sub/deep; the next one starts in $DIR/project unless `cwd` says otherwise)
            > `cd sub; cd ..` Execute Runs("cd sub; cd ..")
            Completed: (no output)
            > `(cd sub); pwd` Execute Runs("(cd sub); pwd")
            Completed: $DIR/project
            > `cd sub && exit 3` Execute Runs("cd sub && exit 3")
            Failed: exit code 3
            (the command ended in $DIR/project/sub; the next one starts in $DIR/project unless `cwd` says otherwise)
            > `for name in sub deep; do cd $name; done` Execute Runs("for name in sub deep; do cd $name; done")
            Completed: (no output)
            (the command ended in $DIR/project/sub/deep; the next one starts in $DIR/project unless `cwd` says otherwise)
            > `echo cd; echo ] | cat` Execute Runs("echo cd; echo ] | cat")
            Completed: cd
            ]
            > `cd nowhere 2>/dev/null` Execute Runs("cd nowhere 2>/dev/null")
            Failed: exit code 2
            > `cd deep` in sub Execute Runs("cd $DIR/project/sub && cd deep")
            Completed: (no output)
            (the command ended in $DIR/project/sub/deep; the next one starts in $DIR/project unless `cwd` says otherwise)
        "#]],
    )
    .await;
}

#[tokio::test]
async fn bash_runs_commands_without_startup_files() {
    let mut machine = Machine::new(|_| ());
    let shell = Shell::new("bash", "/bin/bash").unwrap();
    machine.tools =
        ToolRegistry::with_builtin_tools(BuiltinToolConfig { shell, ..BuiltinToolConfig::default() });
    let calls = [
        "[[ a == a ]] && echo {a,b}; set -o pipefail; cat <(echo c)",
        "shopt -q login_shell || echo no login",
        "cd / && pushd /tmp >/dev/null; pwd",
    ];
    let mut said = String::new();
    for command in calls {
        said += &machine.call("terminal", json!({"command": command})).await;
    }
    expect![[r#"
        > `[[ a == a ]] && echo {a,b}; set -o pipefail; cat <(echo c)` Execute Runs("[[ a == a ]] && echo {a,b}; set -o pipefail; cat <(echo c)")
        Completed: a b
        c
        > `shopt -q login_shell || echo no login` Execute Runs("shopt -q login_shell || echo no login")
        Completed: no login
        > `cd / && pushd /tmp >/dev/null; pwd` Execute Runs("cd / && pushd /tmp >/dev/null; pwd")
        Completed: /tmp
        (the command ended in /tmp; the next one starts in $DIR/project unless `cwd` says otherwise)
    "#]].assert_eq(&said);
    let spec = machine.tools.tool_specs().into_iter().find(|spec| spec.name == "terminal").unwrap();
    assert!(spec.description.starts_with("Runs a command with bash in"), "{}", spec.description);
}

#[tokio::test]
async fn title_is_one_line() {
    check(
        |_| (),
        &[terminal("# count\n# to three\nseq 3")],
        expect![[r##"
            > `# count…` Execute Runs("# count\n# to three\nseq 3")
            Completed: 1
            2
            3
        "##]],
    )
    .await;
}

#[tokio::test]
async fn commands_get_no_input_and_no_secrets() {
    check(|_| (), &[terminal("cat; echo ${CARGO_MANIFEST_DIR-hidden} ${CARGO_PKG_NAME}")], expect![[r#"
        > `cat; echo ${CARGO_MANIFEST_DIR-hidden} ${CARGO_PKG_NAME}` Execute Runs("cat; echo ${CARGO_MANIFEST_DIR-hidden} ${CARGO_PKG_NAME}")
        Completed: hidden crow-tools
    "#]]).await;
}

#[tokio::test]
async fn output_that_is_long_goes_to_a_file() {
    let machine = Machine::new(|_| ());
    let said = machine.call("terminal", json!({"command": "seq 1 100000"})).await;
    assert!(said.len() < 40_000);
    let (_, path) = said.trim_end().rsplit_once("(all of the output is in $DIR/").unwrap();
    let whole = std::fs::read_to_string(machine.dir.path().join(path.trim_end_matches(')'))).unwrap();
    assert_eq!((whole.lines().count(), whole.lines().last()), (100_000, Some("100000")));
}

#[tokio::test]
async fn cancelled_command_returns_its_output() {
    let machine = Machine::new(|_| ());
    let shown = Mutex::new(Vec::new());
    let progress = |progress: ToolProgress| {
        let ToolProgress::Content(contents) = progress else { panic!("{progress:?}") };
        shown.lock().unwrap().extend(contents);
        machine.cancel.cancel();
    };
    let arguments =
        ToolArguments::Valid(json!({"command": "echo begun; sleep 1000"}).as_object().unwrap().clone());
    let call = ToolCall {
        id: CallId::from_position(1, 0),
        provider_id: "1".into(),
        name: "terminal".into(),
        arguments,
    };
    let result = machine.tools.run_call(&call, machine.cx(&progress)).await;
    expect![[r#"
        Failed: begun
        stopped: the turn was cancelled
    "#]]
    .assert_eq(&show(&result));
    assert_eq!(*shown.lock().unwrap(), [ToolCallContent::Text("begun\n".into())]);
    assert_eq!(machine.tools.count_programs(), 0);
}
