//! One process of a chain is killed: all of its processes end, and its parent is told, at once or later.

use std::fs;

use expect_test::{Expect, expect};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{AUTO, Stage, binary, leashed_call, run};

const GAMMA: &str = "text \"Gamma wakes.\"";

/// Three levels, the deepest of which runs the tracked command.
async fn chain() -> (Stage, u64) {
    let script = "call task {\"prompt\":\"ALPHA\"}\ntext \"Alpha told me.\"";
    let mut stage = Stage::start(&[AUTO, "agents: { max_depth: 3 }"], script).await;
    stage.server.add_answers_for("ALPHA", "call task {\"prompt\":\"BETA\"}\ntext \"Beta told me.\"");
    stage.server.add_answers_for("BETA", "call task {\"prompt\":\"GAMMA\"}\ntext \"Gamma told me.\"");
    stage.server.add_answers_for("GAMMA", leashed_call().as_str());
    stage.server.add_answers_for("GAMMA", GAMMA);
    let id = stage.client.prompt(&stage.session, "go").await;
    stage.leashed().await;
    (stage, id)
}

/// Finds the agents at a depth below a process.
pub(super) fn agents_at(root: u32, depth: u32) -> Vec<Pid> {
    let holds = |file: &str, pid: u32, word: &[u8]| {
        let text = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        text.split(|&byte| byte == 0).any(|other| other == word)
    };
    let (mut below, mut found) = (vec![(root, 0)], Vec::new());
    while let Some((pid, at)) = below.pop() {
        let is_agent = fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == binary())
            && holds("cmdline", pid, b"acp")
            && !holds("cmdline", pid, b"sandbox-exec");
        if is_agent && at == depth {
            found.push(Pid::from_raw(i32::try_from(pid).expect("a pid")));
        }
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        let next = at + u32::from(is_agent);
        below.extend(children.split_whitespace().filter_map(|child| Some((child.parse().ok()?, next))));
    }
    found
}

/// Kills the agent at a depth; returns the final report to the root's model.
#[track_caller]
fn check(depth: u32, report: &Expect) {
    let told = run(async {
        let (mut stage, id) = chain().await;
        let found = agents_at(stage.client.pid(), depth);
        kill(*found.first().expect("one stands there"), Signal::SIGKILL).expect("it can be killed");
        assert_eq!(stage.end_of(id).await, "end_turn");
        stage.clean("an agent was killed").await;
        stage.told("go")
    });
    report.assert_eq(&told);
}

#[test]
fn child_of_the_root_is_killed() {
    check(
        1,
        &expect![[r#"
            Task $TASK (ALPHA) failed: the agent has disconnected. It was ended by signal 9.

            It said nothing.

            The whole of it: query_session with session_id $TASK. To go on with it: task_send.
        "#]],
    );
}

#[test]
fn middle_child_is_killed() {
    check(
        2,
        &expect![[r#"
        Task $TASK (ALPHA) is done.

        Beta told me.

        The whole of it: query_session with session_id $TASK. To go on with it: task_send.
    "#]],
    );
}

#[test]
fn deepest_child_is_killed() {
    check(
        3,
        &expect![[r#"
        Task $TASK (ALPHA) is done.

        Beta told me.

        The whole of it: query_session with session_id $TASK. To go on with it: task_send.
    "#]],
    );
}

#[test]
fn root_is_killed() {
    run(async {
        let (mut stage, _) = chain().await;
        stage.client.crash().await;
        stage.leash.wait_until_gone("the root was killed").await;
        stage.client = stage.elsewhere().await;
        stage.client.wait_for_line("The model gets the result").await;
        stage.server.replace_answers("text \"It was lost.\"");
        assert_eq!(stage.say("and now?").await, "end_turn");
        expect![[r#"
            < prompt[msg-0] go
            < call call-1-0 task "Task: ALPHA" failed {"prompt":"ALPHA"} "its result is unknown: Crow exited, or could not store it, while this call was running"
            < notice warning "A task ended while this session was closed. The model gets the result with your next prompt." ""
            < prompt[msg-3] Task $TASK (ALPHA) was lost: Crow exited while it was running.⏎⏎Its messages until then: query_session with session_id $TASK. To go on with it: task_send.⏎
            < text[msg-4] It was lost.
            < title go
        "#]].assert_eq(&stage.hidden(&stage.client.log()));
        expect![[r#"
            and now?
            Task $TASK (ALPHA) was lost: Crow exited while it was running.

            Its messages until then: query_session with session_id $TASK. To go on with it: task_send.
        "#]]
        .assert_eq(&stage.told("go"));
        let tree = super::crow(&stage, &["inspect", "-s", &stage.session, "--tree"]).await;
        // A child that reads the end of its input before it is killed cancels its own turn.
        let tree = tree.replace(" 3 scripted", " 2 scripted").replace("cancelled,", "lost,");
        expect![[r#"
            SESSION UPDATED MESSAGES MODEL TITLE TASK COPY OF
            $TASK just now 5 scripted go
            └ $TASK just now 2 scripted ALPHA crow: lost, 1 turn, 0 tokens
            └ $TASK just now 2 scripted BETA crow: lost, 1 turn, 0 tokens
            └ $TASK just now 2 scripted GAMMA crow: lost, 1 turn, 0 tokens
        "#]]
        .assert_eq(&tree);
        // It is reported once.
        stage.client = stage.elsewhere().await;
        stage.server.replace_answers("text \"Nothing new.\"");
        assert_eq!(stage.say("anything else?").await, "end_turn");
        assert_eq!(stage.told("go"), "anything else?");
        stage.clean("the root was killed").await;
    });
}
