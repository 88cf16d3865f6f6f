//! Prompts on their way to the agent: sent, added to the turn, queued, taken back. And the ways out.

use std::time::{Duration, Instant};

use crow_core::{ContentPart, Failure};

use crate::app::{
    cells::TranscriptCell,
    composer::{
        buffer::{DraftAtom, DraftBuffer},
        vi::ViState,
    },
    event::{AppCommand, SessionChoice},
    question::WaitingQuestion,
    state::{AppState, QUEUE_MAX, RunningTurn},
};

/// Two presses of Ctrl-C within this time quit.
const QUIT_TIME: Duration = Duration::from_millis(1500);

/// Sends the draft, adds it to the running turn, or queues it.
pub(super) fn send_draft(state: &mut AppState, now: Instant) {
    remember_draft(state);
    state.unfolded_call = None;
    // The next prompt is typed, as at the start.
    state.vi.iter_mut().for_each(|vi| *vi = ViState::default());
    let draft = state.composer.take();
    let can_steer = state.session.capabilities.is_some_and(|capabilities| capabilities.steering);
    let is_stopping = state.turn.as_ref().is_some_and(|turn| turn.is_stopping);
    match (&state.turn, &state.session.id) {
        (None, Some(_)) => start_turn(state, &draft, now),
        (Some(_), Some(_)) if can_steer && !is_stopping && draft.images().next().is_none() => {
            steer(state, draft.full_text());
        }
        (Some(_), _) => push_to_queue(state, draft, now),
        (None, None) => {
            push_to_queue(state, draft, now);
            // None is being opened if the one that was asked for could not be.
            state.open_missing_session();
        }
    }
}

/// Queues the draft behind the running turn.
pub(super) fn queue_draft(state: &mut AppState, now: Instant) {
    if state.composer.full_text().trim().is_empty() {
        return;
    }
    remember_draft(state);
    let draft = state.composer.take();
    push_to_queue(state, draft, now);
}

/// Sends a text to the running turn. It is a prompt of the transcript when the model reads it.
pub(super) fn steer(state: &mut AppState, text: String) {
    state.steering.push_back(text.clone());
    state.request(AppCommand::Steer(text));
}

pub(super) fn on_steered(state: &mut AppState, text: &str, result: Result<(), Failure>, now: Instant) {
    // The answer to a text of a session that is no longer open is not for this one.
    let Some(index) = state.steering.iter().position(|waiting| waiting == text) else { return };
    state.steering.remove(index);
    let Err(failure) = result else { return state.cells.push(TranscriptCell::Prompt(text.to_owned())) };
    let mut draft = DraftBuffer::default();
    draft.set_text(text);
    if state.turn.as_ref().is_none_or(|turn| turn.is_stopping) {
        // The user stopped the turn: nothing goes on by itself.
        draft.append_draft(&state.composer.take());
        state.composer = draft;
        return;
    }
    state.cells.push(TranscriptCell::Problem(format!("not added to the turn, queued: {}", failure.message)));
    push_to_queue(state, draft, now);
}

fn push_to_queue(state: &mut AppState, draft: DraftBuffer, now: Instant) {
    if state.queue.len() >= QUEUE_MAX {
        state.set_flash("the queue is full", now);
        state.composer = draft;
    } else {
        state.queue.push_back(draft);
    }
}

/// Sends the next queued prompt, if the agent is free.
pub(super) fn send_next(state: &mut AppState, now: Instant) {
    if state.turn.is_none()
        && state.session.id.is_some()
        && let Some(draft) = state.queue.pop_front()
    {
        start_turn(state, &draft, now);
    }
}

/// Returns queued prompts to the composer, before what is there.
pub(super) fn take_queue_back(state: &mut AppState) {
    if state.queue.is_empty() {
        return;
    }
    let typed = state.composer.take();
    for draft in std::mem::take(&mut state.queue) {
        state.composer.append_draft(&draft);
    }
    state.composer.append_draft(&typed);
}

/// Starts a turn with a prompt.
pub(super) fn start_turn(state: &mut AppState, draft: &DraftBuffer, now: Instant) {
    let text = draft.full_text();
    let mut content = vec![ContentPart::Text(text.clone())];
    content.extend(draft.images().filter_map(|atom| match atom {
        DraftAtom::Image { mime, data, .. } => {
            Some(ContentPart::Image { mime: mime.clone(), data: data.clone() })
        }
        DraftAtom::Pasted(_) => None,
    }));
    state.session.last_prompt.clone_from(&text);
    state.cells.push(TranscriptCell::Prompt(shown_text(draft)));
    state.expects_text = false;
    state.turn = Some(RunningTurn { started_at: now, is_stopping: false, n_letters: 0 });
    state.request(AppCommand::SendPrompt(content));
}

/// The draft as the transcript shows it: folded pastes stay folded.
fn shown_text(draft: &DraftBuffer) -> String {
    let mut shown = String::new();
    for letter in draft.text().chars() {
        match draft.find_atom(letter) {
            Some(atom) => shown.push_str(&atom.label()),
            None => shown.push(letter),
        }
    }
    shown
}

/// Cancels the turn. Open questions are dropped, and queued prompts return to the composer.
pub(super) fn stop_turn(state: &mut AppState) {
    let Some(turn) = &mut state.turn else { return };
    if !turn.is_stopping {
        turn.is_stopping = true;
        state.request(AppCommand::CancelTurn);
    }
    restore_draft(state);
    for question in std::mem::take(&mut state.questions) {
        state.request(AppCommand::DropQuestion(question.id));
    }
    take_queue_back(state);
}

/// Returns the draft that an answer had displaced; an unfinished answer stays in it, but for a prefix.
pub(super) fn restore_draft(state: &mut AppState) {
    let has_prefix = state.questions.front().is_some_and(WaitingQuestion::edits_prefix);
    if let Some(mut draft) = state.stashed_draft.take() {
        let answer = state.composer.take();
        if !has_prefix {
            draft.append_draft(&answer);
        }
        state.composer = draft;
    }
}

/// Stores the draft in the history, whatever happens to it next.
fn remember_draft(state: &mut AppState) {
    let text = state.composer.full_text();
    if let Some(entry) = state.history.add(&text) {
        state.request(AppCommand::StoreHistory(entry));
    }
}

/// Clears the draft, or stops what runs; the second press within a short time quits.
pub(super) fn clear_or_quit(state: &mut AppState, now: Instant) {
    let is_second =
        state.quit_pressed_at.is_some_and(|pressed_at| now.saturating_duration_since(pressed_at) < QUIT_TIME);
    if is_second {
        return quit(state);
    }
    state.quit_pressed_at = Some(now);
    if !state.composer.is_empty() {
        remember_draft(state);
        state.composer.take();
        state.completion = None;
    } else if state.cells.running_command().is_some() {
        state.request(AppCommand::KillCommand);
    } else if state.turn.is_some() {
        stop_turn(state);
    }
    state.set_flash("ctrl-c again quits", now);
}

/// Quits if nothing is typed and nothing runs.
pub(super) fn quit_if_empty(state: &mut AppState, now: Instant) {
    if state.turn.is_some() {
        return state.set_flash("a turn is running: esc stops it, ctrl-c twice quits", now);
    }
    quit(state);
}

/// Quits. The draft stays in the history.
pub(super) fn quit(state: &mut AppState) {
    if state.is_quitting {
        return;
    }
    state.is_quitting = true;
    restore_draft(state);
    take_queue_back(state);
    remember_draft(state);
    if state.turn.is_some() {
        state.request(AppCommand::CancelTurn);
    }
    state.request(AppCommand::Quit);
}

/// Opens another session; the running turn has to end first.
pub(super) fn open_other(state: &mut AppState, target: SessionChoice, now: Instant) {
    if state.turn.is_some() {
        return state.set_flash("a turn is running: esc stops it", now);
    }
    if state.session.is_loading {
        return state.set_flash("a session is being opened", now);
    }
    let notice = match &target {
        SessionChoice::New => Some("new session".to_owned()),
        SessionChoice::Stored(id) => Some(format!("session {id}")),
        SessionChoice::Fork(id) => Some(format!("copy of the session {id}")),
        SessionChoice::Newest | SessionChoice::Ask => Some("session".to_owned()),
        // The transcript goes on with the copy.
        SessionChoice::ForkBefore { .. } => None,
    };
    if let Some(notice) = notice {
        state.cells.begin_session();
        state.cells.push(TranscriptCell::Notice(notice));
    }
    state.session.usage = None;
    state.session.title = None;
    state.plan.clear();
    state.open_session(target);
}
