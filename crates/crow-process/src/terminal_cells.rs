//! The size of a terminal.

/// The size of a terminal, in character cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalCells {
    /// The width.
    pub columns: u16,
    /// The height.
    pub rows: u16,
}
