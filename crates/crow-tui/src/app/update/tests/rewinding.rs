//! Going back to earlier prompts.

use crow_acp::{AcpAgentCapabilities, EarlierPrompt, OpenedSession};
use crow_core::{Failure, FailureKind, MessageId, SessionId};
use expect_test::expect;

use super::{Stage, check};
use crate::app::event::{AppEvent, DrawnFrame};

/// A client with three sent prompts, whose agent can go back to them; two have changed files.
fn stage() -> Stage {
    let mut stage = Stage::open();
    let capabilities = AcpAgentCapabilities { earlier_prompts: true, ..AcpAgentCapabilities::default() };
    stage.apply(AppEvent::Connected(capabilities));
    stage.keys("'one' enter turn-ends 'two' enter turn-ends 'one' enter turn-ends");
    stage.apply(AppEvent::FrameDrawn(DrawnFrame { n_committed: 3, question: None }));
    stage.show();
    stage
}

fn list(stage: &mut Stage) {
    stage.keys("esc esc");
    let prompt = |seq, text: &str, n_undoable_turns, n_undoable_files| EarlierPrompt {
        message: MessageId::from_seq(seq),
        text: text.into(),
        n_undoable_turns,
        n_undoable_files,
    };
    let prompts = vec![prompt(4, "one", 0, 0), prompt(2, "two", 1, 1), prompt(0, "one", 2, 3)];
    stage.apply(AppEvent::PromptsListed(Ok(prompts)));
}

fn opened(stage: &mut Stage) {
    let session = SessionId::new("s-2");
    stage.apply(AppEvent::SessionOpened(Ok(OpenedSession { session, options: Vec::new() })));
}

#[test]
fn conversation_goes_back_in_a_copy() {
    let mut stage = stage();
    list(&mut stage);
    check(
        &mut stage,
        "down down enter 'conv' enter",
        &expect![[r#"
            ListPrompts
            OpenSession(ForkBefore { session: "s-1", message: MessageId("msg-0") })
            |
        "#]],
    );
    opened(&mut stage);
    check(
        &mut stage,
        "",
        &expect![[r#"
        one|
    "#]],
    );
    expect![[r#"[Notice("back before this prompt, in a copy; the whole conversation is still in its own session")]"#]].assert_eq(&format!("{:?}", stage.state.cells.of_session()));
    assert_eq!(stage.state.session.id, Some(SessionId::new("s-2")));
}

#[test]
fn files_are_undone_before_the_copy() {
    let mut stage = stage();
    list(&mut stage);
    check(
        &mut stage,
        "down enter down down enter",
        &expect![[r#"
            ListPrompts
            SendPrompt([Text("/undo 1")])
            two|
        "#]],
    );
    check(
        &mut stage,
        "turn-ends",
        &expect![[r#"
        OpenSession(ForkBefore { session: "s-1", message: MessageId("msg-2") })
        |
    "#]],
    );
    opened(&mut stage);
    check(
        &mut stage,
        "",
        &expect![[r#"
        two|
    "#]],
    );
}

#[test]
fn cancelled_undo_opens_no_copy() {
    let mut stage = stage();
    list(&mut stage);
    stage.keys("down enter down down enter");
    stage.show();
    check(
        &mut stage,
        "turn-cancelled",
        &expect![[r#"
        two|
    "#]],
    );
}

#[test]
fn ways_that_the_agent_lacks_are_not_offered() {
    let mut stage = stage();
    list(&mut stage);
    check(
        &mut stage,
        "enter 'undo' enter",
        &expect![[r#"
            ListPrompts
            |
        "#]],
    );
    let mut stage = Stage::open();
    stage.keys("'one' enter turn-ends");
    stage.show();
    check(
        &mut stage,
        "esc esc enter",
        &expect![[r#"
        one|
        flash: this agent cannot go back: the conversation goes on as it is
    "#]],
    );
}

#[test]
fn session_that_cannot_be_copied_stays_open() {
    let mut stage = stage();
    list(&mut stage);
    stage.keys("enter enter");
    stage.apply(AppEvent::SessionOpened(Err(Failure::new(FailureKind::Store, "no space"))));
    stage.show();
    check(
        &mut stage,
        "'go' enter",
        &expect![[r#"
        history "go"
        SendPrompt([Text("go")])
        |
    "#]],
    );
}
