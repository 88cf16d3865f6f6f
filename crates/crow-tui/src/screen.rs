//! The terminal: an inline renderer for rows, and the one reader of its input.
//!
//! History is written once and then belongs to the terminal; the live region below it is redrawn in place. Knows rows
//! and keys, nothing of a session.

mod cell;
mod inline;
mod key;
mod reply;
mod terminal_io;

pub use self::{
    inline::{CaretPosition, InlineScreen, ScreenFrame},
    key::{KeyCode, KeyModifiers, KeyPress},
    reply::{InputEvent, TerminalReply, TimedInput},
    terminal_io::{ScreenSize, TerminalIo},
};
