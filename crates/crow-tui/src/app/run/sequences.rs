//! Control sequences that draw nothing: the title, a notification, the clipboard.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::text::sanitize_line;

/// A longer title is cut by every terminal.
const TITLE_CHARS_MAX: usize = 80;

/// Sets the title of the window.
pub(super) fn set_title(title: &str) -> String {
    let title: String = sanitize_line(title).chars().take(TITLE_CHARS_MAX).collect();
    format!("\x1b]2;{title}\x1b\\")
}

/// Asks for attention: a notification where the terminal has them, and the bell everywhere.
pub(super) fn alert(text: &str) -> String {
    format!("\x1b]9;{}\x1b\\\x07", sanitize_line(text))
}

/// Copies a text to the clipboard of the terminal, also over ssh.
pub(super) fn copy_text(text: &str) -> String {
    format!("\x1b]52;c;{}\x1b\\", STANDARD.encode(text))
}
