//! Completions: what is offered for the word at the caret, and what choosing one inserts.
#![expect(clippy::wildcard_enum_match_arm, reason = "an action of another part of the screen has no effect")]

use super::{commands, composing, key_time::KeyTime};
use crate::app::{
    completion::{CompletionItem, CompletionKind, CompletionList, CompletionTarget, ITEMS_MAX},
    event::AppCommand,
    keys::KeyAction,
    slash,
    state::AppState,
};

/// Offers completions for the word at the caret, or closes the list.
pub(super) fn refresh(state: &mut AppState) {
    let target = CompletionTarget::find(&state.composer);
    let Some(target) = target else {
        state.completion = None;
        return;
    };
    match target.kind {
        CompletionKind::Command => {
            let items = command_items(state, &target.query);
            set_items(state, target, items);
        }
        CompletionKind::File => {
            state.request(AppCommand::MatchFiles(target.query.clone()));
            // The list for the shorter word stays until the new one arrives.
            if let Some(list) = &mut state.completion {
                list.target = target;
            }
        }
    }
}

/// Closes the list if its word is no longer at the caret: another text may have taken its place.
pub(super) fn close_outdated(state: &mut AppState) {
    let Some(list) = &state.completion else { return };
    if CompletionTarget::find(&state.composer).as_ref() != Some(&list.target) {
        state.completion = None;
    }
}

fn set_items(state: &mut AppState, target: CompletionTarget, items: Vec<CompletionItem>) {
    state.completion = (!items.is_empty()).then_some(CompletionList { target, items, selected: 0 });
}

pub(super) fn on_files_matched(state: &mut AppState, query: &str, paths: Vec<String>) {
    let target = CompletionTarget::find(&state.composer);
    let target = target.filter(|target| target.kind == CompletionKind::File && target.query == query);
    let Some(target) = target else { return };
    let items = paths.into_iter().map(|path| CompletionItem {
        text: format!("@{path}"),
        label: path,
        detail: String::new(),
    });
    let items = items.collect();
    set_items(state, target, items);
}

/// The commands that begin with a word, then those that contain it.
fn command_items(state: &AppState, query: &str) -> Vec<CompletionItem> {
    let commands = slash::all_commands(state.session.commands.as_deref().unwrap_or_default());
    let query = query.to_lowercase();
    let (mut items, mut others) = (Vec::new(), Vec::new());
    for command in commands {
        let name = command.name.to_lowercase();
        let list = match (name.starts_with(&query), name.contains(&query)) {
            (true, _) => &mut items,
            (false, true) => &mut others,
            (false, false) => continue,
        };
        let hint = command.hint.map(|hint| format!(" {hint}")).unwrap_or_default();
        list.push(CompletionItem {
            text: format!("/{}", command.name),
            label: format!("/{}{hint}", command.name),
            detail: command.description,
        });
    }
    items.append(&mut others);
    items.truncate(ITEMS_MAX);
    items
}

/// Carries out an action at the completions.
pub(super) fn perform(state: &mut AppState, action: KeyAction, time: KeyTime) {
    let Some(list) = &mut state.completion else { return };
    match action {
        KeyAction::SelectPrevious => list.select_previous(),
        KeyAction::SelectNext => list.select_next(),
        KeyAction::Complete => insert_chosen(state),
        KeyAction::Choose => {
            let is_command = list.target.kind == CompletionKind::Command;
            let is_complete = list
                .chosen()
                .is_some_and(|item| state.composer.text()[list.target.start..].trim() == item.text);
            if is_command && is_complete {
                state.completion = None;
                return composing::perform(state, KeyAction::Submit, time);
            }
            insert_chosen(state);
            let has_hint =
                state.composer.text().trim().strip_prefix('/').is_some_and(|name| has_arguments(state, name));
            if is_command && !has_hint && state.questions.is_empty() {
                commands::submit_draft(state, time.now);
            }
        }
        KeyAction::Close => state.completion = None,
        _ => {}
    }
}

fn has_arguments(state: &AppState, name: &str) -> bool {
    let commands = slash::all_commands(state.session.commands.as_deref().unwrap_or_default());
    commands.iter().any(|command| command.name == name && command.hint.is_some())
}

fn insert_chosen(state: &mut AppState) {
    let Some(list) = state.completion.take() else { return };
    if let Some(item) = list.chosen() {
        let end = state.composer.caret();
        state.composer.replace_range(list.target.start, end, &format!("{} ", item.text));
    }
}
