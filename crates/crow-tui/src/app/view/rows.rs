//! Blocks of rows, and what all rows of a frame have in common.

use std::time::Instant;

use crate::{
    app::state::{AppState, ClientFacts},
    screen::CaretPosition,
    text::{ColorTheme, StyledRow, StyledSpan, TextStyle},
};

/// The width and style of rows, and the time they are made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowContext<'a> {
    pub(crate) width: usize,
    pub(crate) theme: ColorTheme,
    /// The directories from which paths are shown.
    pub(crate) facts: &'a ClientFacts,
    pub(crate) now: Instant,
    /// Nothing is folded.
    pub(crate) is_complete: bool,
    /// The call that is not folded.
    pub(crate) unfolded_call: Option<&'a str>,
}

impl<'a> RowContext<'a> {
    /// Returns the context for the rows of a state.
    pub(super) fn new(state: &'a AppState, now: Instant) -> Self {
        Self {
            width: state.columns(),
            theme: state.theme,
            facts: &state.facts,
            now,
            is_complete: false,
            unfolded_call: None,
        }
    }
}

/// Rows with the caret, if it is in them.
#[derive(Debug, Clone, Default)]
pub(super) struct LiveBlock {
    pub(super) rows: Vec<StyledRow>,
    pub(super) caret: Option<CaretPosition>,
}

impl LiveBlock {
    pub(super) fn push_row(&mut self, row: StyledRow) {
        self.rows.push(row);
    }

    /// Appends another block below.
    pub(super) fn append(&mut self, other: Self) {
        let n_above = u16::try_from(self.rows.len()).unwrap_or(u16::MAX);
        let moved =
            other.caret.map(|caret| CaretPosition { row: caret.row.saturating_add(n_above), ..caret });
        self.caret = moved.or(self.caret);
        self.rows.extend(other.rows);
    }
}

/// Returns a row of one style.
pub(super) fn styled_row(text: impl Into<String>, style: TextStyle) -> StyledRow {
    StyledRow::from_span(StyledSpan::styled(text, style))
}
