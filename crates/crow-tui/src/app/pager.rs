//! The pager: a long text or the whole transcript, with scrolling and search. Works on rows that the view made.

use std::collections::BTreeSet;

use crow_core::SessionId;

use crate::text::StyledRow;

/// The content of the pager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PagerSource {
    /// The whole transcript with everything that is folded elsewhere.
    Transcript,
    /// The transcript of a child.
    Child(SessionId),
    /// A text that is no part of the session.
    Text(String),
    /// The keys.
    Keys,
}

/// A move through the rows; how far a page goes is known only where the rows are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextPager {
    pub(crate) title: String,
    pub(crate) source: PagerSource,
    /// Rows below the visible ones: the end is the start of a transcript.
    pub(crate) n_below: usize,
    /// The text that is searched.
    pub(crate) query: String,
    pub(crate) is_typing_query: bool,
    /// The cell of the selected call.
    pub(crate) selected: Option<usize>,
    /// Cells of calls of which only the first row is shown.
    pub(crate) folded: BTreeSet<usize>,
}

/// The first row of a call in the pager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallPlace {
    pub(crate) cell: usize,
    pub(crate) row: usize,
}

impl TextPager {
    /// Opens at the end of the transcript, and at the start of a text.
    pub(crate) fn new(title: impl Into<String>, source: PagerSource) -> Self {
        let n_below = match source {
            PagerSource::Transcript | PagerSource::Child(_) => 0,
            PagerSource::Text(_) | PagerSource::Keys => usize::MAX,
        };
        Self {
            title: title.into(),
            source,
            n_below,
            query: String::new(),
            is_typing_query: false,
            selected: None,
            folded: BTreeSet::new(),
        }
    }

    /// Keeps the position within `n_rows`, of which `n_visible` fit.
    pub(crate) fn clamp(&mut self, n_rows: usize, n_visible: usize) {
        self.n_below = self.n_below.min(n_rows.saturating_sub(n_visible));
    }

    pub(crate) fn scroll_up(&mut self, n_rows: usize) {
        self.n_below = self.n_below.saturating_add(n_rows);
    }

    pub(crate) fn scroll_down(&mut self, n_rows: usize) {
        self.n_below = self.n_below.saturating_sub(n_rows);
    }

    /// Selects the call after or before the selected one, at first one that is visible, and shows its first row.
    pub(crate) fn select_call(
        &mut self,
        calls: &[CallPlace],
        is_next: bool,
        n_rows: usize,
        n_visible: usize,
    ) {
        let top = n_rows.saturating_sub(self.n_below + n_visible);
        let selected = calls.iter().position(|call| Some(call.cell) == self.selected);
        let index = match (selected, is_next) {
            (Some(index), true) => (index + 1).min(calls.len() - 1),
            (Some(index), false) => index.saturating_sub(1),
            (None, _) => {
                calls.iter().position(|call| call.row >= top).unwrap_or(calls.len().saturating_sub(1))
            }
        };
        let Some(call) = calls.get(index) else { return };
        self.selected = Some(call.cell);
        if call.row < top || call.row >= top + n_visible {
            self.n_below = n_rows.saturating_sub(call.row + n_visible);
        }
    }

    /// Folds the selected call, or unfolds it.
    pub(crate) fn toggle_fold(&mut self) {
        if let Some(cell) = self.selected
            && !self.folded.remove(&cell)
        {
            self.folded.insert(cell);
        }
    }

    /// Scrolls to the next row above that has the query, or from the end again.
    pub(crate) fn find_next(&mut self, rows: &[StyledRow], n_visible: usize) -> bool {
        let query = self.query.to_lowercase();
        if query.is_empty() {
            return false;
        }
        let is_match = |row: &StyledRow| row.text().to_lowercase().contains(&query);
        let last_visible = rows.len().saturating_sub(self.n_below);
        let first_visible = last_visible.saturating_sub(n_visible);
        let above = rows[..first_visible.min(rows.len())].iter().rposition(is_match);
        let Some(index) = above.or_else(|| rows.iter().rposition(is_match)) else { return false };
        // The match is the first visible row.
        self.n_below = rows.len().saturating_sub(index + n_visible);
        true
    }

    /// The rows that are visible.
    pub(crate) fn visible_rows<'a>(&self, rows: &'a [StyledRow], n_visible: usize) -> &'a [StyledRow] {
        let end = rows.len().saturating_sub(self.n_below.min(rows.len().saturating_sub(n_visible)));
        &rows[end.saturating_sub(n_visible)..end]
    }
}
