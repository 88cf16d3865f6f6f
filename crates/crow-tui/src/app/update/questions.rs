//! Questions: showing them one after the other, and giving answers.
#![expect(clippy::wildcard_enum_match_arm, reason = "an action of another part of the screen has no effect")]

use std::time::Instant;

use crow_acp::{ElicitationOutcome, FormSubject};

use super::{key_time::KeyTime, sending};
use crate::app::{
    cells::TranscriptCell,
    event::{AppCommand, QuestionId},
    keys::{KeyAction, key_for},
    question::{AnswerEffect, OfferedAnswer, QuestionSubject, WaitingQuestion},
    state::AppState,
};

/// Questions that wait; an agent that asks more is not answered.
const QUESTIONS_MAX: usize = 64;

pub(super) fn on_question(state: &mut AppState, id: QuestionId, subject: QuestionSubject) {
    if state.turn.as_ref().is_some_and(|turn| turn.is_stopping) || state.questions.len() >= QUESTIONS_MAX {
        return state.request(AppCommand::DropQuestion(id));
    }
    let mut question = WaitingQuestion::new(id, subject);
    if std::mem::take(&mut state.expects_text) && state.questions.is_empty() && question.is_free_text() {
        // The user has chosen this already.
        question.takes_text = true;
        state.stashed_draft = Some(state.composer.take());
    }
    state.questions.push_back(question);
    if state.questions.len() == 1 {
        // Lists of the user make room; the search and the completions would have the keyboard.
        (state.overlay, state.search, state.completion) = (None, None, None);
    }
    if !state.has_window_focus {
        state.request(AppCommand::Alert("Crow has a question".to_owned()));
    }
}

pub(super) fn on_withdrawn(state: &mut AppState, id: QuestionId) {
    if state.questions.front().is_some_and(|question| question.id == id) {
        sending::restore_draft(state);
    }
    state.questions.retain(|question| question.id != id);
}

/// Gives the keyboard to the question.
pub(super) fn focus(state: &mut AppState, time: KeyTime) {
    let Some(question) = state.question() else { return };
    question.focus(time.read_at, time.quiet);
    if !question.is_focused {
        state.set_flash(format!("a moment, then {} again", key_for(KeyAction::FocusQuestion)), time.now);
    }
}

/// Carries out an action at the question.
pub(super) fn perform(state: &mut AppState, action: KeyAction, time: KeyTime) {
    let Some(question) = state.question() else { return };
    let answers = question.answers();
    match action {
        KeyAction::SelectPrevious => question.selected = question.selected.saturating_sub(1),
        KeyAction::SelectNext => {
            question.selected = (question.selected + 1).min(answers.len().saturating_sub(1));
        }
        KeyAction::PageUp => question.scroll_up(),
        KeyAction::PageDown => question.scroll_down(),
        KeyAction::FocusQuestion => question.is_focused = !question.is_focused,
        KeyAction::Close => close(state),
        KeyAction::Choose => {
            if let Some(answer) = answers.get(question.selected) {
                give_answer(state, answer, time.now);
            }
        }
        _ => {
            let index = answers.iter().position(|answer| answer.key == Some(action));
            if let Some(index) = index {
                question.selected = index;
                give_answer(state, &answers[index], time.now);
            }
        }
    }
}

/// Declines a form; the turn of a call that was not answered is stopped.
fn close(state: &mut AppState) {
    let Some(question) = state.questions.front() else { return };
    match &question.subject {
        QuestionSubject::Form(_) => answer_form(state, ElicitationOutcome::Declined),
        QuestionSubject::Call(_) if state.turn.is_some() => sending::stop_turn(state),
        QuestionSubject::Call(_) => {
            let id = question.id;
            state.questions.pop_front();
            state.request(AppCommand::DropQuestion(id));
        }
    }
}

fn give_answer(state: &mut AppState, answer: &OfferedAnswer, now: Instant) {
    let Some(question) = state.question() else { return };
    if answer.allows && !question.is_read {
        // Any part of a command decides what it does.
        let hint = match question.is_hidden() {
            true => "the window is too small to show what would be approved".to_owned(),
            false => format!("{} shows the rest, then it can be approved", key_for(KeyAction::PageDown)),
        };
        return state.set_flash(hint, now);
    }
    let id = question.id;
    match &answer.effect {
        AnswerEffect::Option(option) => {
            state.expects_text = answer.key == Some(KeyAction::AnswerInstead);
            state.questions.pop_front();
            state.request(AppCommand::AnswerCall { id, option: option.clone() });
        }
        AnswerEffect::Choice(label) => answer_form(state, ElicitationOutcome::Accepted(label.clone())),
        AnswerEffect::Instead(_) | AnswerEffect::FreeText => {
            question.takes_text = true;
            state.stashed_draft = Some(state.composer.take());
        }
        AnswerEffect::Prefix { prefix, .. } => {
            question.takes_text = true;
            state.stashed_draft = Some(state.composer.take());
            state.composer.set_text(prefix);
        }
    }
}

fn answer_form(state: &mut AppState, outcome: ElicitationOutcome) {
    let Some(question) = state.questions.pop_front() else { return };
    let QuestionSubject::Form(form) = question.subject else { return };
    let answer = match &outcome {
        // It may be a secret between the user and the server.
        ElicitationOutcome::Accepted(_) if form.subject == FormSubject::McpServer => "answered",
        ElicitationOutcome::Accepted(answer) => answer.as_str(),
        ElicitationOutcome::Declined => "declined",
        ElicitationOutcome::Cancelled | ElicitationOutcome::Unavailable { .. } => "not answered",
    };
    let subject = form.message.lines().next().unwrap_or_default();
    state.cells.push(TranscriptCell::Notice(format!("{subject} {answer}")));
    state.request(AppCommand::AnswerForm { id: question.id, outcome });
}

/// Carries out an action while the composer has the answer.
pub(super) fn perform_in_answer(state: &mut AppState, action: KeyAction, time: KeyTime) {
    match action {
        KeyAction::Close => {
            sending::restore_draft(state);
            if let Some(question) = state.question() {
                (question.takes_text, question.is_focused) = (false, true);
            }
        }
        KeyAction::Choose => send_text_answer(state, time.now),
        _ => {}
    }
}

fn send_text_answer(state: &mut AppState, now: Instant) {
    let text = state.composer.full_text().trim().to_owned();
    let Some(question) = state.question() else { return };
    if text.is_empty() {
        return;
    }
    let (id, chosen) =
        (question.id, question.answers().get(question.selected).map(|answer| answer.effect.clone()));
    if let QuestionSubject::Form(form) = &question.subject {
        let Some(answer) = form.free_text_answer(&text).map(str::to_owned) else {
            return state.set_flash("the answer is too long", now);
        };
        state.composer.take();
        sending::restore_draft(state);
        return answer_form(state, ElicitationOutcome::Accepted(answer));
    }
    let option = match chosen {
        Some(AnswerEffect::Prefix { option, .. }) => {
            if let Err(reason) = crow_core::parse_prefix(&text) {
                return state.set_flash(reason, now);
            }
            // The prefix is no part of the draft.
            sending::restore_draft(state);
            state.questions.pop_front();
            return state.request(AppCommand::AnswerPrefix { id, option, prefix: text });
        }
        Some(AnswerEffect::Instead(option)) => option,
        _ => return,
    };
    state.questions.pop_front();
    state.request(AppCommand::AnswerCall { id, option });
    sending::send_draft(state, now);
    sending::restore_draft(state);
}
