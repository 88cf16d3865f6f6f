//! Control sequences that draw nothing: the title, a notification, the clipboard.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::{screen::TerminalTraits, text::sanitize_line};

/// A longer title is cut by every terminal.
const TITLE_CHARS_MAX: usize = 80;

/// Sets the title of the window.
pub(super) fn set_title(title: &str) -> String {
    let title: String = sanitize_line(title).chars().take(TITLE_CHARS_MAX).collect();
    format!("\x1b]2;{title}\x1b\\")
}

/// Asks for attention: a notification where the terminal has them, and the bell everywhere.
pub(super) fn alert(text: &str, traits: TerminalTraits) -> String {
    let text = sanitize_line(text);
    let notification = match traits.is_vte {
        true => format!("\x1b]777;notify;Crow;{text}\x1b\\"),
        false => format!("\x1b]9;{text}\x1b\\"),
    };
    match traits.is_tmux {
        // tmux passes this on to its terminal, if `allow-passthrough` is on; the bell it reports in any case.
        true => format!("\x1bPtmux;{}\x1b\\\x07", notification.replace('\x1b', "\x1b\x1b")),
        false => format!("{notification}\x07"),
    }
}

/// Copies a text to the clipboard of the terminal, also over ssh.
pub(super) fn copy_text(text: &str) -> String {
    format!("\x1b]52;c;{}\x1b\\", STANDARD.encode(text))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(traits: TerminalTraits, expected: &Expect) {
        expected.assert_eq(&format!("{}\n", alert("a question", traits).escape_debug()));
    }

    #[test]
    fn notification_has_the_form_that_the_terminal_knows() {
        let plain = TerminalTraits::default();
        check(
            plain,
            &expect![[r#"
            \u{1b}]9;a question\u{1b}\\\u{7}
        "#]],
        );
        check(
            TerminalTraits { is_vte: true, ..plain },
            &expect![[r#"
            \u{1b}]777;notify;Crow;a question\u{1b}\\\u{7}
        "#]],
        );
        check(
            TerminalTraits { is_tmux: true, ..plain },
            &expect![[r#"
            \u{1b}Ptmux;\u{1b}\u{1b}]9;a question\u{1b}\u{1b}\\\u{1b}\\\u{7}
        "#]],
        );
    }
}
