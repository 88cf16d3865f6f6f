//! Events of the terminal: input, and its answers to queries.

use std::time::Instant;

use super::KeyPress;

/// Input with the time at which it was read: what was read before a question was shown does not answer it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimedInput {
    pub event: InputEvent,
    pub read_at: Instant,
}

/// Input from the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputEvent {
    Key(KeyPress),
    /// A key that is held, from a terminal that tells it from a key that is pressed again.
    KeyRepeat(KeyPress),
    /// Pasted text as the terminal sent it: sanitize it before it is shown.
    Paste {
        content: String,
        /// Whether the paste was longer than the limit.
        is_truncated: bool,
    },
    /// Whether the terminal has the keyboard focus.
    FocusChanged(bool),
    /// The window has another size; ask the screen for it.
    Resized,
    Reply(TerminalReply),
    /// The terminal is gone.
    Closed,
}

/// An answer of the terminal to a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalReply {
    /// The cursor's position, from 0.
    CursorPosition { row: u16, column: u16 },
    /// The name and version of the terminal.
    Version(String),
    /// Whether the background is light.
    Background { is_light: bool },
    /// The kitty keyboard protocol is supported.
    KittyKeyboard,
    /// The answer to the query that every terminal supports: replies to earlier queries have come before it.
    DeviceAttributes,
}
