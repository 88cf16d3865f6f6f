//! The part of the live region that says what is under way: the plan, the queue and the live line.

use std::time::Duration;

use crow_core::ToolCallStatus;

use super::{
    call::{SPINNER, SPINNER_TIME},
    cell,
    rows::{LiveBlock, RowContext, styled_row},
};
use crate::{
    app::{
        cells::TranscriptCell,
        keys::{KeyAction, key_for},
        state::{AppState, RunningTurn},
    },
    text::{StyledRow, StyledSpan, format_elapsed, sanitize_line, text_width, truncate_row},
};

/// Letters of a token, about.
const LETTERS_PER_TOKEN: usize = 4;

/// Columns of the activity for which tokens and the hint give way.
const ACTIVITY_COLUMNS: usize = 24;

/// Renders the plan and the texts that wait, as far as there is room.
pub(super) fn render_plan_and_queue(state: &AppState, n_rows: usize, context: RowContext<'_>) -> LiveBlock {
    let mut rows = Vec::new();
    if !state.plan.is_empty() {
        rows.extend(cell::render_plan(&state.plan, context));
    }
    let for_turn = state.steering.iter().map(|text| ("for this turn", text.clone()));
    let queued = state.queue.iter().map(|draft| ("queued", draft.full_text()));
    for (label, text) in for_turn.chain(queued) {
        let line = sanitize_line(text.lines().next().unwrap_or_default());
        rows.push(styled_row(format!("↳ {label}: {line}"), context.theme.secondary()));
    }
    let n_hidden = rows.len().saturating_sub(n_rows);
    LiveBlock { rows: rows.into_iter().skip(n_hidden).collect(), caret: None }
}

/// Renders the line that moves while anything is under way.
pub(super) fn render_live_line(state: &AppState, context: RowContext<'_>) -> LiveBlock {
    let theme = context.theme;
    let Some(turn) = &state.turn else {
        let waiting = match (&state.session.id, state.session.is_loading, &state.session.capabilities) {
            (None, _, None) => Some("Starting the agent …"),
            (None, true, Some(_)) => Some("Opening the session …"),
            (Some(_), _, _) | (None, false, Some(_)) => None,
        };
        let rows = waiting.map(|text| styled_row(text, theme.secondary())).into_iter().collect();
        return LiveBlock { rows, caret: None };
    };
    let elapsed = context.now.saturating_duration_since(turn.started_at);
    let frame = elapsed.as_millis() / SPINNER_TIME.as_millis();
    let spinner = SPINNER[usize::try_from(frame).unwrap_or(0) % SPINNER.len()];
    let mut row = StyledRow::from_span(StyledSpan::styled(spinner, theme.warning()));
    row.push_span(StyledSpan::styled(format!(" {}", activity(state)), theme.heading()));
    let n_left = context.width.saturating_sub(row.width().min(ACTIVITY_COLUMNS));
    let facts = turn_facts(turn, elapsed, n_left);
    let mut row = truncate_row(row, context.width.saturating_sub(text_width(&facts)));
    row.push_span(StyledSpan::styled(facts, theme.secondary()));
    LiveBlock { rows: vec![row], caret: None }
}

/// Returns the time, and of the tokens and the hint what fits.
fn turn_facts(turn: &RunningTurn, elapsed: Duration, n_columns: usize) -> String {
    let time = format!(" · {}", format_elapsed(elapsed));
    let hint = match turn.is_stopping {
        true => " · ctrl-c twice quits".to_owned(),
        false => format!(" · {} stops", key_for(KeyAction::StopTurn)),
    };
    let tokens = match turn.n_letters / LETTERS_PER_TOKEN {
        0 => String::new(),
        n_tokens => format!(" · ↓ {} tokens", short_number(n_tokens)),
    };
    let choices = [format!("{time}{tokens}{hint}"), format!("{time}{hint}")];
    choices.into_iter().find(|facts| text_width(facts) <= n_columns).unwrap_or(time)
}

/// Describes in a few words the work that is under way.
fn activity(state: &AppState) -> String {
    if state.turn.as_ref().is_some_and(|turn| turn.is_stopping) {
        return "Stopping".to_owned();
    }
    if !state.questions.is_empty() {
        return "Waiting for your answer".to_owned();
    }
    let running: Vec<&str> = state
        .cells
        .open_calls()
        .filter(|call| call.status == ToolCallStatus::InProgress)
        .map(|call| call.title.as_str())
        .collect();
    match running.as_slice() {
        [] => {}
        [title] => return format!("Running {}", sanitize_line(title)),
        calls => return format!("Running {} calls", calls.len()),
    }
    let is_streaming = state.cells.is_streaming();
    match state.cells.all().last() {
        Some(TranscriptCell::Text(_)) if is_streaming => "Writing".to_owned(),
        Some(TranscriptCell::Thought(text)) if is_streaming => {
            let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
            let last = sanitize_line(last);
            format!("Thinking: {}", last.trim())
        }
        _ => "Working".to_owned(),
    }
}

/// A number as in `950`, `1.2k` or `3.4M`.
pub(super) fn short_number(number: usize) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{}.{}k", number / 1_000, number % 1_000 / 100),
        _ => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

/// The time of the next frame if anything moves by itself.
pub(crate) fn next_frame_in(state: &AppState) -> Option<Duration> {
    let moves = state.turn.is_some();
    moves.then_some(SPINNER_TIME)
}
