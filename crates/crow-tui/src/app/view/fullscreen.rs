//! The conversation on the whole screen: the transcript from a row of a cell on, and below it what is always visible.
//! A frame costs the cells that are visible, wherever they are.
#![expect(clippy::wildcard_enum_match_arm, reason = "an action that does not scroll has no effect")]

use std::time::Instant;

use super::{
    AppView, cell, render_bottom,
    rows::{LiveBlock, RowContext},
    status,
};
use crate::{
    app::{
        keys::KeyAction,
        state::{AppState, ScrollPlace},
    },
    text::{StyledRow, split_row, truncate_row},
};

/// Rows of one notch of the wheel.
const WHEEL_ROWS: usize = 3;

pub(super) fn view_fullscreen(state: &AppState, context: RowContext<'_>) -> AppView {
    let (bottom, question) = render_bottom(state, bottom_rows_max(state), context);
    let n_visible = visible_rows(state, &bottom);
    let top = state.scroll.unwrap_or_else(|| end_place(state, n_visible, context));
    let mut rows = Vec::new();
    for index in top.cell..state.cells.all().len() {
        let skipped = if index == top.cell { top.row } else { 0 };
        rows.extend(cell_rows(state, index, context).into_iter().skip(skipped));
        if rows.len() >= n_visible {
            break;
        }
    }
    rows.resize(n_visible, StyledRow::default());
    // One blank row is below the transcript.
    rows.push(StyledRow::default());
    let mut block = LiveBlock { rows, caret: None };
    block.append(bottom);
    let fit = |row| truncate_row(row, context.width);
    AppView {
        history: Vec::new(),
        n_committed: state.cells.n_settled(),
        live: block.rows.into_iter().map(fit).collect(),
        caret: block.caret,
        is_fullscreen: true,
        title: status::window_title(state),
        question,
    }
}

/// Returns the first visible row after scrolling; none at the end of the transcript.
pub(crate) fn scroll_transcript(state: &AppState, action: KeyAction, now: Instant) -> Option<ScrollPlace> {
    if !state.is_fullscreen {
        return None;
    }
    let context = RowContext::new(state, now);
    let bottom = render_bottom(state, bottom_rows_max(state), context).0;
    let n_visible = visible_rows(state, &bottom);
    let end = end_place(state, n_visible, context);
    let place = state.scroll.unwrap_or(end);
    let page = n_visible.saturating_sub(1).max(1);
    let n_rows = |cell| cell_rows(state, cell, context).len();
    let place = match action {
        KeyAction::PageUp => move_up(place, page, n_rows),
        KeyAction::ScrollUp => move_up(place, WHEEL_ROWS, n_rows),
        KeyAction::PageDown => move_down(place, page, end, n_rows),
        KeyAction::ScrollDown => move_down(place, WHEEL_ROWS, end, n_rows),
        _ => place,
    };
    (place < end).then_some(place)
}

fn move_up(place: ScrollPlace, n_rows: usize, rows_of: impl Fn(usize) -> usize) -> ScrollPlace {
    let (ScrollPlace { mut cell, mut row }, mut n_left) = (place, n_rows);
    while n_left > row && cell > 0 {
        n_left -= row;
        cell -= 1;
        row = rows_of(cell);
    }
    ScrollPlace { cell, row: row.saturating_sub(n_left) }
}

fn move_down(
    place: ScrollPlace,
    n_rows: usize,
    end: ScrollPlace,
    rows_of: impl Fn(usize) -> usize,
) -> ScrollPlace {
    let ScrollPlace { mut cell, row } = place;
    let mut row = row + n_rows;
    while cell < end.cell {
        let n_cell_rows = rows_of(cell);
        if row < n_cell_rows {
            break;
        }
        row -= n_cell_rows;
        cell += 1;
    }
    ScrollPlace { cell, row }.min(end)
}

/// Returns the first row of the last ones that fit.
fn end_place(state: &AppState, n_visible: usize, context: RowContext<'_>) -> ScrollPlace {
    let mut n_left = n_visible;
    for cell in (0..state.cells.all().len()).rev() {
        let n_rows = cell_rows(state, cell, context).len();
        if n_rows >= n_left {
            return ScrollPlace { cell, row: n_rows - n_left };
        }
        n_left -= n_rows;
    }
    ScrollPlace { cell: 0, row: 0 }
}

/// Renders a cell with the blank row above it. The terminal wraps nothing here.
fn cell_rows(state: &AppState, index: usize, context: RowContext<'_>) -> Vec<StyledRow> {
    let cells = state.cells.all();
    let mut previous = index.checked_sub(1).and_then(|index| cells.get(index));
    let unfolded_call = state.unfolded_call().map(|call| call.id.as_str());
    let context = RowContext { unfolded_call, ..context };
    let rows = cell::render_cells(&cells[index..=index], &mut previous, context);
    rows.into_iter().flat_map(|row| split_row(row, context.width)).collect()
}

/// The rows of the transcript that are visible.
fn visible_rows(state: &AppState, bottom: &LiveBlock) -> usize {
    usize::from(state.size.rows).saturating_sub(bottom.rows.len() + 1)
}

fn bottom_rows_max(state: &AppState) -> usize {
    usize::from(state.size.rows).saturating_sub(1).max(1)
}
