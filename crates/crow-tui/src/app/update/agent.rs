//! Events of the agent: its session, its updates, the end of a turn.

use std::time::{Duration, Instant};

use crow_acp::{AgentUpdate, ConfigOption, OpenedSession, PromptOutcome, StopReason};
use crow_core::{Failure, FailureKind};

use super::{children, completing, rewinding, sending, transcript::show_update};
use crate::app::{
    cells::TranscriptCell,
    event::AppCommand,
    state::{AppState, SessionUsage},
};

/// The end of a shorter turn needs no attention.
const LONG_TURN: Duration = Duration::from_secs(10);

pub(super) fn on_session_opened(state: &mut AppState, result: Result<OpenedSession, Failure>, now: Instant) {
    state.session.is_loading = false;
    state.cells.end_stream();
    state.cells.fail_open_calls(now);
    match result {
        Ok(opened) => {
            state.session.id = Some(opened.session);
            state.session.options = opened.options;
            rewinding::on_session_opened(state);
            state.request(AppCommand::ReadBranch);
            sending::send_next(state, now);
        }
        Err(failure) => {
            rewinding::on_session_failed(state);
            state.cells.push(TranscriptCell::Problem(failure_text(&failure)));
            if state.session.id.is_none() {
                sending::take_queue_back(state);
            }
        }
    }
}

/// The message of a failure, and what can be done.
fn failure_text(failure: &Failure) -> String {
    let hint = match failure.kind {
        FailureKind::SessionNotFound => Some("/resume lists the sessions, /new starts one"),
        FailureKind::Config | FailureKind::ModelNotFound => {
            Some("`crow-cli init` sets up a provider and a model")
        }
        FailureKind::AuthRequired => Some("log in with the agent's own program first"),
        FailureKind::InvalidValue
        | FailureKind::ProviderAuth
        | FailureKind::ProviderRate
        | FailureKind::ProviderOverloaded
        | FailureKind::ProviderRejected
        | FailureKind::ContextOverflow
        | FailureKind::Connection
        | FailureKind::Protocol
        | FailureKind::Store
        | FailureKind::Internal => None,
    };
    // Some messages have the hint already.
    let hint = hint.filter(|_| !failure.message.contains("crow-cli"));
    let hint = hint.map(|hint| format!("\n{hint}")).unwrap_or_default();
    format!("{}{hint}", failure.message)
}

pub(super) fn on_option_set(state: &mut AppState, result: Result<Vec<ConfigOption>, Failure>, now: Instant) {
    match result {
        Ok(options) if !options.is_empty() => state.session.options = options,
        Ok(_) => {}
        Err(failure) => state.set_flash(failure.message, now),
    }
}

pub(super) fn on_update(state: &mut AppState, message: Option<String>, update: AgentUpdate, now: Instant) {
    match update {
        AgentUpdate::Text(text) => {
            count_letters(state, &text);
            show_update(&mut state.cells, message, AgentUpdate::Text(text), now);
        }
        AgentUpdate::Thought(text) => {
            count_letters(state, &text);
            show_update(&mut state.cells, message, AgentUpdate::Thought(text), now);
        }
        AgentUpdate::Prompt(text) => on_prompt(state, &text),
        AgentUpdate::Child { .. } => children::on_child(state, None, update, now),
        AgentUpdate::Plan(entries) => state.plan = entries,
        AgentUpdate::Title(title) => state.session.title = Some(title),
        AgentUpdate::Usage { used, size, cost, is_estimate, .. } => {
            state.session.usage = Some(SessionUsage { used, size, is_estimate, cost });
        }
        AgentUpdate::Mode(mode) => {
            let option = state.session.options.iter_mut().find(|option| option.is_about("mode"));
            if let Some(option) = option {
                option.current = mode;
            }
        }
        AgentUpdate::Options(options) => state.session.options = options,
        AgentUpdate::Commands(commands) => {
            state.session.commands = Some(commands);
            // What was typed before they were known may be one of them.
            if state.composer.text().starts_with('/') {
                completing::refresh(state);
            }
        }
        AgentUpdate::Call { .. }
        | AgentUpdate::CallOutput { .. }
        | AgentUpdate::CallResult { .. }
        | AgentUpdate::CallExit { .. }
        | AgentUpdate::Notice(_)
        | AgentUpdate::Compaction(_)
        | AgentUpdate::Outcome(_) => show_update(&mut state.cells, message, update, now),
    }
}

fn count_letters(state: &mut AppState, text: &str) {
    if let Some(turn) = &mut state.turn {
        turn.n_letters += text.chars().count();
    }
}

/// A prompt of a replay is shown as such; one that arrives between is from a task, or an echo of ours.
fn on_prompt(state: &mut AppState, text: &str) {
    if state.session.is_loading {
        state.cells.append_prompt(text);
    } else if !state.session.last_prompt.contains(text.trim()) {
        let line = text.lines().next().unwrap_or_default().to_owned();
        state.cells.push(TranscriptCell::Notice(line));
    }
}

pub(super) fn on_turn_ended(state: &mut AppState, result: Result<PromptOutcome, Failure>, now: Instant) {
    state.cells.end_stream();
    state.cells.fail_open_calls(now);
    let plan = std::mem::take(&mut state.plan);
    if !plan.is_empty() {
        state.cells.push(TranscriptCell::Plan(plan));
    }
    let turn = state.turn.take();
    let has_completed = matches!(&result, Ok(outcome) if outcome.stop_reason == StopReason::EndTurn);
    match result {
        Ok(outcome) => {
            if let Some(text) = stop_notice(outcome.stop_reason) {
                state.cells.push(TranscriptCell::Notice(text.to_owned()));
            }
        }
        Err(failure) => state.cells.push(TranscriptCell::Problem(failure_text(&failure))),
    }
    state.request(AppCommand::ReadBranch);
    let is_long = turn.is_some_and(|turn| now.saturating_duration_since(turn.started_at) >= LONG_TURN);
    if is_long && !state.has_window_focus && state.queue.is_empty() {
        state.request(AppCommand::Alert("Crow is done".to_owned()));
    }
    rewinding::on_turn_ended(state, has_completed, now);
    sending::send_next(state, now);
}

fn stop_notice(reason: StopReason) -> Option<&'static str> {
    match reason {
        StopReason::EndTurn => None,
        StopReason::Cancelled => Some("stopped"),
        StopReason::MaxTokens => Some("the answer was truncated at the token limit"),
        StopReason::MaxTurnRequests => {
            Some("the turn reached a limit before the model was done; a prompt continues it")
        }
        StopReason::Refusal => Some("the model refused to answer"),
    }
}
