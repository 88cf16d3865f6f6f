//! Prompts while a turn runs.

use crow_acp::{AcpAgentCapabilities, OpenedSession};
use crow_core::{Failure, FailureKind, SessionId};
use expect_test::expect;

use super::{Stage, check};
use crate::app::event::AppEvent;

#[test]
fn enter_steers_the_turn_and_tab_queues() {
    let mut stage = Stage::open();
    check(
        &mut stage,
        "'go' enter 'and_fast' enter 'then_this' tab",
        &expect![[r#"
        history "go"
        SendPrompt([Text("go")])
        history "and fast"
        Steer("and fast")
        history "then this"
        |
    "#]],
    );
    check(
        &mut stage,
        "turn-ends",
        &expect![[r#"
        SendPrompt([Text("then this")])
        |
    "#]],
    );
}

#[test]
fn prompt_without_a_session_opens_one() {
    let mut stage = Stage::new();
    stage.apply(AppEvent::Connected(AcpAgentCapabilities::default()));
    let failure = || Failure::new(FailureKind::SessionNotFound, "there is no session nope");
    stage.apply(AppEvent::SessionOpened(Err(failure())));
    check(
        &mut stage,
        "'go' enter",
        &expect![[r#"
        history "go"
        OpenSession(New)
        |
    "#]],
    );
    // It could not be opened either.
    stage.apply(AppEvent::SessionOpened(Err(failure())));
    check(
        &mut stage,
        "",
        &expect![[r#"
        go|
    "#]],
    );
    stage.keys("enter");
    let session = SessionId::new("s-1");
    stage.apply(AppEvent::SessionOpened(Ok(OpenedSession { session, options: Vec::new() })));
    check(
        &mut stage,
        "",
        &expect![[r#"
        OpenSession(New)
        SendPrompt([Text("go")])
        |
    "#]],
    );
}

#[test]
fn rejected_steering_is_queued() {
    let mut stage = Stage::open();
    stage.keys("'go' enter 'more' enter");
    stage.show();
    let failure = Failure::new(FailureKind::Internal, "no");
    stage.apply(AppEvent::Steered { text: "more".into(), result: Err(failure) });
    check(
        &mut stage,
        "turn-ends",
        &expect![[r#"
        SendPrompt([Text("more")])
        |
    "#]],
    );
    let failure = Failure::new(FailureKind::Internal, "no");
    stage.keys("'late' enter esc");
    assert_eq!(stage.state.steering, ["late"]);
    stage.apply(AppEvent::Steered { text: "late".into(), result: Err(failure) });
    assert!(stage.state.steering.is_empty());
    check(
        &mut stage,
        "'_x' turn-cancelled",
        &expect![[r#"
            history "late"
            Steer("late")
            CancelTurn
            late x|
        "#]],
    );
}

#[test]
fn agent_without_steering_queues() {
    let mut stage = Stage::open();
    stage.state.session.capabilities = None;
    check(
        &mut stage,
        "'go' enter 'second' enter",
        &expect![[r#"
        history "go"
        SendPrompt([Text("go")])
        history "second"
        |
    "#]],
    );
    check(
        &mut stage,
        "turn-ends",
        &expect![[r#"
        SendPrompt([Text("second")])
        |
    "#]],
    );
}

#[test]
fn esc_stops_and_returns_the_queue_before_the_draft() {
    let mut stage = Stage::open();
    check(
        &mut stage,
        "'go' enter 'one' tab 'two' tab 'draft' esc",
        &expect![[r#"
        history "go"
        SendPrompt([Text("go")])
        history "one"
        history "two"
        CancelTurn
        one⏎two⏎draft|
    "#]],
    );
    check(
        &mut stage,
        "esc turn-cancelled",
        &expect![[r#"
        one⏎two⏎draft|
    "#]],
    );
}

#[test]
fn prompts_wait_for_the_session() {
    let mut stage = Stage::new();
    check(
        &mut stage,
        "'early' enter",
        &expect![[r#"
        history "early"
        |
    "#]],
    );
    let session = crow_core::SessionId::new("s");
    stage.apply(AppEvent::SessionOpened(Ok(crow_acp::OpenedSession { session, options: Vec::new() })));
    check(
        &mut stage,
        "",
        &expect![[r#"
        SendPrompt([Text("early")])
        |
    "#]],
    );
}

#[test]
fn queue_is_taken_back() {
    let mut stage = Stage::open();
    check(
        &mut stage,
        "'go' enter 'one' tab up 'x'",
        &expect![[r#"
        history "go"
        SendPrompt([Text("go")])
        history "one"
        onex|
    "#]],
    );
    check(
        &mut stage,
        "ctrl-u 'a' tab 'b' alt-up",
        &expect![[r#"
        history "a"
        a⏎b|
    "#]],
    );
}
