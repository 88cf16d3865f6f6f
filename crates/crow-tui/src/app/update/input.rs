//! Input: finds out who has the keyboard, and passes keys and pastes on.

use std::time::{Duration, Instant};

use super::{completing, composing, key_time::KeyTime, picking, questions, sending};
use crate::{
    app::{
        composer::vi::ViState,
        keys::{self, KeyAction, KeyContext, KeyLookup},
        question::{QUIET, QUIET_SAME_KEY},
        state::{AppOverlay, AppState},
    },
    screen::{InputEvent, KeyCode, KeyPress, TerminalReply, TimedInput},
};

/// The longest pause within a sequence of keys.
const SEQUENCE_TIME: Duration = Duration::from_millis(1500);

pub(super) fn on_input(state: &mut AppState, input: TimedInput, now: Instant) {
    let is_repeat = matches!(input.event, InputEvent::KeyRepeat(_));
    let is_same_key = matches!(input.event, InputEvent::Key(key) if state.last_key == Some(key));
    let quiet = if is_same_key { QUIET_SAME_KEY } else { QUIET };
    let time = KeyTime { read_at: input.read_at, now, quiet, is_repeat };
    match input.event {
        InputEvent::Key(key) | InputEvent::KeyRepeat(key) => on_key(state, &key, time),
        InputEvent::Paste { content, is_truncated } => {
            on_paste(state, &content, time);
            if is_truncated {
                state.set_flash("the paste is too long; its end is missing", now);
            }
        }
        InputEvent::FocusChanged(has_focus) => state.has_window_focus = has_focus,
        InputEvent::Reply(TerminalReply::Background { is_light }) => state.theme.is_light = is_light,
        InputEvent::Closed => sending::quit(state),
        InputEvent::Resized | InputEvent::Reply(_) => {}
    }
}

/// Passes a key on. One that was not pressed at the question delays its answer: a held or repeated key never gives it.
fn on_key(state: &mut AppState, key: &KeyPress, time: KeyTime) {
    let contexts = key_contexts(state, time);
    let asked = state.questions.front().map(|question| question.id);
    perform_key(state, key, &contexts, time);
    if matches!(key.code, KeyCode::WheelUp | KeyCode::WheelDown) {
        return;
    }
    let is_at_question = contexts.contains(&KeyContext::Question);
    if let Some(question) = state.question().filter(|_| !is_at_question) {
        if question.take_early_focus() {
            return;
        }
        question.note_key(time.read_at);
    }
    let is_still_asked = state.questions.front().map(|question| question.id) == asked;
    // Pressed again at the same question, it is pressed on purpose.
    state.last_key = (!is_at_question || !is_still_asked).then_some(*key);
}

fn perform_key(state: &mut AppState, key: &KeyPress, contexts: &[KeyContext], time: KeyTime) {
    // A held key is no part of a sequence.
    let prefix = if time.is_repeat { None } else { state.key_prefix.take() };
    let prefix = prefix.filter(|(_, at)| time.read_at.saturating_duration_since(*at) < SEQUENCE_TIME);
    let name = keys::key_name(key);
    let is_vi = contexts.contains(&KeyContext::ViNormal);
    if let Some(letter) = keys::typed_letter(key)
        && is_vi
        && state.vi.as_ref().is_some_and(ViState::takes_letter)
    {
        return composing::type_vi_letter(state, letter);
    }
    match keys::find_action(contexts, prefix.as_ref().map(|(name, _)| name.as_str()), &name) {
        KeyLookup::Action { action, .. } if time.is_repeat && !may_repeat(state, action) => {}
        KeyLookup::Action { context, action } => perform_action(state, context, action, time),
        KeyLookup::Prefix if time.is_repeat => {}
        KeyLookup::Prefix => {
            if contexts.contains(&KeyContext::Idle) && name == "esc" {
                state.set_flash("esc again goes back to an earlier prompt", time.now);
            }
            state.key_prefix = Some((name, time.read_at));
        }
        KeyLookup::Unbound => {
            if let Some(letter) = keys::typed_letter(key) {
                if is_vi {
                    return composing::type_vi_letter(state, letter);
                }
                type_letter(state, letter, time);
            }
        }
    }
}

/// Whether a held key goes on with an action: editing and moving, but nothing that sends, answers or ends.
fn may_repeat(state: &AppState, action: KeyAction) -> bool {
    // Without a text, its key quits.
    action.is_repeatable() || (action == KeyAction::QuitOrDelete && !state.composer.is_empty())
}

/// The contexts whose keys work now, the most specific first.
fn key_contexts(state: &AppState, time: KeyTime) -> Vec<KeyContext> {
    match &state.overlay {
        // A list of the user's has no question under it: a question closes it.
        Some(AppOverlay::Picker(_)) => return vec![KeyContext::Picker],
        Some(AppOverlay::Pager(pager)) if pager.is_typing_query => return vec![KeyContext::Search],
        Some(AppOverlay::Pager(_)) => return vec![KeyContext::Pager],
        None => {}
    }
    let mut contexts = Vec::new();
    match state.questions.front() {
        Some(question) if question.takes_text => contexts.push(KeyContext::Answer),
        Some(question) if question.has_keyboard(time.read_at, time.quiet, state.composer.is_empty()) => {
            return vec![KeyContext::Question, KeyContext::Anywhere];
        }
        Some(_) | None => {}
    }
    if state.search.is_some() {
        return vec![KeyContext::Search];
    }
    if state.completion.is_some() {
        contexts.push(KeyContext::Completion);
    }
    if let Some(vi) = &state.vi {
        contexts.push(if vi.is_normal { KeyContext::ViNormal } else { KeyContext::ViInsert });
    }
    if state.turn.is_some() {
        contexts.push(KeyContext::Working);
    } else if state.is_idle() && state.composer.is_empty() {
        contexts.push(KeyContext::Idle);
    }
    contexts.extend([KeyContext::Composer, KeyContext::Anywhere]);
    contexts
}

fn perform_action(state: &mut AppState, context: KeyContext, action: KeyAction, time: KeyTime) {
    match context {
        KeyContext::Question => questions::perform(state, action, time),
        KeyContext::Answer => questions::perform_in_answer(state, action, time),
        KeyContext::Picker => picking::perform(state, action, time),
        KeyContext::Pager => picking::perform_in_pager(state, action, time),
        KeyContext::Completion => completing::perform(state, action, time),
        KeyContext::Search => composing::perform_in_search(state, action, time),
        KeyContext::ViNormal | KeyContext::ViInsert => composing::perform(state, action, time),
        KeyContext::Idle | KeyContext::Working | KeyContext::Composer | KeyContext::Anywhere => {
            composing::perform(state, action, time);
        }
    }
}

fn type_letter(state: &mut AppState, letter: char, time: KeyTime) {
    if picking::type_in_overlay(state, letter) {
        return;
    }
    if let Some(question) = state.question().filter(|question| !question.takes_text) {
        if question.is_focused {
            // The user chose the question; a letter without an answer is a mistake.
            return;
        }
        question.note_key(time.read_at);
    }
    composing::type_letter(state, letter);
}

fn on_paste(state: &mut AppState, text: &str, time: KeyTime) {
    if let Some(AppOverlay::Picker(picker)) = &mut state.overlay {
        text.chars().filter(|letter| !letter.is_control()).for_each(|letter| picker.push_letter(letter));
        return;
    }
    state.overlay = None;
    if let Some(question) = state.question() {
        question.note_key(time.read_at);
    }
    composing::paste(state, text, time.now);
}
