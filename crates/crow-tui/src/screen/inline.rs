//! The inline renderer: history scrolls up as the terminal's own, the live region below it is redrawn in place.
//!
//! All moves are relative to the caret, where the cursor is parked between frames, so the terminal may scroll or grow
//! meanwhile. History leaves the live region only at its top, so no live row ever scrolls into the terminal's history.

use std::io;

use super::{ScreenSize, TerminalIo, cell::write_row};
use crate::text::StyledRow;

/// A row longer than this is cut: a terminal wraps it to a whole screen of rows.
const CODE_COLUMNS_MAX: usize = 16 * 1024;

/// One frame.
#[derive(Debug, Clone, Copy)]
pub struct ScreenFrame<'a> {
    /// Rows that become final with this frame and are written once.
    pub history: &'a [StyledRow],
    /// All rows that may still change.
    pub live: &'a [StyledRow],
    /// The cursor's place in the live rows; without one it is hidden.
    pub caret: Option<CaretPosition>,
}

/// A place in the live rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CaretPosition {
    pub row: u16,
    pub column: u16,
}

/// Draws frames on a terminal.
#[derive(Debug)]
pub struct InlineScreen<T> {
    io: T,
    size: ScreenSize,
    /// The place of the cursor in the rows that are drawn.
    parked: CaretPosition,
}

impl<T: TerminalIo> InlineScreen<T> {
    /// Takes a terminal whose cursor is at the beginning of a row.
    pub fn new(io: T) -> io::Result<Self> {
        let size = io.size()?;
        Ok(Self { io, size, parked: CaretPosition::default() })
    }

    /// The size that rows have to fit.
    pub fn size(&self) -> ScreenSize {
        self.size
    }

    /// Draws a frame in one synchronized write.
    pub fn draw(&mut self, frame: &ScreenFrame<'_>) -> io::Result<()> {
        let mut out = b"\x1b[?2026h\x1b[?25l\x1b[?7l".to_vec();
        move_up(&mut out, self.parked.row);
        let columns = usize::from(self.size.columns);
        for row in frame.history {
            out.extend_from_slice(b"\x1b[2K");
            if row.is_code {
                out.extend_from_slice(b"\x1b[J\x1b[?7h");
                write_row(&mut out, row, CODE_COLUMNS_MAX);
                out.extend_from_slice(b"\x1b[?7l");
            } else {
                write_row(&mut out, row, columns);
            }
            out.extend_from_slice(b"\r\n");
        }
        // The end of the live region has the composer.
        let n_hidden = frame.live.len().saturating_sub(self.size.live_rows_max());
        let live = &frame.live[n_hidden..];
        for (index, row) in live.iter().enumerate() {
            out.extend_from_slice(if index > 0 { b"\r\n\x1b[2K" } else { b"\x1b[2K" });
            write_row(&mut out, row, columns);
        }
        out.extend_from_slice(b"\x1b[J");
        let last_row = u16::try_from(live.len().saturating_sub(1)).unwrap_or(u16::MAX);
        let n_hidden = u16::try_from(n_hidden).unwrap_or(u16::MAX);
        let caret = frame.caret.unwrap_or_default();
        self.parked = CaretPosition {
            row: caret.row.saturating_sub(n_hidden).min(last_row),
            column: caret.column.min(self.size.columns.saturating_sub(1)),
        };
        move_up(&mut out, last_row - self.parked.row);
        if self.parked.column > 0 {
            out.extend_from_slice(format!("\x1b[{}C", self.parked.column).as_bytes());
        }
        if frame.caret.is_some() {
            out.extend_from_slice(b"\x1b[?25h");
        }
        out.extend_from_slice(b"\x1b[?2026l");
        self.io.write_frame(&out)
    }
}

/// Moves to the beginning of a row above.
fn move_up(out: &mut Vec<u8>, n_rows: u16) {
    if n_rows > 0 {
        out.extend_from_slice(format!("\x1b[{n_rows}A").as_bytes());
    }
    out.push(b'\r');
}
