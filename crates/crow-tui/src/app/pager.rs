//! The pager: a long text or the whole transcript, with scrolling and search. Works on rows that the view made.

#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, ops::Range};

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
    /// The row of the match that was found last.
    pub(crate) match_row: Option<usize>,
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
            match_row: None,
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

    /// Begins a search or ends it.
    pub(crate) fn reset_search(&mut self, is_typing_query: bool) {
        (self.is_typing_query, self.query, self.match_row) = (is_typing_query, String::new(), None);
    }

    /// Finds the next row with the query and scrolls to it: upwards in a transcript, which is read from its end, and
    /// downwards in a text; then from the other end again. The first match is one that is visible, if there is any.
    pub(crate) fn find_match(&mut self, rows: &[StyledRow], n_visible: usize, is_backward: bool) {
        let matches: Vec<usize> = self.matching_rows(rows);
        let end = rows.len().saturating_sub(self.n_below);
        let visible = end.saturating_sub(n_visible)..end;
        let last_match = self.match_row.filter(|row| visible.contains(row));
        let is_upward = matches!(self.source, PagerSource::Transcript | PagerSource::Child(_)) != is_backward;
        let found = if is_upward {
            let limit = last_match.unwrap_or(visible.end);
            matches.iter().rfind(|&&row| row < limit).or(matches.last())
        } else {
            let first = last_match.map_or(visible.start, |row| row + 1);
            matches.iter().find(|&&row| row >= first).or(matches.first())
        };
        self.match_row = found.copied();
        if let Some(row) = self.match_row.filter(|row| !visible.contains(row)) {
            // The match is the first visible row.
            self.n_below = rows.len().saturating_sub(row + n_visible);
        }
    }

    /// The rows that have the query.
    pub(crate) fn matching_rows(&self, rows: &[StyledRow]) -> Vec<usize> {
        let has_match = |row: &StyledRow| !find_text(&row.text(), &self.query).is_empty();
        rows.iter().enumerate().filter(|(_, row)| has_match(row)).map(|(index, _)| index).collect()
    }
}

/// Returns the places of a query in a text, as ranges of bytes. Upper and lower case are the same.
pub(crate) fn find_text(text: &str, query: &str) -> Vec<Range<usize>> {
    if query.is_empty() {
        return Vec::new();
    }
    let mut lowercase = String::with_capacity(text.len());
    // For each byte of the lower-case text, the letter that it comes from: some letters change their length.
    let mut origins = Vec::with_capacity(text.len());
    for (index, letter) in text.char_indices() {
        lowercase.extend(letter.to_lowercase());
        origins.resize(lowercase.len(), index);
    }
    let query = query.to_lowercase();
    let found = lowercase.match_indices(&query).map(|(start, found)| {
        let last = origins[start + found.len() - 1];
        let end = text[last..].chars().next().map_or(text.len(), |letter| last + letter.len_utf8());
        origins[start]..end
    });
    found.collect()
}
