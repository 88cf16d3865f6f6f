//! Going back to an earlier prompt: the list, the ways that the agent has, and the steps of each.

use std::time::Instant;

use crow_acp::EarlierPrompt;
use crow_core::Failure;

use super::sending;
use crate::app::{
    cells::TranscriptCell,
    composer::buffer::DraftBuffer,
    event::{AppCommand, SessionChoice},
    picker::{ListPicker, PickerEntry, PickerKind},
    rewind::{RewindTarget, RewindWay},
    state::{AppOverlay, AppState},
};

/// Asks the agent for the prompts to go back to; one that cannot go back has those of this client.
pub(super) fn list_prompts(state: &mut AppState, now: Instant) {
    state.flash = None;
    let can_go_back = state.session.capabilities.is_some_and(|capabilities| capabilities.earlier_prompts);
    if can_go_back && state.session.id.is_some() {
        return state.request(AppCommand::ListPrompts);
    }
    let prompts = state.cells.of_session().iter().rev().filter_map(TranscriptCell::as_prompt);
    let targets = RewindTarget::from_texts(prompts);
    open_list(state, targets, now);
}

pub(super) fn on_prompts_listed(
    state: &mut AppState,
    result: Result<Vec<EarlierPrompt>, Failure>,
    now: Instant,
) {
    match result {
        // The list was asked for before the user went on.
        Ok(_) if !state.is_idle() || !state.composer.is_empty() => {}
        Ok(prompts) => open_list(state, RewindTarget::from_prompts(prompts), now),
        Err(failure) => state.cells.push(TranscriptCell::Problem(failure.message)),
    }
}

fn open_list(state: &mut AppState, targets: Vec<RewindTarget>, now: Instant) {
    if targets.is_empty() {
        return state.set_flash("there is no earlier prompt", now);
    }
    let entries = targets.iter().enumerate().map(|(index, target)| PickerEntry {
        value: index.to_string(),
        label: target.text.lines().next().unwrap_or_default().to_owned(),
        detail: file_count(target.n_undoable_files),
        is_current: false,
    });
    let picker = ListPicker::new(PickerKind::EarlierPrompts, "Go back to", entries.collect());
    state.overlay = Some(AppOverlay::Picker(picker));
    state.rewind.targets = targets;
}

fn file_count(n_files: u64) -> String {
    match n_files {
        0 => String::new(),
        1 => "1 file changed since".to_owned(),
        n_files => format!("{n_files} files changed since"),
    }
}

/// Asks how to go back to a prompt, if the agent has more than one way.
pub(super) fn choose_prompt(state: &mut AppState, index: &str, now: Instant) {
    let mut targets = std::mem::take(&mut state.rewind.targets).into_iter();
    let Some(target) = index.parse().ok().and_then(|index| targets.nth(index)) else { return };
    let entries: Vec<PickerEntry> = target.ways().into_iter().map(|way| way_entry(way, &target)).collect();
    let is_choice = entries.len() > 1;
    state.rewind.chosen = Some(target);
    match is_choice {
        true => {
            state.overlay = Some(AppOverlay::Picker(ListPicker::new(PickerKind::GoBack, "Go back", entries)));
        }
        false => choose_way(state, RewindWay::Text.as_str(), now),
    }
}

fn way_entry(way: RewindWay, target: &RewindTarget) -> PickerEntry {
    let files = match target.n_undoable_files {
        1 => "1 file".to_owned(),
        n_files => format!("{n_files} files"),
    };
    let (label, detail) = match way {
        RewindWay::Conversation => {
            ("Conversation only", "in a copy that ends before this prompt; files stay".to_owned())
        }
        RewindWay::Files => ("Files only", format!("undo the changes of {files}; the conversation stays")),
        RewindWay::Both => ("Conversation and files", format!("undo the changes of {files}, then the copy")),
        RewindWay::Text => ("Only the text of the prompt", "nothing else changes".to_owned()),
    };
    PickerEntry { value: way.as_str().to_owned(), label: label.to_owned(), detail, is_current: false }
}

/// Goes back: undoes changes first, then opens the copy. The text of the prompt returns to the composer.
pub(super) fn choose_way(state: &mut AppState, way: &str, now: Instant) {
    let Some(target) = state.rewind.chosen.take() else { return };
    let Some(way) = RewindWay::ALL.into_iter().find(|known| known.as_str() == way) else { return };
    match way {
        RewindWay::Text => {
            state.composer.set_text(&target.text);
            if target.message.is_none() {
                state.set_flash("this agent cannot go back: the conversation goes on as it is", now);
            }
        }
        RewindWay::Conversation => open_copy(state, target, now),
        RewindWay::Files | RewindWay::Both => {
            let mut undo = DraftBuffer::default();
            undo.set_text(&format!("/undo {}", target.n_undoable_turns));
            sending::start_turn(state, &undo, now);
            state.composer.set_text(&target.text);
            if way == RewindWay::Both {
                state.rewind.copy_after_turn = Some(target);
            }
        }
    }
}

/// Continues after a turn: opens the copy if the turn was the undo before it.
pub(super) fn on_turn_ended(state: &mut AppState, has_completed: bool, now: Instant) {
    if let Some(target) = state.rewind.copy_after_turn.take().filter(|_| has_completed) {
        // It is set again when the copy is open.
        if state.composer.text() == target.text {
            state.composer.take();
        }
        open_copy(state, target, now);
    }
}

fn open_copy(state: &mut AppState, target: RewindTarget, now: Instant) {
    let (Some(id), Some(message)) = (state.session.id.clone(), target.message.clone()) else { return };
    (state.rewind.copy, state.rewind.origin) = (Some(target), Some(id.clone()));
    sending::open_other(state, SessionChoice::ForkBefore { session: id.to_string(), message }, now);
}

/// Returns to the session that could not be copied.
pub(super) fn on_session_failed(state: &mut AppState) {
    state.rewind.copy = None;
    if let Some(origin) = state.rewind.origin.take() {
        state.session.id = Some(origin);
    }
}

/// Continues when a session is open: the transcript of the copy ends before the prompt, which can be edited now.
pub(super) fn on_session_opened(state: &mut AppState) {
    state.rewind.origin = None;
    let Some(target) = state.rewind.copy.take() else { return };
    let has_prompt = state.cells.remove_from_prompt(&target.text, target.n_repeats);
    let mut draft = DraftBuffer::default();
    draft.set_text(&target.text);
    draft.append_draft(&state.composer.take());
    state.composer = draft;
    let missing = if has_prompt { "" } else { "; the transcript above also has what followed" };
    state.cells.push(TranscriptCell::Notice(format!(
        "back before this prompt, in a copy; the whole conversation is still in its own session{missing}"
    )));
}
