//! The hint at the end of a run.

use super::*;

#[test]
fn temporary_session_gets_no_hint() {
    let seen = FakeTerminal::default();
    play("begin\ntext Done.\nend\ngoodbye gone", Some(SIZE), &seen);
    expect![[r#"
        Done.

        session     brave-otter
    "#]]
    .assert_eq(&seen.rendered_lines(SIZE.columns));
}

#[test]
fn cost_is_shown_if_known() {
    let seen = FakeTerminal::default();
    play("begin\ncost 5\ntext Done.\ncost 12300000\ncost\nend\ngoodbye gone", Some(SIZE), &seen);
    expect![[r#"
        Done.

        session     brave-otter
        cost        $0.0123
    "#]]
    .assert_eq(&seen.rendered_lines(SIZE.columns));
}
