//! The state as rows. Pure: the same state, size and time give the same rows.

mod call;
mod cell;
mod composer;
mod content;
mod fullscreen;
mod lists;
mod live;
mod pager;
mod permission;
mod question;
mod rows;
mod status;

use std::time::Instant;

use self::rows::{LiveBlock, RowContext};
pub(crate) use self::{
    fullscreen::scroll_transcript,
    live::next_frame_in,
    pager::{PagerRows, pager_rows},
};
use super::{
    cells::{CallCell, TranscriptCell},
    event::DrawnQuestion,
    keys::{self, KeyAction},
    state::{AppOverlay, AppState},
};
use crate::{
    screen::CaretPosition,
    text::{StyledRow, truncate_row},
};

/// Rows that the open cells keep at least, if there are any.
const OPEN_ROWS_MIN: usize = 2;

/// Rows of a low window, in which a question that needs its row takes the place of the live line.
const LOW_WINDOW_ROWS: usize = 7;

/// A frame before it is drawn.
#[derive(Debug, Clone, Default)]
pub(crate) struct AppView {
    /// Rows of the cells that become history with this frame.
    pub(crate) history: Vec<StyledRow>,
    pub(crate) n_committed: usize,
    pub(crate) live: Vec<StyledRow>,
    pub(crate) caret: Option<CaretPosition>,
    /// The live rows cover the whole screen.
    pub(crate) is_fullscreen: bool,
    pub(crate) title: String,
    /// The question in this frame.
    pub(crate) question: Option<DrawnQuestion>,
}

/// Makes the frame of a state.
pub(crate) fn view(state: &AppState, now: Instant) -> AppView {
    let context = RowContext::new(state, now);
    let rows_max = state.size.live_rows_max();
    let title = status::window_title(state);
    if let Some(AppOverlay::Pager(pager)) = &state.overlay {
        let block = pager::render_pager(state, pager, context);
        return AppView {
            live: block.rows,
            caret: block.caret,
            is_fullscreen: true,
            title,
            ..AppView::default()
        };
    }
    if state.is_fullscreen {
        return fullscreen::view_fullscreen(state, context);
    }
    let uncommitted = state.cells.uncommitted();
    let n_settled = state.cells.n_settled();
    let mut previous = state.cells.last_committed();
    let history = cell::render_cells(&uncommitted[..n_settled], &mut previous, context);
    let (bottom, question) = render_bottom(state, rows_max, context);
    let unfolded = state.unfolded_call();
    let open_context = RowContext { unfolded_call: unfolded.map(|call| call.id.as_str()), ..context };
    let mut open = cell::render_cells(&uncommitted[n_settled..], &mut previous, open_context);
    let is_open = |call: &CallCell| {
        let is_it = |cell: &TranscriptCell| matches!(cell, TranscriptCell::Call(open) if open.id == call.id);
        uncommitted[n_settled..].iter().any(is_it)
    };
    if let Some(call) = unfolded.filter(|call| !is_open(call)) {
        // The history has it folded.
        open.push(StyledRow::default());
        open.extend(call::render_unfolded(call, context));
    }
    let n_free = rows_max.saturating_sub(bottom.rows.len());
    let n_hidden = open.len().saturating_sub(n_free);
    let mut live = LiveBlock { rows: open.into_iter().skip(n_hidden).collect(), caret: None };
    if let Some(first) = live.rows.first_mut().filter(|_| n_hidden > 0 && unfolded.is_some()) {
        let text =
            format!("… {} rows above · {} shows all", n_hidden + 1, keys::key_for(KeyAction::ShowTranscript));
        *first = rows::styled_row(text, context.theme.secondary());
    }
    if previous.is_some() && live.rows.len() < n_free {
        live.push_row(StyledRow::default());
    }
    live.append(bottom);
    let fit = |row| truncate_row(row, context.width);
    AppView {
        history,
        n_committed: n_settled,
        live: live.rows.into_iter().map(fit).collect(),
        caret: live.caret,
        title,
        question,
        is_fullscreen: false,
    }
}

/// Returns the rows of all cells that are history already, at the current width.
pub(crate) fn history_rows(state: &AppState, now: Instant) -> Vec<StyledRow> {
    let context = RowContext::new(state, now);
    let n_committed = state.cells.all().len() - state.cells.uncommitted().len();
    cell::render_cells(&state.cells.all()[..n_committed], &mut None, context)
}

/// Renders all below the open cells: plan, queue, live line, question or list, composer, status line.
fn render_bottom(
    state: &AppState,
    rows_max: usize,
    context: RowContext,
) -> (LiveBlock, Option<DrawnQuestion>) {
    let composer = composer::render_composer(state, (rows_max / 3).max(1), context);
    let mut status = status::render_status(state, context);
    let mut live_line = live::render_live_line(state, context);
    let is_low = rows_max <= LOW_WINDOW_ROWS;
    let has_question = !state.questions.is_empty();
    if has_question && composer.rows.len() + status.rows.len() >= rows_max {
        // A question has one row at least.
        status = LiveBlock::default();
    }
    let has_open_cells = state.cells.n_settled() < state.cells.uncommitted().len();
    let n_open = if has_open_cells && !(is_low && has_question) { OPEN_ROWS_MIN } else { 0 };
    let n_shared = rows_max.saturating_sub(composer.rows.len() + status.rows.len() + n_open);
    let needs_row = |question| question::count_rows(question, context) + live_line.rows.len() > n_shared;
    if is_low && state.questions.front().is_some_and(needs_row) {
        live_line = LiveBlock::default();
    }
    let n_left = n_shared.saturating_sub(live_line.rows.len());
    let mut block = LiveBlock::default();
    let mut shown = None;
    let middle = match (&state.overlay, state.questions.front(), &state.completion) {
        (Some(AppOverlay::Picker(picker)), _, _) => lists::render_picker(picker, n_left, context),
        (_, Some(question), _) => {
            let (rows, drawn) = question::render_question(state, question, n_left, context);
            shown = Some(drawn);
            rows
        }
        (_, None, Some(list)) => lists::render_completions(list, n_left, context),
        (_, None, None) => LiveBlock::default(),
    };
    let n_left = n_left.saturating_sub(middle.rows.len());
    block.append(live::render_plan_and_queue(state, n_left, context));
    block.append(live_line);
    block.append(middle);
    let is_only_question =
        rows_max == 1 && state.questions.front().is_some_and(|question| !question.takes_text);
    let covers_composer = is_only_question || matches!(state.overlay, Some(AppOverlay::Picker(_)));
    if !covers_composer {
        block.append(composer);
    }
    block.append(status);
    let is_cut = block.rows.len() > rows_max || context.width > usize::from(state.size.columns);
    // The screen has no room for some of these rows: none of the question counts as seen.
    let shown = shown.map(|drawn| if is_cut { DrawnQuestion { end: drawn.first, ..drawn } } else { drawn });
    (block, shown)
}

#[cfg(test)]
mod tests;
