//! The messages that a watchdog knows.

use expect_test::{Expect, expect};

use crate::watchdog::HeldMessages;

#[track_caller]
fn check(lines: &[&str], expected: &Expect) {
    let mut held = HeldMessages::default();
    for line in lines {
        held.handle_line(line);
    }
    expected.assert_eq(&held.into_subjects().join("\n"));
}

#[test]
fn held_messages_are_those_that_were_not_released() {
    let line = HeldMessages::hold_line;
    check(
        &[
            &line("$JS.ACK.a"),
            &line("$JS.ACK.b"),
            &HeldMessages::release_line("$JS.ACK.a"),
            &line("$JS.ACK.c"),
        ],
        &expect![[r#"
            $JS.ACK.b
            $JS.ACK.c"#]],
    );
}

#[test]
fn other_lines_are_ignored() {
    check(&["hold $JS.ACK.a", "hold $JS.API.STREAM.PURGE.X", "relea", ""], &expect!["$JS.ACK.a"]);
}
