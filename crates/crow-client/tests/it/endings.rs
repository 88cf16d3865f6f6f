//! Agents that do not start, end, or are ended.

use std::time::Duration;

use crow_client::{Agent, AgentError};
use crow_testkit::tracked_command::TrackedCommand;
use expect_test::expect;

use crate::world::{check, error_text, fake_agent, hide_directory, run};

#[test]
fn agent_that_does_not_start_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let errors = run(async {
        let program = Agent::program("no-such-program", ["acp"]).start().await;
        let cwd = fake_agent(directory.path(), &[]).cwd(directory.path().join("none")).start().await;
        format!("{}\n{}\n", error_text(program), error_text(cwd))
    });
    expect![[r#"
        the agent no-such-program could not be started: there is no program no-such-program
        the agent $AGENT could not be started: there is no directory $CWD/none
    "#]]
    .assert_eq(&hide_directory(&errors, directory.path()));
}

#[test]
fn error_has_the_exit_and_the_end_of_stderr() {
    check(
        &["broken"],
        |options| options,
        &expect![[r#"
        not started: the agent $AGENT exited during initialization with code 3; its stderr: cannot find the frobnicator
    "#]],
    );
    check(
        &["dies"],
        |options| options,
        &expect![[r#"
        text "echo: "
        error: the agent $AGENT exited during the session with code 9; its stderr: the wings fell off
    "#]],
    );
}

#[test]
fn agent_of_another_version_is_an_error() {
    check(
        &["version=7"],
        |options| options,
        &expect![[r#"
        not started: the agent $AGENT cannot be used: invalid request: unsupported ACP protocol version 7; this endpoint only supports ACP protocol version 1
    "#]],
    );
}

#[test]
fn agent_that_needs_a_login_says_so() {
    check(
        &["locked"],
        |options| options,
        &expect![[r#"
        no session: Authentication required
    "#]],
    );
}

#[test]
fn agent_that_writes_much_to_stderr_is_not_blocked() {
    check(
        &["noisy", "garbage"],
        |options| options,
        &expect![[r#"
        text "echo: "
        text "go"
        started call-1 Some("Edit notes.txt") Some(Edit) Some(InProgress) content=Some(0)
        updated call-1 None None Some(Completed) content=Some(1)
        end EndTurn text="echo: go" answer="" tokens=None context=None
    "#]],
    );
}

#[test]
fn agent_that_does_not_answer_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let error = run(async {
        let options = fake_agent(directory.path(), &["stalls"]);
        let agent = options.request_timeout(Duration::from_millis(50)).start().await.unwrap();
        error_text(agent.new_session().await)
    });
    expect!["the agent did not answer `session/new` within 0.05 s"].assert_eq(&error);
}

#[test]
fn processes_end_when_everything_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    run(async {
        let mut tracked = TrackedCommand::new(directory.path());
        let agent = fake_agent(directory.path(), &["spawns=$CWD", "stubborn"]).start().await.unwrap();
        let session = agent.new_session().await.unwrap();
        let turn = session.prompt("go");
        turn.finish().await.unwrap();
        drop(agent);
        assert!(tracked.is_running(), "the session keeps the agent running");
        drop(session);
        tracked.wait_until_gone("the agent was dropped").await;
    });
}

#[test]
fn processes_end_with_a_dropped_turn() {
    let directory = tempfile::tempdir().unwrap();
    run(async {
        let mut tracked = TrackedCommand::new(directory.path());
        let agent = fake_agent(directory.path(), &["spawns=$CWD", "flood-deaf"]).start().await.unwrap();
        let mut turn = agent.new_session().await.unwrap().prompt("go");
        for _ in 0..100 {
            turn.next_event().await.unwrap();
        }
        drop(agent);
        drop(turn);
        tracked.wait_until_gone("the turn was dropped").await;
    });
}

#[test]
fn agent_that_was_shut_down_answers_nothing() {
    let directory = tempfile::tempdir().unwrap();
    run(async {
        let agent = fake_agent(directory.path(), &["flood"]).start().await.unwrap();
        let session = agent.new_session().await.unwrap();
        let mut unread = session.prompt("go");
        unread.next_event().await.unwrap();
        agent.shut_down().await;
        assert_eq!(session.prompt("more").finish().await, Err(AgentError::ShutDown));
        assert_eq!(unread.finish().await, Err(AgentError::ShutDown));
    });
}
