//! Vi keys in the client.

use expect_test::expect;

use super::{Stage, check};
use crate::app::composer::vi::ViState;

#[test]
fn escape_changes_the_mode_and_then_stops_the_turn() {
    let mut stage = Stage::open();
    stage.state.vi = Some(ViState::default());
    check(
        &mut stage,
        "'one_two' esc b d w A '!'",
        &expect![[r#"
        one !|
    "#]],
    );
    check(
        &mut stage,
        "esc enter",
        &expect![[r#"
        history "one !"
        SendPrompt([Text("one !")])
        |
    "#]],
    );
    check(
        &mut stage,
        "'x' esc d esc",
        &expect![[r#"
        |x
    "#]],
    );
    check(
        &mut stage,
        "esc",
        &expect![[r#"
        CancelTurn
        |x
    "#]],
    );
}

#[test]
fn keys_are_chosen_by_a_command() {
    let mut stage = Stage::open();
    check(
        &mut stage,
        "'/keys_vi' enter 'ab' esc x k",
        &expect![[r#"
        history "/keys vi"
        /keys vi|
        flash: keys: vi
    "#]],
    );
    check(
        &mut stage,
        "ctrl-u i '/keys_emacs' enter esc 'dd'",
        &expect![[r#"
        history "/keys emacs"
        dd|
        flash: esc again goes back to an earlier prompt
    "#]],
    );
}
