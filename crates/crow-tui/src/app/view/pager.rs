//! The pager as rows: the transcript with everything that is folded elsewhere, a text, or the keys.

use std::time::Instant;

use super::{
    cell, content,
    rows::{LiveBlock, RowContext, styled_row},
};
use crate::{
    app::{
        cells::TranscriptCell,
        keys,
        pager::{CallPlace, PagerSource, TextPager, find_text},
        state::{AppOverlay, AppState},
    },
    screen::CaretPosition,
    text::{StyledRow, StyledSpan, TextStyle, format_count, split_row, text_width, truncate_row},
};

/// Rows of the frame around the text.
const FRAME_ROWS: usize = 2;

/// Cells of the column of keys.
const KEY_COLUMNS: usize = 28;

/// All rows of the open pager.
#[derive(Debug, Default)]
pub(crate) struct PagerRows {
    pub(crate) rows: Vec<StyledRow>,
    /// The calls in it.
    pub(crate) calls: Vec<CallPlace>,
    /// Rows that are visible at once.
    pub(crate) n_visible: usize,
}

pub(crate) fn pager_rows(state: &AppState, now: Instant) -> PagerRows {
    let context = RowContext { is_complete: true, ..RowContext::new(state, now) };
    let n_visible = usize::from(state.size.rows).saturating_sub(FRAME_ROWS).max(1);
    let mut found = PagerRows { n_visible, ..PagerRows::default() };
    let Some(AppOverlay::Pager(pager)) = &state.overlay else { return found };
    match &pager.source {
        PagerSource::Transcript => {
            if state.cells.has_dropped() {
                let earlier = "… the stored session has what was earlier";
                found.rows.push(styled_row(earlier, context.theme.secondary()));
            }
            found.push_transcript(state.cells.of_session(), pager, context);
        }
        PagerSource::Child(session) => {
            let cells = state.children.find(session).map(|child| child.cells.all()).unwrap_or_default();
            found.push_transcript(cells, pager, context);
        }
        PagerSource::Text(text) => found.push_rows(content::render_patch(text, context), context),
        PagerSource::Keys => found.push_rows(key_rows(context), context),
    }
    found
}

impl PagerRows {
    /// Nothing is cut: the terminal wraps no row of this screen.
    fn push_rows(&mut self, rows: Vec<StyledRow>, context: RowContext<'_>) {
        self.rows.extend(rows.into_iter().flat_map(|row| split_row(row, context.width)));
    }

    fn push_transcript(&mut self, cells: &[TranscriptCell], pager: &TextPager, context: RowContext<'_>) {
        let mut previous = None;
        for (index, one) in cells.iter().enumerate() {
            let mut rows = cell::render_cells(std::slice::from_ref(one), &mut previous, context);
            if matches!(one, TranscriptCell::Call(_)) {
                let first = rows.iter().position(|row| !row.spans.is_empty()).unwrap_or(0);
                self.calls.push(CallPlace { cell: index, row: self.rows.len() + first });
                if pager.folded.contains(&index) {
                    let n_hidden = rows.len().saturating_sub(first + 1);
                    rows.truncate(first + 1);
                    mark_call(
                        &mut rows,
                        first,
                        &format!(" · {} folded", format_count(n_hidden, "row")),
                        context,
                    );
                }
                if pager.selected == Some(index) {
                    mark_call(&mut rows, first, " ◂", context);
                }
            }
            self.push_rows(rows, context);
        }
    }
}

/// Appends a mark to the line of a call.
fn mark_call(rows: &mut [StyledRow], first: usize, mark: &str, context: RowContext<'_>) {
    if let Some(row) = rows.get_mut(first) {
        let room = context.width.saturating_sub(text_width(mark));
        *row = truncate_row(std::mem::take(row), room);
        row.push_span(StyledSpan::styled(mark, context.theme.accent()));
    }
}

/// Renders the pager over the whole screen.
pub(super) fn render_pager(state: &AppState, pager: &TextPager, context: RowContext<'_>) -> LiveBlock {
    let theme = context.theme;
    let PagerRows { rows, n_visible, calls } = pager_rows(state, context.now);
    let mut block = LiveBlock::default();
    let n_below = pager.n_below.min(rows.len().saturating_sub(n_visible));
    let end = rows.len() - n_below;
    let heading = format!("{} · rows to {end} of {}", pager.title, rows.len());
    block.push_row(styled_row(heading, theme.heading()));
    let first = end.saturating_sub(n_visible);
    for (index, row) in rows[first..end].iter().enumerate() {
        let style = (pager.match_row == Some(first + index)).then(|| theme.accent().bold().underlined());
        block.rows.push(mark_matches(row, &pager.query, style));
    }
    let footer = match (pager.is_typing_query, pager.query.is_empty()) {
        (true, _) => format!("/{}", pager.query),
        (false, false) => search_footer(pager, &rows, context.width),
        (false, true) => footer_hint(!calls.is_empty(), context.width).to_owned(),
    };
    if pager.is_typing_query {
        let row = u16::try_from(block.rows.len()).unwrap_or(0);
        let column = u16::try_from(text_width(&footer)).unwrap_or(0);
        block.caret = Some(CaretPosition { row, column });
    }
    block.push_row(styled_row(footer, theme.secondary()));
    block
}

/// Underlines the parts of a row that match a query, or gives them a style.
fn mark_matches(row: &StyledRow, query: &str, style: Option<TextStyle>) -> StyledRow {
    let matches = find_text(&row.text(), query);
    if matches.is_empty() {
        return row.clone();
    }
    let mut marked = StyledRow { spans: Vec::new(), is_code: row.is_code };
    let mut start = 0;
    for span in &row.spans {
        let end = start + span.content.len();
        let mut at = start;
        for found in &matches {
            let (first, last) = (found.start.clamp(at, end), found.end.clamp(at, end));
            marked.push_span(StyledSpan {
                content: span.content[at - start..first - start].to_owned(),
                ..span.clone()
            });
            let content = span.content[first - start..last - start].to_owned();
            let style = style.unwrap_or(span.style.underlined());
            marked.push_span(StyledSpan { content, style, link: span.link.clone() });
            at = last;
        }
        marked.push_span(StyledSpan { content: span.content[at - start..].to_owned(), ..span.clone() });
        start = end;
    }
    marked
}

/// Describes the search: which of the matches was found last.
fn search_footer(pager: &TextPager, rows: &[StyledRow], n_columns: usize) -> String {
    let matches = pager.matching_rows(rows);
    let number = pager.match_row.and_then(|row| matches.iter().position(|&found| found == row));
    let (place, moves) = match number {
        Some(index) => {
            (format!("/{} · {} of {}", pager.query, index + 1, matches.len()), " · n next · N before")
        }
        None => (format!("/{} · no match", pager.query), ""),
    };
    let hinted = format!("{place}{moves} · / search · q closes");
    if text_width(&hinted) <= n_columns { hinted } else { place }
}

/// Returns the most of the hint that fits.
fn footer_hint(has_calls: bool, n_columns: usize) -> &'static str {
    let hints: &[&str] = match has_calls {
        true => &[
            "↑↓ space scroll · tab selects a call, enter folds it · / search · q closes",
            "↑↓ scroll · tab selects, enter folds · q closes",
            "↑↓ · tab, enter folds · / · q closes",
        ],
        false => &["↑↓ space scroll · / search · n next match · q closes", "↑↓ scroll · / search · q closes"],
    };
    hints.iter().find(|hint| text_width(hint) <= n_columns).copied().unwrap_or("q closes")
}

/// Renders the table of keys by context.
fn key_rows(context: RowContext<'_>) -> Vec<StyledRow> {
    let mut rows = Vec::new();
    let mut heading = None;
    for binding in keys::all_bindings() {
        if heading != Some(binding.context) {
            if heading.is_some() {
                rows.push(StyledRow::default());
            }
            rows.push(styled_row(binding.context.heading(), context.theme.heading()));
            heading = Some(binding.context);
        }
        let names = binding.keys.join(", ");
        let n_spaces = KEY_COLUMNS.saturating_sub(text_width(&names)).max(1);
        let mut row = StyledRow::from_span(StyledSpan::styled(format!("  {names}"), context.theme.accent()));
        row.push_span(StyledSpan::styled(" ".repeat(n_spaces), TextStyle::default()));
        row.push_span(StyledSpan::plain(binding.help));
        rows.push(row);
    }
    rows
}
