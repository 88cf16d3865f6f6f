//! Lists and the pager: opening them, and what a choice does.
#![expect(clippy::wildcard_enum_match_arm, reason = "an action of another part of the screen has no effect")]

use std::time::Instant;

use crow_acp::SessionInfo;
use crow_core::Failure;

use super::{children, key_time::KeyTime, rewinding, sending};
use crate::app::{
    cells::TranscriptCell,
    composer::vi::ViState,
    event::{AppCommand, SessionChoice},
    keys::KeyAction,
    picker::{ListPicker, PickerEntry, PickerKind},
    state::{AppOverlay, AppState},
    view,
};

/// Changes to the next mode.
pub(super) fn choose_next_mode(state: &mut AppState, now: Instant) {
    let Some(option) = state.session.find_option("mode") else {
        return state.set_flash("the agent has no modes", now);
    };
    let index = option.choices.iter().position(|choice| choice.value == option.current);
    let next = index.map_or(0, |index| (index + 1) % option.choices.len().max(1));
    let Some(choice) = option.choices.get(next) else { return };
    let (option, value, name) = (option.id.clone(), choice.value.clone(), choice.name.clone());
    set_option(state, option, value);
    state.set_flash(format!("mode: {name}"), now);
}

/// Sets an option at once: the status line shows it before the agent answers.
fn set_option(state: &mut AppState, option: String, value: String) {
    if let Some(shown) = state.session.options.iter_mut().find(|other| other.id == option) {
        shown.current.clone_from(&value);
    }
    state.request(AppCommand::SetOption { option, value });
}

/// Sets an option by the name of its value, or opens the list of values.
pub(super) fn choose_option(state: &mut AppState, option: &str, argument: &str, now: Instant) {
    let Some(found) = state.session.find_option(option) else {
        return state.set_flash(format!("the agent has no {} to choose", option.replace('_', " ")), now);
    };
    let id = found.id.clone();
    if argument.is_empty() {
        let entries = found.choices.iter().map(|choice| PickerEntry {
            value: choice.value.clone(),
            label: choice.name.clone(),
            detail: choice.description.clone().unwrap_or_default(),
            is_current: choice.value == found.current,
        });
        let picker = ListPicker::new(PickerKind::Option(id), found.name.clone(), entries.collect());
        state.overlay = Some(AppOverlay::Picker(picker));
        return;
    }
    match found.choices.iter().find(|choice| choice.value == argument || choice.name == argument) {
        Some(choice) => {
            let value = choice.value.clone();
            set_option(state, id, value);
        }
        None => state.set_flash(format!("there is no {} {argument}", option.replace('_', " ")), now),
    }
}

/// Begins or ends editing with vi keys.
pub(super) fn choose_keys(state: &mut AppState, name: &str, now: Instant) {
    match name {
        "vi" => state.vi = Some(ViState::default()),
        "emacs" => state.vi = None,
        _ => return state.set_flash("the keys are vi or emacs", now),
    }
    state.set_flash(format!("keys: {name}"), now);
}

/// Opens the list of colours.
pub(super) fn open_themes(state: &mut AppState) {
    let theme = state.theme;
    let entry = |value: &str, detail: &str, is_current| PickerEntry {
        value: value.to_owned(),
        label: value.to_owned(),
        detail: detail.to_owned(),
        is_current,
    };
    let entries = vec![
        entry("dark", "for a dark background", theme.has_color && !theme.is_light),
        entry("light", "for a light background", theme.has_color && theme.is_light),
        entry("plain", "without colours", !theme.has_color),
    ];
    state.overlay = Some(AppOverlay::Picker(ListPicker::new(PickerKind::Theme, "Colours", entries)));
}

/// Opens the list of stored sessions.
pub(super) fn on_sessions_listed(
    state: &mut AppState,
    result: Result<Vec<SessionInfo>, Failure>,
    now: Instant,
) {
    let sessions = match result {
        Ok(sessions) if sessions.is_empty() => {
            state.set_flash("there are no sessions of this directory", now);
            return state.open_missing_session();
        }
        Ok(sessions) => sessions,
        Err(failure) => {
            state.cells.push(TranscriptCell::Problem(failure.message));
            return state.open_missing_session();
        }
    };
    let entries = sessions.iter().map(|info| PickerEntry {
        value: info.session.to_string(),
        label: info.title.clone().unwrap_or_else(|| "(no prompt yet)".to_owned()),
        detail: format!(
            "{}  {}",
            info.updated_at.get(..16).unwrap_or_default().replace('T', " "),
            info.session
        ),
        is_current: state.session.id.as_ref() == Some(&info.session),
    });
    let picker = ListPicker::new(PickerKind::Sessions, "Sessions", entries.collect());
    state.overlay = Some(AppOverlay::Picker(picker));
}

/// Carries out an action at a list.
pub(super) fn perform(state: &mut AppState, action: KeyAction, time: KeyTime) {
    let Some(AppOverlay::Picker(picker)) = &mut state.overlay else { return };
    match action {
        KeyAction::SelectPrevious => picker.select_previous(),
        KeyAction::SelectNext => picker.select_next(),
        KeyAction::DeleteLeft => picker.pop_letter(),
        KeyAction::Close => {
            state.overlay = None;
            state.open_missing_session();
        }
        KeyAction::Choose => {
            let chosen = picker.chosen().map(|entry| entry.value.clone());
            let kind = picker.kind.clone();
            if let Some(value) = chosen {
                state.overlay = None;
                choose_entry(state, kind, value, time.now);
            }
        }
        _ => {}
    }
}

fn choose_entry(state: &mut AppState, kind: PickerKind, value: String, now: Instant) {
    match kind {
        PickerKind::Sessions => sending::open_other(state, SessionChoice::Stored(value), now),
        PickerKind::Option(option) => set_option(state, option, value),
        PickerKind::Children => children::open_child(state, &value),
        PickerKind::EarlierPrompts => rewinding::choose_prompt(state, &value, now),
        PickerKind::GoBack => rewinding::choose_way(state, &value, now),
        PickerKind::Theme => {
            state.theme.has_color = value != "plain";
            state.theme.is_light = value == "light";
            state.request(AppCommand::Redraw);
        }
    }
}

/// Adds a letter to the search of a list or of the pager; `false` if neither is open.
pub(super) fn type_in_overlay(state: &mut AppState, letter: char) -> bool {
    match &mut state.overlay {
        Some(AppOverlay::Picker(picker)) => picker.push_letter(letter),
        Some(AppOverlay::Pager(pager)) if pager.is_typing_query => pager.query.push(letter),
        Some(AppOverlay::Pager(_)) => {}
        None => return false,
    }
    true
}

/// Carries out an action in the pager.
pub(super) fn perform_in_pager(state: &mut AppState, action: KeyAction, time: KeyTime) {
    let view::PagerRows { rows, calls, n_visible } = view::pager_rows(state, time.now);
    let Some(AppOverlay::Pager(pager)) = &mut state.overlay else { return };
    pager.clamp(rows.len(), n_visible);
    match action {
        KeyAction::SelectPrevious => pager.scroll_up(1),
        KeyAction::SelectNext => pager.scroll_down(1),
        KeyAction::PageUp => pager.scroll_up(n_visible),
        KeyAction::PageDown => pager.scroll_down(n_visible),
        KeyAction::JumpToStart => pager.scroll_up(rows.len()),
        KeyAction::JumpToEnd => pager.scroll_down(rows.len()),
        KeyAction::NextCall => pager.select_call(&calls, true, rows.len(), n_visible),
        KeyAction::PreviousCall => pager.select_call(&calls, false, rows.len(), n_visible),
        KeyAction::Choose => pager.toggle_fold(),
        KeyAction::FindText => pager.reset_search(true),
        KeyAction::FindNext => pager.find_match(&rows, n_visible, false),
        KeyAction::FindPrevious => pager.find_match(&rows, n_visible, true),
        KeyAction::Close => return children::close_pager(state, time.now),
        _ => {}
    }
    pager.clamp(rows.len(), n_visible);
}

/// Carries out an action while the text to search in the pager is typed.
pub(super) fn perform_in_query(state: &mut AppState, action: KeyAction, time: KeyTime) {
    let Some(AppOverlay::Pager(pager)) = &mut state.overlay else { return };
    match action {
        KeyAction::DeleteLeft => drop(pager.query.pop()),
        KeyAction::Choose | KeyAction::SelectNext => {
            pager.is_typing_query = false;
            perform_in_pager(state, KeyAction::FindNext, time);
        }
        KeyAction::Close => pager.reset_search(false),
        _ => {}
    }
}
