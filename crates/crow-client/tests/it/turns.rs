//! Prompts, their events and their cancellation.

use std::time::Duration;

use crow_client::{PromptContent, StopReason, TurnEvent};
use expect_test::expect;

use crate::world::{check, describe, error_text, fake_agent, run, show};

#[test]
fn turn_yields_typed_events() {
    check(
        &["usage"],
        |options| options,
        &expect![[r#"
        text "echo: "
        text "go"
        started call-1 Some("Edit notes.txt") Some(Edit) Some(InProgress) content=Some(0)
        updated call-1 None None Some(Completed) content=Some(1)
        Usage(ContextStatus { used: 1234, size: 32000, cost: None, is_estimate: false })
        end EndTurn text="echo: go" answer="" tokens=Some(1234) context=Some((1234, 32000))
    "#]],
    );
}

#[test]
fn raw_updates_precede_their_events() {
    check(
        &[],
        |options| options.raw_updates(true),
        &expect![[r#"
        Raw(Object {"sessionUpdate": String("agent_message_chunk"), "content": Object {"type": String("text"), "text": String("echo: ")}, "messageId": String("m")})
        text "echo: "
        Raw(Object {"sessionUpdate": String("agent_message_chunk"), "content": Object {"type": String("text"), "text": String("go")}, "messageId": String("m")})
        text "go"
        Raw(Object {"sessionUpdate": String("tool_call"), "toolCallId": String("call-1"), "title": String("Edit notes.txt"), "kind": String("edit"), "status": String("in_progress"), "locations": Array [Object {"path": String("$CWD/notes.txt")}], "rawInput": Object {"path": String("notes.txt")}})
        started call-1 Some("Edit notes.txt") Some(Edit) Some(InProgress) content=Some(0)
        Raw(Object {"sessionUpdate": String("tool_call_update"), "toolCallId": String("call-1"), "status": String("completed"), "content": Array [Object {"type": String("diff"), "path": String("$CWD/notes.txt"), "oldText": String("old\n"), "newText": String("new\n")}]})
        updated call-1 None None Some(Completed) content=Some(1)
        end EndTurn text="echo: go" answer="" tokens=None context=None
    "#]],
    );
}

#[test]
fn turn_that_fails_yields_the_error() {
    check(
        &["fails"],
        |options| options,
        &expect![[r#"
        text "echo: "
        text "go"
        started call-1 Some("Edit notes.txt") Some(Edit) Some(InProgress) content=Some(0)
        updated call-1 None None Some(Completed) content=Some(1)
        error: no fuel
    "#]],
    );
}

#[test]
fn turn_timeout_cancels_the_turn() {
    let directory = tempfile::tempdir().unwrap();
    let error = run(async {
        let options = fake_agent(directory.path(), &["slow=$CWD/never"]);
        let agent = options.turn_timeout(Duration::from_millis(50)).start().await.unwrap();
        error_text(agent.new_session().await.unwrap().prompt("go").finish().await)
    });
    expect!["the agent did not answer `session/prompt` within 0.05 s"].assert_eq(&error);
}

#[test]
fn prompt_has_parts() {
    let directory = tempfile::tempdir().unwrap();
    let outcome = run(async {
        let agent = fake_agent(directory.path(), &[]).start().await.unwrap();
        let prompt = PromptContent::new().text("one").link("file:///a", "a").text("two");
        agent.new_session().await.unwrap().prompt(prompt).finish().await.unwrap()
    });
    expect!["echo: one two"].assert_eq(&outcome.text);
}

#[test]
fn cancelled_turn_ends_with_its_reason() {
    let directory = tempfile::tempdir().unwrap();
    run(async {
        let agent = fake_agent(directory.path(), &["flood"]).start().await.unwrap();
        let mut turn = agent.new_session().await.unwrap().prompt("go");
        let mut n_texts = 0;
        let end = loop {
            match turn.next_event().await.unwrap() {
                Some(TurnEvent::Text(_)) => n_texts += 1,
                Some(TurnEvent::End(outcome)) => break outcome,
                _ => {}
            }
            // More than all queues hold.
            if n_texts == 2000 {
                turn.cancel();
            }
        };
        assert_eq!(end.stop_reason, StopReason::Cancelled);
        assert!(turn.next_event().await.unwrap().is_none());
    });
}

#[test]
fn turn_that_was_cancelled_before_it_began_sends_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let shown = run(async {
        let agent = fake_agent(directory.path(), &[]).start().await.unwrap();
        let session = agent.new_session().await.unwrap();
        let turn = session.prompt("one");
        turn.cancel();
        show(turn).await + &show(session.prompt("two")).await
    });
    expect![[r#"
        end Cancelled text="" answer="" tokens=None context=None
        text "echo: "
        text "two"
        started call-1 Some("Edit notes.txt") Some(Edit) Some(InProgress) content=Some(0)
        updated call-1 None None Some(Completed) content=Some(1)
        end EndTurn text="echo: two" answer="" tokens=None context=None
    "#]]
    .assert_eq(&shown);
}

#[test]
fn dropped_turn_is_cancelled_and_the_next_one_waits() {
    let directory = tempfile::tempdir().unwrap();
    let shown = run(async {
        let file = directory.path().join("end");
        let agent = fake_agent(directory.path(), &["slow=$CWD/end"]).start().await.unwrap();
        let session = agent.new_session().await.unwrap();
        let mut turn = session.prompt("one");
        let first = describe(&turn.next_event().await.unwrap().unwrap());
        drop(turn);
        let mut second = session.prompt("two");
        let next = describe(&second.next_event().await.unwrap().unwrap());
        // An agent that had not been told to cancel would still wait for the file.
        std::fs::write(file, "").unwrap();
        format!("{first}\n{next}\n{}", show(second).await)
    });
    expect![[r#"
        text "echo: "
        text "echo: "
        text "two"
        started call-1 Some("Edit notes.txt") Some(Edit) Some(InProgress) content=Some(0)
        updated call-1 None None Some(Completed) content=Some(1)
        end EndTurn text="echo: two" answer="" tokens=None context=None
    "#]]
    .assert_eq(&shown);
}

#[test]
fn turns_of_a_session_run_one_after_the_other() {
    let directory = tempfile::tempdir().unwrap();
    let texts = run(async {
        let agent = fake_agent(directory.path(), &[]).start().await.unwrap();
        let session = agent.new_session().await.unwrap();
        let other = agent.new_session().await.unwrap();
        let turns = tokio::join!(
            session.prompt("one").finish(),
            session.prompt("two").finish(),
            other.prompt("three").finish()
        );
        [turns.0, turns.1, turns.2].map(|turn| turn.unwrap().text)
    });
    assert_eq!(texts, ["echo: one", "echo: two", "echo: three"]);
}
