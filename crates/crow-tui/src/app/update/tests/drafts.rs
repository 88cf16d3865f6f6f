//! The draft that outlives the client.

use expect_test::expect;

use super::{Stage, check};
use crate::app::event::AppEvent;

#[test]
fn draft_is_stored_after_a_pause_and_removed_when_sent() {
    let mut stage = Stage::open();
    check(
        &mut stage,
        "'hal' 200ms 'f' 200ms",
        &expect![[r#"
        half|
    "#]],
    );
    stage.wait(100);
    stage.apply(AppEvent::Tick);
    check(
        &mut stage,
        "",
        &expect![[r#"
        StoreDraft("half")
        half|
    "#]],
    );
    check(
        &mut stage,
        "enter 400ms",
        &expect![[r#"
        history "half"
        SendPrompt([Text("half")])
        |
    "#]],
    );
    stage.apply(AppEvent::Tick);
    check(
        &mut stage,
        "",
        &expect![[r#"
        StoreDraft("")
        |
    "#]],
    );
}

#[test]
fn draft_is_restored_into_an_empty_composer() {
    let mut stage = Stage::open();
    stage.apply(AppEvent::DraftLoaded("half".into()));
    check(
        &mut stage,
        "400ms ctrl-e",
        &expect![[r#"
        half|
    "#]],
    );
    let mut stage = Stage::open();
    stage.keys("'typed'");
    stage.apply(AppEvent::DraftLoaded("half".into()));
    check(
        &mut stage,
        "ctrl-d ctrl-c ctrl-c",
        &expect![[r#"
        history "typed"
        Quit
        StoreDraft("")
        |
        flash: ctrl-c again quits
    "#]],
    );
}
