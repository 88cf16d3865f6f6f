//! The terminal: an inline renderer for rows, and the one reader of its input.
//!
//! History is written once and then belongs to the terminal; the live region below it is redrawn in place. Knows rows
//! and keys, nothing of a session.

mod cell;
mod frame;
mod fullscreen;
mod inline;
mod input;
mod key;
mod modes;
mod parser;
mod reply;
mod resize;
mod terminal_io;
mod traits;
mod tty;

#[cfg(test)]
mod emulator;

pub use self::{
    cell::style_row,
    inline::{CaretPosition, InlineScreen, REBUILD_ROWS_MAX, ScreenFrame},
    input::InputReader,
    key::{KeyCode, KeyModifiers, KeyPress},
    modes::ScreenModes,
    parser::InputParser,
    reply::{InputEvent, TerminalReply, TimedInput},
    terminal_io::{ScreenSize, TerminalIo},
    traits::{ResizeBehavior, TerminalHints, TerminalTraits},
    tty::TtyIo,
};
