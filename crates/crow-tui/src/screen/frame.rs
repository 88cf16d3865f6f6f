//! The bytes of a frame: rows are overwritten from the top, so that only history leaves the screen.

use super::{
    CaretPosition, ScreenSize,
    cell::{move_to_column, write_changes, write_row},
};
use crate::text::StyledRow;

/// A row longer than this is cut: it would fill several screens.
const CODE_COLUMNS_MAX: usize = 16 * 1024;

/// Begins a synchronized frame without wrapping.
const BEGIN: &[u8] = b"\x1b[?2026h\x1b[?7l";

/// The terminal wraps between frames, as whatever follows a killed program expects.
const END: &[u8] = b"\x1b[?7h\x1b[?2026l";

/// Collects a frame for one write.
pub(super) struct FrameWriter {
    out: Vec<u8>,
    columns: usize,
}

impl FrameWriter {
    pub(super) fn new(size: ScreenSize) -> Self {
        Self { out: BEGIN.to_vec(), columns: usize::from(size.columns) }
    }

    pub(super) fn push_bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Moves to the beginning of a row above.
    pub(super) fn move_up(&mut self, n_rows: u16) {
        if n_rows > 0 {
            self.push_bytes(format!("\x1b[{n_rows}A").as_bytes());
        }
        self.push_bytes(b"\r");
    }

    /// Moves to the beginning of a row of the screen, from 0.
    pub(super) fn move_to_row(&mut self, row: u16) {
        self.push_bytes(format!("\x1b[{};1H", u32::from(row) + 1).as_bytes());
    }

    /// Writes rows that are final, from the beginning of a row to the beginning of the next one.
    pub(super) fn write_history(&mut self, rows: &[StyledRow]) {
        for row in rows {
            // A row of a wider screen is wrapped by the terminal as well: nothing is lost.
            let is_wrapped = row.is_code || row.width() > self.columns;
            // The row is erased before the text: an erased end would still count as text when tmux wraps it again.
            self.push_bytes(b"\x1b[2K");
            if is_wrapped {
                let row = StyledRow { spans: row.spans.clone(), is_code: true };
                self.push_bytes(b"\x1b[J\x1b[?7h");
                write_row(&mut self.out, &row, CODE_COLUMNS_MAX);
                self.push_bytes(b"\x1b[?7l");
            } else {
                write_row(&mut self.out, row, self.columns);
            }
            self.push_bytes(b"\r\n");
        }
    }

    /// Writes all live rows and erases the rest of the screen. The cursor stays in the last row.
    pub(super) fn write_live(&mut self, rows: &[StyledRow]) {
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                self.push_bytes(b"\r\n");
            }
            self.push_bytes(b"\x1b[2K");
            if index + 1 == rows.len() {
                // Before the text: after a full row it would erase the last cell.
                self.push_bytes(b"\x1b[J");
            }
            write_row(&mut self.out, row, self.columns);
        }
        if rows.is_empty() {
            self.push_bytes(b"\x1b[2K\x1b[J");
        }
    }

    /// Writes the live rows that differ from those on the screen and returns the row of the cursor.
    pub(super) fn write_live_changes(&mut self, drawn: &[StyledRow], rows: &[StyledRow], cursor: u16) -> u16 {
        let mut at = usize::from(cursor);
        for (index, (before, after)) in drawn.iter().zip(rows).enumerate() {
            if before != after {
                self.move_rows(at, index);
                at = index;
                write_changes(&mut self.out, before, after, self.columns);
            }
        }
        u16::try_from(at).unwrap_or(u16::MAX)
    }

    fn move_rows(&mut self, from: usize, to: usize) {
        if from > to {
            self.push_bytes(format!("\x1b[{}A", from - to).as_bytes());
        } else if to > from {
            self.push_bytes(format!("\x1b[{}B", to - from).as_bytes());
        }
    }

    /// Moves the cursor to its place among the rows.
    pub(super) fn park(&mut self, from_row: u16, place: CaretPosition) {
        self.move_rows(usize::from(from_row), usize::from(place.row));
        move_to_column(&mut self.out, usize::from(place.column));
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    pub(super) fn is_empty(&self) -> bool {
        self.out.len() == BEGIN.len()
    }

    /// Returns the bytes, or none if nothing was collected.
    pub(super) fn finish(mut self) -> Option<Vec<u8>> {
        if self.is_empty() {
            return None;
        }
        self.out.extend_from_slice(END);
        Some(self.out)
    }
}
