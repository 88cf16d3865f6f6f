//! Agents that violate the protocol, hang or die: the parent gets the reason and continues, and no process is left.

use expect_test::{Expect, expect};
use serde_json::json;

use super::{ASKS, AUTO, PATIENCE, Stage, other_agent, run};

const GIVES_IT: &str = r#"
    call task {"prompt":"hello","agent":"other","title":"greet"}
    text "Then not."
"#;

/// Runs an agent that behaves as specified to its end; returns the report to the model.
#[track_caller]
fn check(words: &[&str], report: &Expect) {
    let told = run(async {
        let mut stage = Stage::start(&[AUTO, &other_agent(words)], GIVES_IT).await;
        told(&mut stage, words).await
    });
    report.assert_eq(&told);
}

async fn told(stage: &mut Stage, words: &[&str]) -> String {
    assert_eq!(stage.say("go").await, "end_turn");
    stage.clean(&format!("{words:?}")).await;
    stage.told("go")
}

/// The client's way to stop a running task.
#[derive(Clone, Copy, PartialEq)]
enum Stop {
    Cancel,
    Close,
}

/// Cancels the turn while such an agent works.
#[track_caller]
fn check_cancelled(words: &[&str], seen: &str) {
    check_stopped(words, seen, Stop::Cancel);
}

/// Stops such an agent at work, and continues the session.
#[track_caller]
fn check_stopped(words: &[&str], seen: &str, stop: Stop) {
    run(async {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let mut leash = crow_testkit::tracked_command::TrackedCommand::new(folder.path());
        let spawns = format!("spawns={}", folder.path().display());
        let words: Vec<&str> = words.iter().copied().chain([spawns.as_str()]).collect();
        let mut stage = Stage::start(&[AUTO, &other_agent(&words)], GIVES_IT).await;
        let id = stage.client.prompt(&stage.session, "go").await;
        stage.client.wait_for_line(seen).await;
        assert!(leash.is_running());
        match stop {
            Stop::Cancel => stage.cancel().await,
            Stop::Close => {
                let closed = stage.client.request("session/close", json!({"sessionId": stage.session})).await;
                closed.expect("it closes");
            }
        }
        assert_eq!(stage.end_of(id).await, "cancelled");
        if stop == Stop::Close {
            stage.client = stage.elsewhere().await;
        }
        if words.contains(&"deaf") || words.contains(&"unread") {
            leash.wait_until_gone(&format!("{words:?}")).await;
        }
        stage.server.replace_answers("text \"Here I am.\"");
        assert_eq!(stage.say("once more").await, "end_turn");
        stage.clean(&format!("{words:?}")).await;
        // A child that obeys may get another prompt, so it stays until its parent exits.
        stage.client.close_stdin().await;
        leash.wait_until_gone(&format!("{words:?}, at the end")).await;
    });
}

#[test]
fn missing_agent_program_fails_the_task() {
    let told = run(async {
        let agents = r#"agent_servers: { other: { command: /nowhere/agent } }"#;
        let mut stage = Stage::start(&[AUTO, agents], GIVES_IT).await;
        told(&mut stage, &["not there"]).await
    });
    expect![[r#"
        Task $TASK (other, greet) failed: the agent has disconnected. It ended with exit code 127.
        The end of its stderr:
        crow-cli sandbox-exec: there is no program /nowhere/agent

        It said nothing.

        Its agent opened no session, so it cannot go on; start a new task.
    "#]]
    .assert_eq(&told);
}

#[test]
fn agent_that_exits_at_once_fails_the_task() {
    check(
        &["broken"],
        &expect![[r#"
            Task $TASK (other, greet) failed: the agent has disconnected. It ended with exit code 3.
            The end of its stderr:
            cannot find the frobnicator

            It said nothing.

            Its agent opened no session, so it cannot go on; start a new task.
        "#]],
    );
}

#[test]
fn agent_that_requires_a_login_fails_the_task() {
    check(
        &["locked"],
        &expect![[r#"
            Task $TASK (other, greet) failed: Authentication required.

            It said nothing.

            Its agent opened no session, so it cannot go on; start a new task.
        "#]],
    );
}

#[test]
fn agent_with_another_protocol_version_fails_the_task() {
    check(
        &["version=7"],
        &expect![[r#"
            Task $TASK (other, greet) failed: Invalid request: unsupported ACP protocol version 7; this endpoint only supports ACP protocol version 1.

            It said nothing.

            Its agent opened no session, so it cannot go on; start a new task.
        "#]],
    );
}

#[test]
fn agent_that_answers_with_an_error_fails_the_task() {
    check(
        &["fails"],
        &expect![[r#"
            Task $TASK (other, greet) failed: no fuel.

            echo: hello

            It changed 1 file with its tools (+1 -1):
              $HOME/project/notes.txt (+1 -1)

            The whole of it: query_session with session_id $TASK. To go on with it: task_send.
        "#]],
    );
}

#[test]
fn agent_that_dies_fails_the_task() {
    check(
        &["dies"],
        &expect![[r#"
            Task $TASK (other, greet) failed: the agent has disconnected. It ended with exit code 9.
            The end of its stderr:
            the wings fell off

            echo:

            The whole of it: query_session with session_id $TASK. To go on with it: task_send.
        "#]],
    );
}

#[test]
fn agent_that_prints_garbage_is_tolerated() {
    check(
        &["garbage", "noisy"],
        &expect![[r#"
            Task $TASK (other, greet) is done.

            echo: hello

            It changed 1 file with its tools (+1 -1):
              $HOME/project/notes.txt (+1 -1)

            The whole of it: query_session with session_id $TASK. To go on with it: task_send.
        "#]],
    );
}

#[test]
fn agent_without_the_requested_model_fails_the_task() {
    let told = run(async {
        let script = r#"
            call task {"prompt":"hello","agent":"other","model":"huge"}
            text "Then not."
        "#;
        let mut stage = Stage::start(&[AUTO, &other_agent(&["options"])], script).await;
        told(&mut stage, &["options"]).await
    });
    expect![[r#"
        Task $TASK (other, hello) failed: there is no such choice.

        It said nothing.

        Its agent opened no session, so it cannot go on; start a new task.
    "#]]
    .assert_eq(&told);
}

#[test]
fn agent_that_leaves_processes_is_cleaned_up() {
    run(async {
        let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder can be made"));
        let mut leashes = folders
            .each_ref()
            .map(|folder| crow_testkit::tracked_command::TrackedCommand::new(folder.path()));
        let [spawns, strays] = folders.each_ref().map(|folder| folder.path().display().to_string());
        let words = [format!("spawns={spawns}"), format!("strays={strays}"), "stubborn".to_owned()];
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut stage = Stage::start(&[AUTO, &other_agent(&words)], GIVES_IT).await;
        assert_eq!(stage.say("go").await, "end_turn");
        // It may get another prompt, so it stays until its parent exits.
        assert!(leashes.iter().all(crow_testkit::tracked_command::TrackedCommand::is_running));
        stage.client.close_stdin().await;
        for leash in &mut leashes {
            leash.wait_until_gone("the parent has ended").await;
        }
    });
}

#[test]
fn silent_agent_is_cancelled() {
    run(async {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let held = folder.path().join("held");
        nix::unistd::mkfifo(&held, nix::sys::stat::Mode::S_IRWXU).expect("a pipe can be made");
        let pipe = tokio::net::unix::pipe::OpenOptions::new();
        let mut pipe = pipe.open_receiver(&held).expect("the pipe opens");
        let script = format!(
            "exec 9>{}; printf . >&9; trap '' TERM; while read line; do :; done; sleep 1000",
            held.display()
        );
        let agents = serde_json::json!({"other": {"command": "sh", "args": ["-c", script]}});
        let mut stage = Stage::start(&[AUTO, &format!("agent_servers: {agents}")], GIVES_IT).await;
        let id = stage.client.prompt(&stage.session, "go").await;
        stage.server.wait_for_requests(1).await;
        let mut said = [0];
        tokio::io::AsyncReadExt::read_exact(&mut pipe, &mut said).await.expect("it runs");
        stage.cancel().await;
        assert_eq!(stage.end_of(id).await, "cancelled");
        let mut rest = Vec::new();
        let gone = tokio::io::AsyncReadExt::read_to_end(&mut pipe, &mut rest);
        tokio::time::timeout(std::time::Duration::from_secs(10), gone)
            .await
            .expect("nothing holds the pipe")
            .expect("it can be read");
        stage.server.replace_answers("text \"Here I am.\"");
        assert_eq!(stage.say("once more").await, "end_turn");
        stage.clean("silent").await;
    });
}

#[test]
fn flooding_agent_is_cancelled() {
    check_cancelled(&["flood"], "and so on");
}

#[test]
fn flooding_agent_that_ignores_cancel_is_cancelled() {
    check_cancelled(&["flood-deaf", "deaf"], "and so on");
}

#[test]
fn agent_that_ignores_cancel_is_cancelled() {
    check_cancelled(&["deaf", "slow=/nowhere"], "; started");
}

#[test]
fn agent_that_ignores_signals_is_cancelled() {
    check_cancelled(&["stubborn", "slow=/nowhere"], "; started");
}

#[test]
fn agent_that_reads_nothing_is_cancelled() {
    check_cancelled(&["unread"], "; started");
}

#[test]
fn agent_that_reads_nothing_ends_with_its_session() {
    check_stopped(&["unread"], "; started", Stop::Close);
}

#[test]
fn agent_on_a_socket_that_never_initializes_is_cancelled() {
    run(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("ws://{}/acp", listener.local_addr().expect("it has an address"));
        let agents = format!("agent_servers: {}", json!({"other": {"url": url}}));
        let mut stage = Stage::start(&[AUTO, &agents], GIVES_IT).await;
        let id = stage.client.prompt(&stage.session, "go").await;
        let came = tokio::time::timeout(PATIENCE, listener.accept()).await;
        let _held = came.expect("it comes in time").expect("it connects");
        stage.cancel().await;
        assert_eq!(stage.end_of(id).await, "cancelled");
        stage.clean("a silent socket").await;
    });
}

#[test]
fn agent_with_endless_requests_is_stopped() {
    let told = run(async {
        let mut stage = Stage::start(&[ASKS, &other_agent(&["nags"])], GIVES_IT).await;
        stage.client.permission_answers.push_back("silence".into());
        let told = told(&mut stage, &["nags"]).await;
        // One question at a time, and its answer is no longer awaited.
        let log = stage.client.log();
        assert_eq!((log.matches("-> silence").count(), log.matches("-> allow").count()), (1, 0), "{log}");
        assert!(log.contains("< takes its question back"), "{log}");
        told
    });
    expect![[r#"
        Task $TASK (other, greet) failed: it sends more requests at once than can be answered

        echo: hello

        It changed 1 file with its tools (+1 -1):
          $HOME/project/notes.txt (+1 -1)

        The whole of it: query_session with session_id $TASK. To go on with it: task_send.
    "#]]
    .assert_eq(&told);
}

#[test]
fn agent_that_does_not_wait_leaves_no_open_request() {
    run(async {
        let go = tempfile::tempdir().expect("a folder can be made");
        let go = go.path().join("go");
        let slow = format!("slow={}", go.display());
        let mut stage = Stage::start(&[ASKS, &other_agent(&["asks", "leaves", &slow])], GIVES_IT).await;
        stage.client.permission_answers.push_back("silence".into());
        let id = stage.client.prompt(&stage.session, "go").await;
        stage.client.wait_for_line("-> silence").await;
        std::fs::write(&go, "").expect("it can be written");
        assert_eq!(stage.end_of(id).await, "end_turn");
        stage.client.wait_for_line("< takes its question back").await;
        stage.clean("a question is left").await;
    });
}

#[test]
fn agent_that_ignores_steering_does_not_block_the_parent() {
    run(async {
        let script = r#"
            call task {"prompt":"hello","agent":"other","wait":false}
            text "It works."
        "#;
        let mut stage = Stage::start(&[AUTO, &other_agent(&["steers", "slow=/nowhere"])], script).await;
        assert_eq!(stage.say("go").await, "end_turn");
        let task = stage.task();
        let hurry = json!({"task": task, "prompt": "hurry"});
        stage.server.add_answers(format!("call task_send {hurry}\ntext \"Told.\"").as_str());
        assert_eq!(stage.say("tell it").await, "end_turn");
        assert_eq!(stage.told("go"), "The message was sent to task $TASK, which is running.\n");
        stage.clean("words without an answer").await;
    });
}
