//! Hooks with real commands in a real directory.

use std::time::Duration;

use crow_core::{HookConfig, HookDecision, HookEvent, HookMatcher};
use expect_test::{Expect, expect};

use super::Machine;

/// Far longer than any step of a test; only reached if something hangs.
const STUCK: Duration = Duration::from_secs(30);

const TOLD: &str = "{\"tool_name\":\"terminal\"}\n";

fn hook(command: &str, timeout: Duration) -> HookConfig {
    HookConfig {
        event: HookEvent::PreToolUse,
        matcher: HookMatcher::default(),
        command: command.to_owned(),
        timeout,
    }
}

async fn run(machine: &Machine, hook: &HookConfig) -> Option<HookDecision> {
    machine.tools.run_hook(hook, TOLD, &machine.workspace, &machine.cancel).await
}

/// Runs a command as a hook before a tool and compares its decision.
async fn check(command: &str, expect: Expect) {
    let machine = Machine::new(|project| std::fs::write(project.join("here"), "").unwrap());
    let said = format!("{:?}", run(&machine, &hook(command, STUCK)).await);
    let outside = machine.dir.path().canonicalize().unwrap().display().to_string();
    expect.assert_eq(&said.replace(&outside, "$DIR"));
    assert_eq!(machine.tools.count_programs(), 0);
}

#[tokio::test]
async fn hook_reads_its_input() {
    check(
        "grep -q '\"tool_name\":\"terminal\"' && echo 'no terminal' >&2 && exit 2",
        expect![[r#"Some(Block("no terminal"))"#]],
    )
    .await;
    check("cat", expect!["Some(NoDecision)"]).await;
}

#[tokio::test]
async fn hook_runs_in_the_session_without_the_keys() {
    let script = "ls >&2; echo $CROW_PROJECT_DIR ${CARGO_MANIFEST_DIR:-no key} >&2; exit 2";
    check(script, expect![[r#"Some(Block("here\n$DIR/project no key"))"#]]).await;
}

#[tokio::test]
async fn hook_answers_in_json() {
    check(r#"printf '{"decision":"block","reason":"not now"}'"#, expect![[r#"Some(Block("not now"))"#]])
        .await;
    check(r#"echo '{"context":"tabs"}'; echo chatter >&2"#, expect![[r#"Some(Context("tabs"))"#]]).await;
    check(
        r#"echo '{"decision":'"#,
        expect![[r#"Some(Failed("its answer is not JSON: EOF while parsing a value at line 1 column 12"))"#]],
    )
    .await;
}

#[tokio::test]
async fn hook_that_does_not_start_fails() {
    check("./no-such-script 2> /dev/null", expect![[r#"Some(Failed("it exited with code 127"))"#]]).await;
    check("echo sorry >&2; exit 1", expect![[r#"Some(Failed("it exited with code 1: sorry"))"#]]).await;
    check("kill -9 $$", expect![[r#"Some(Failed("it was ended by signal 9"))"#]]).await;
}

#[tokio::test]
async fn unread_input_is_no_failure() {
    let told = "x".repeat(1_000_000);
    let machine = Machine::new(|_| ());
    let deaf = hook("exec <&-", STUCK);
    let said = machine.tools.run_hook(&deaf, &told, &machine.workspace, &machine.cancel).await;
    assert_eq!(said, Some(HookDecision::NoDecision));
}

#[tokio::test]
async fn output_beyond_the_limit_is_no_decision() {
    check("yes | head -c 1000000", expect!["Some(NoDecision)"]).await;
    let script = r#"printf '{"context":"'; yes | head -c 1000000 | tr -d "\n"; printf '"}'"#;
    check(script, expect![[r#"Some(Failed("its answer is not JSON: control character (\\u0000-\\u001F) found while parsing a string at line 2 column 0"))"#]]).await;
}

#[tokio::test]
async fn hook_that_hangs_times_out() {
    let machine = Machine::new(|_| ());
    let said = run(&machine, &hook("sleep 1000", Duration::from_secs(1))).await;
    expect![[r#"Some(Failed("it exceeded its timeout of 1 s"))"#]].assert_eq(&format!("{said:?}"));
    assert_eq!(machine.tools.count_programs(), 0);
}

#[tokio::test]
async fn processes_of_a_hook_do_not_delay_it() {
    check("sleep 1000 & echo '{\"reason\":\"quick\"}'", expect![[r#"Some(Block("quick"))"#]]).await;
    check("setsid sleep 1 & echo '{\"reason\":\"quick\"}'", expect![[r#"Some(Block("quick"))"#]]).await;
}

#[tokio::test]
async fn hook_that_is_cancelled_has_no_decision() {
    let machine = Machine::new(|_| ());
    let cut_once_it_runs = async {
        let mut tick = tokio::time::interval(Duration::from_millis(5));
        while machine.tools.count_programs() == 0 {
            tick.tick().await;
        }
        machine.cancel.cancel();
    };
    let hook = hook("sleep 1000", STUCK);
    let (said, ()) = tokio::join!(run(&machine, &hook), cut_once_it_runs);
    assert_eq!(said, None);
    assert_eq!(run(&machine, &hook).await, None);
    assert_eq!(machine.tools.count_programs(), 0);
}

#[tokio::test]
async fn missing_directory_fails_the_hook() {
    let machine = Machine::new(|project| std::fs::remove_dir_all(project).unwrap());
    let said = format!("{:?}", run(&machine, &hook("true", STUCK)).await);
    let outside = machine.dir.path().canonicalize().unwrap().display().to_string();
    expect![[r#"Some(Failed("it could not be started: there is no directory $DIR/project"))"#]]
        .assert_eq(&said.replace(&outside, "$DIR"));
}
