//! Changes the state by one event. Pure: no input, no output, no clock.

mod agent;
mod children;
mod commands;
mod completing;
mod composing;
mod input;
mod key_time;
mod picking;
mod questions;
mod rewinding;
mod sending;
mod transcript;

use std::time::Instant;

use super::{
    event::{AppCommand, AppEvent, DrawnFrame},
    state::AppState,
};

/// Applies an event and returns what has to be done outside.
pub(crate) fn update(state: &mut AppState, event: AppEvent, now: Instant) -> Vec<AppCommand> {
    match event {
        AppEvent::Input(input) => input::on_input(state, input, now),
        AppEvent::FrameDrawn(frame) => on_frame_drawn(state, frame, now),
        AppEvent::Tick => children::refresh_list(state, now),
        AppEvent::Terminate => sending::quit(state),
        AppEvent::Connected(capabilities) => state.session.capabilities = Some(capabilities),
        AppEvent::SessionOpened(result) => agent::on_session_opened(state, result, now),
        AppEvent::Update { message, update } => agent::on_update(state, message, update, now),
        AppEvent::ChildUpdate { session, message, update } => {
            children::on_child_update(state, &session, message, update, now);
        }
        AppEvent::Permission { id, request } => {
            questions::on_question(state, id, super::question::QuestionSubject::Call(request));
        }
        AppEvent::Form { id, form } => {
            questions::on_question(state, id, super::question::QuestionSubject::Form(form));
        }
        AppEvent::QuestionWithdrawn(id) => questions::on_withdrawn(state, id),
        AppEvent::TurnEnded(result) => agent::on_turn_ended(state, result, now),
        AppEvent::Steered { text, result } => sending::on_steered(state, &text, result, now),
        AppEvent::OptionSet(result) => agent::on_option_set(state, result, now),
        AppEvent::SessionsListed(result) => picking::on_sessions_listed(state, result, now),
        AppEvent::PromptsListed(result) => rewinding::on_prompts_listed(state, result, now),
        AppEvent::FilesMatched { query, paths } => completing::on_files_matched(state, &query, paths),
        AppEvent::CommandOutput(text) => commands::on_output(state, &text),
        AppEvent::CommandEnded(end) => commands::on_command_ended(state, end),
        AppEvent::EditorClosed(result) => composing::on_editor_closed(state, result, now),
        AppEvent::ImageRead { result, pasted } => composing::on_image_read(state, result, pasted, now),
        AppEvent::HistoryLoaded(entries) => state.history.prepend(entries),
        AppEvent::DraftLoaded(text) => composing::on_draft_loaded(state, text),
        AppEvent::Reported(result) => commands::on_reported(state, result, now),
        AppEvent::TextLoaded { title, text } => commands::on_text_loaded(state, &title, text, now),
        AppEvent::BranchRead(branch) => state.session.branch = branch,
    }
    completing::close_outdated(state);
    store_draft(state, now);
    std::mem::take(&mut state.commands)
}

/// Stores the draft when it has not changed for a moment, and at the end.
fn store_draft(state: &mut AppState, now: Instant) {
    let text = state.draft_text();
    state.saved_draft.note_text(text, now);
    let due = match state.is_quitting {
        true => state.saved_draft.take_changed(),
        false => state.saved_draft.take_due(now),
    };
    if let Some(text) = due {
        state.request(AppCommand::StoreDraft(text));
    }
}

/// Records the parts of a frame that are on the screen now.
fn on_frame_drawn(state: &mut AppState, frame: DrawnFrame, now: Instant) {
    state.cells.commit(frame.n_committed);
    if let Some(drawn) = frame.question
        && let Some(question) = state.question().filter(|question| question.id == drawn.id)
    {
        question.mark_drawn(drawn, now);
    }
}

#[cfg(test)]
mod tests;
