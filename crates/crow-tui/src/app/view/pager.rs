//! The pager as rows: the transcript with everything that is folded elsewhere, a text, or the keys.

use std::time::Instant;

use super::{
    cell, content,
    rows::{LiveBlock, RowContext, styled_row},
};
use crate::{
    app::{
        keys,
        pager::{PagerSource, TextPager},
        state::{AppOverlay, AppState},
    },
    screen::CaretPosition,
    text::{StyledRow, StyledSpan, TextStyle, split_row, text_width},
};

/// Rows of the frame around the text.
const FRAME_ROWS: usize = 2;

/// Cells of the column of keys.
const KEY_COLUMNS: usize = 28;

/// Returns all rows of the open pager, and how many of them are visible at once.
pub(crate) fn pager_rows(state: &AppState, now: Instant) -> (Vec<StyledRow>, usize) {
    let context = RowContext { is_complete: true, ..RowContext::new(state, now) };
    let n_visible = usize::from(state.size.rows).saturating_sub(FRAME_ROWS).max(1);
    let rows = match &state.overlay {
        Some(AppOverlay::Pager(pager)) => source_rows(state, pager, context),
        Some(AppOverlay::Picker(_)) | None => Vec::new(),
    };
    (rows, n_visible)
}

fn source_rows(state: &AppState, pager: &TextPager, context: RowContext<'_>) -> Vec<StyledRow> {
    let rows = match &pager.source {
        PagerSource::Transcript => {
            let earlier = "… the stored session has what was earlier";
            let mut rows: Vec<StyledRow> = match state.cells.has_dropped() {
                true => vec![styled_row(earlier, context.theme.secondary())],
                false => Vec::new(),
            };
            rows.extend(cell::render_cells(state.cells.of_session(), &mut None, context));
            rows
        }
        PagerSource::Child(session) => {
            let cells = state.children.find(session).map(|child| child.cells.all()).unwrap_or_default();
            cell::render_cells(cells, &mut None, context)
        }
        PagerSource::Text(text) => content::render_patch(text, context),
        PagerSource::Keys => key_rows(context),
    };
    // Nothing is cut: the terminal wraps no row of this screen.
    rows.into_iter().flat_map(|row| split_row(row, context.width)).collect()
}

/// Renders the pager over the whole screen.
pub(super) fn render_pager(state: &AppState, pager: &TextPager, context: RowContext<'_>) -> LiveBlock {
    let theme = context.theme;
    let (rows, n_visible) = pager_rows(state, context.now);
    let mut block = LiveBlock::default();
    let n_below = pager.n_below.min(rows.len().saturating_sub(n_visible));
    let end = rows.len() - n_below;
    let heading = format!("{} · rows to {end} of {}", pager.title, rows.len());
    block.push_row(styled_row(heading, theme.heading()));
    block.rows.extend(pager.visible_rows(&rows, n_visible).iter().cloned());
    let footer = match pager.is_typing_query {
        true => format!("/{}", pager.query),
        false => "↑↓ space scroll · / search · n next match · q closes".to_owned(),
    };
    if pager.is_typing_query {
        let row = u16::try_from(block.rows.len()).unwrap_or(0);
        let column = u16::try_from(text_width(&footer)).unwrap_or(0);
        block.caret = Some(CaretPosition { row, column });
    }
    block.push_row(styled_row(footer, theme.secondary()));
    block
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
