//! The size of a terminal.

/// The size of a terminal in characters.
#[derive(Debug, Clone, Copy)]
pub(super) struct TerminalSize {
    pub(super) columns: usize,
    pub(super) rows: usize,
}
