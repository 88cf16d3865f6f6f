//! The terminal as the renderer needs it; tests put an emulator behind it.

use std::io;

/// Writes to a terminal and asks for its size.
pub trait TerminalIo {
    /// Writes all bytes of a frame, if possible in one call.
    fn write_frame(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// The size of the window now.
    fn size(&self) -> io::Result<ScreenSize>;

    /// Switches between raw input and the mode that the terminal had before.
    fn set_raw(&mut self, is_raw: bool) -> io::Result<()>;
}

/// The size of a terminal in cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScreenSize {
    pub columns: u16,
    pub rows: u16,
}

impl ScreenSize {
    /// The rows that the live region may have: one row is left for history.
    pub fn live_rows_max(self) -> usize {
        usize::from(self.rows.saturating_sub(1).max(1))
    }
}
