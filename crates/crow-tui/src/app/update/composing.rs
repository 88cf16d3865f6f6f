//! The composer: editing, pasting, the history, the editor, attached images.
#![expect(clippy::wildcard_enum_match_arm, reason = "an action of another part of the screen has no effect")]

use std::{path::PathBuf, time::Instant};

use super::{commands, completing, key_time::KeyTime, picking, questions, rewinding, sending};
use crate::app::{
    composer::{
        buffer::DraftAtom,
        layout::DraftLayout,
        vi::{ViCommand, ViState},
    },
    event::{AppCommand, AttachedImage},
    history::{HistorySearch, NewerPrompt},
    keys::{KeyAction, key_for},
    pager::{PagerSource, TextPager},
    state::{AppOverlay, AppState},
    view,
};

/// A longer paste is folded to a label.
const PASTE_LINES_MAX: usize = 8;
const PASTE_BYTES_MAX: usize = 2000;

/// File names that are attached as images when their path is pasted.
const IMAGE_EXTENSIONS: [&str; 5] = [".png", ".jpg", ".jpeg", ".gif", ".webp"];

/// Cells before the text of the composer.
pub(crate) const PROMPT_COLUMNS: usize = 2;

/// Carries out an action of the composer.
pub(super) fn perform(state: &mut AppState, action: KeyAction, time: KeyTime) {
    if edit(state, action) {
        state.history.stop_stepping();
        return completing::refresh(state);
    }
    match action {
        KeyAction::Vi(command) => run_vi_command(state, command),
        KeyAction::EnterNormal => {
            if let Some(vi) = &mut state.vi {
                vi.enter_normal(&mut state.composer);
            }
        }
        KeyAction::StopTurn | KeyAction::GoBack if state.vi.as_ref().is_some_and(ViState::is_pending) => {
            state.vi.iter_mut().for_each(ViState::cancel);
        }
        KeyAction::Submit => {
            state.scroll = None;
            submit(state, time);
        }
        KeyAction::PageUp | KeyAction::PageDown | KeyAction::ScrollUp | KeyAction::ScrollDown => {
            state.scroll = view::scroll_transcript(state, action, time.now);
        }
        KeyAction::QueuePrompt | KeyAction::Complete if has_unfocused_question(state) => {
            questions::focus(state, time);
        }
        KeyAction::QueuePrompt => sending::queue_draft(state, time.now),
        KeyAction::TakeQueueBack => sending::take_queue_back(state),
        KeyAction::MoveUp => move_up(state),
        KeyAction::MoveDown => move_down(state),
        KeyAction::SearchHistory => state.search = Some(HistorySearch::default()),
        KeyAction::OpenEditor => state.request(AppCommand::EditText(state.composer.full_text())),
        KeyAction::Complete => completing::refresh(state),
        KeyAction::NextMode => picking::choose_next_mode(state, time.now),
        KeyAction::StopTurn => sending::stop_turn(state),
        KeyAction::GoBack => rewinding::list_prompts(state, time.now),
        KeyAction::ShowTranscript => {
            state.overlay = Some(AppOverlay::Pager(TextPager::new("Transcript", PagerSource::Transcript)));
        }
        KeyAction::UnfoldCall => toggle_newest_call(state, time.now),
        KeyAction::PasteImage => state.request(AppCommand::ReadClipboard),
        KeyAction::ClearOrQuit => sending::clear_or_quit(state, time.now),
        KeyAction::QuitOrDelete => sending::quit_if_empty(state, time.now),
        KeyAction::Suspend => state.request(AppCommand::Suspend),
        KeyAction::Redraw => state.request(AppCommand::Redraw),
        _ => {}
    }
}

/// Shows all of the newest call, or folds it again.
fn toggle_newest_call(state: &mut AppState, now: Instant) {
    let newest = state.cells.newest_call().map(|call| call.id.clone());
    if newest.is_none() {
        return state.set_flash("there is no call yet", now);
    }
    state.unfolded_call = newest.filter(|newest| state.unfolded_call.as_ref() != Some(newest));
}

/// Edits the text; `false` if the action is none of editing.
fn edit(state: &mut AppState, action: KeyAction) -> bool {
    let composer = &mut state.composer;
    match action {
        KeyAction::InsertNewline => composer.insert_text("\n"),
        KeyAction::MoveLeft => composer.move_left(),
        KeyAction::MoveRight => composer.move_right(),
        KeyAction::MoveWordLeft => composer.move_word_left(),
        KeyAction::MoveWordRight => composer.move_word_right(),
        KeyAction::MoveLineStart => composer.move_line_start(),
        KeyAction::MoveLineEnd => composer.move_line_end(),
        KeyAction::DeleteLeft => composer.delete_left(),
        KeyAction::DeleteRight => composer.delete_right(),
        KeyAction::QuitOrDelete if !composer.is_empty() => composer.delete_right(),
        KeyAction::KillWordLeft => composer.kill_word_left(),
        KeyAction::KillWordRight => composer.kill_word_right(),
        KeyAction::KillLineStart => composer.kill_line_start(),
        KeyAction::KillLineEnd => composer.kill_line_end(),
        KeyAction::Yank => composer.yank(),
        KeyAction::Transpose => composer.transpose(),
        KeyAction::Undo => drop(composer.undo()),
        _ => return false,
    }
    true
}

/// Carries out a command of vi.
fn run_vi_command(state: &mut AppState, command: ViCommand) {
    state.history.stop_stepping();
    if let Some(vi) = &mut state.vi {
        vi.run(command, &mut state.composer);
    }
    completing::refresh(state);
}

/// Takes a letter in the normal mode of vi.
pub(super) fn type_vi_letter(state: &mut AppState, letter: char) {
    if let Some(vi) = &mut state.vi {
        vi.type_letter(letter, &mut state.composer);
    }
}

fn has_unfocused_question(state: &AppState) -> bool {
    state.questions.front().is_some_and(|question| !question.takes_text)
}

/// Sends the draft, unless a question waits for its answer.
fn submit(state: &mut AppState, time: KeyTime) {
    let text = state.composer.text();
    if text.ends_with('\\') && state.composer.caret() == text.len() {
        let end = text.len();
        return state.composer.replace_range(end - 1, end, "\n");
    }
    if has_unfocused_question(state) {
        // Enter never answers what it was not typed at.
        let hint = match text.is_empty() {
            true => "a moment, then press it again to answer".to_owned(),
            false => format!("{} goes to the question; the text is kept", key_for(KeyAction::FocusQuestion)),
        };
        return state.set_flash(hint, time.now);
    }
    if state.composer.full_text().trim().is_empty() && state.composer.images().next().is_none() {
        return;
    }
    commands::submit_draft(state, time.now);
}

pub(super) fn type_letter(state: &mut AppState, letter: char) {
    if let Some(search) = &mut state.search {
        search.query.push(letter);
        search.index = 0;
        return;
    }
    state.history.stop_stepping();
    state.composer.insert_typed(letter.encode_utf8(&mut [0; 4]));
    completing::refresh(state);
}

/// Inserts a paste as one piece; a long one is folded, and the path of an image is attached.
pub(super) fn paste(state: &mut AppState, text: &str, now: Instant) {
    if let Some(search) = &mut state.search {
        search.query.push_str(text.lines().next().unwrap_or_default());
        return;
    }
    state.history.stop_stepping();
    let text = crate::text::sanitize_text(text);
    if let Some(path) = image_path(&text) {
        return state.request(AppCommand::ReadImage { path, pasted: text });
    }
    insert_paste(state, text, now);
}

/// Inserts a paste as text.
fn insert_paste(state: &mut AppState, text: String, now: Instant) {
    if text.lines().count() > PASTE_LINES_MAX || text.len() > PASTE_BYTES_MAX {
        if !state.composer.insert_atom(DraftAtom::Pasted(text)) {
            state.set_flash("too many pastes in one prompt", now);
        }
    } else {
        state.composer.insert_text(&text);
    }
    // A pasted word is meant as it is: Enter after it sends it.
    state.completion = None;
}

/// Returns the path if a paste is the path of an image, as terminals insert it when a file is dropped on them.
fn image_path(text: &str) -> Option<PathBuf> {
    let line = text.trim();
    let line = line.trim_matches(['\'', '"']).replace("\\ ", " ");
    let path = line.strip_prefix("file://").unwrap_or(&line);
    let is_image = IMAGE_EXTENSIONS.iter().any(|extension| path.to_lowercase().ends_with(extension));
    (is_image && path.starts_with('/') && !path.contains('\n')).then(|| PathBuf::from(path))
}

/// Attaches an image. A path at which there is none is text, as the user pasted it.
pub(super) fn on_image_read(
    state: &mut AppState,
    result: Result<AttachedImage, String>,
    pasted: Option<String>,
    now: Instant,
) {
    let problem = match result {
        Ok(AttachedImage { name, mime, data }) => {
            state.history.stop_stepping();
            let is_attached = state.composer.insert_atom(DraftAtom::Image { mime, data, name });
            if is_attached { None } else { Some("too many images in one prompt".to_owned()) }
        }
        Err(reason) => Some(reason),
    };
    if let Some(problem) = problem {
        state.set_flash(problem, now);
        if let Some(text) = pasted {
            state.history.stop_stepping();
            insert_paste(state, text, now);
        }
    }
}

/// Restores the draft of an earlier start, unless the user has typed already.
pub(super) fn on_draft_loaded(state: &mut AppState, text: String) {
    if state.composer.is_empty() {
        state.composer.set_text(&text);
    }
    state.saved_draft.mark_stored(text);
}

pub(super) fn on_editor_closed(state: &mut AppState, result: Result<String, String>, now: Instant) {
    match result {
        Ok(text) => {
            state.history.stop_stepping();
            state.composer.set_edited_text(text.trim_end());
        }
        Err(reason) => state.set_flash(reason, now),
    }
}

fn layout(state: &AppState) -> DraftLayout {
    DraftLayout::new(&state.composer, state.columns().saturating_sub(PROMPT_COLUMNS))
}

/// Moves up in the text, then to the queue, then to earlier prompts.
fn move_up(state: &mut AppState) {
    if let Some(caret) = layout(state).caret_above(&state.composer) {
        return state.composer.move_to(caret);
    }
    if state.composer.is_empty() && !state.queue.is_empty() {
        return sending::take_queue_back(state);
    }
    if let Some(text) = state.history.step_back(&state.composer) {
        state.composer.set_text(&text);
    }
}

fn move_down(state: &mut AppState) {
    if let Some(caret) = layout(state).caret_below(&state.composer) {
        return state.composer.move_to(caret);
    }
    match state.history.step_forward() {
        Some(NewerPrompt::Entry(text)) => state.composer.set_text(&text),
        Some(NewerPrompt::Draft(draft)) => state.composer.restore(draft),
        None => {}
    }
}

/// Carries out an action of the search in earlier prompts, or in the pager.
pub(super) fn perform_in_search(state: &mut AppState, action: KeyAction, time: KeyTime) {
    if let Some(AppOverlay::Pager(_)) = state.overlay {
        return picking::perform_in_query(state, action, time);
    }
    let Some(search) = &mut state.search else { return };
    match action {
        KeyAction::SelectNext => {
            let n_matches = state.history.find_matches(&search.query).len();
            search.index = (search.index + 1).min(n_matches.saturating_sub(1));
        }
        KeyAction::SelectPrevious => search.index = search.index.saturating_sub(1),
        KeyAction::DeleteLeft => {
            search.query.pop();
            search.index = 0;
        }
        KeyAction::Choose => {
            let found =
                state.history.find_matches(&search.query).get(search.index).map(|text| (*text).to_owned());
            state.search = None;
            match found {
                Some(text) => state.composer.set_text(&text),
                None => state.set_flash("no prompt has these words", time.now),
            }
        }
        KeyAction::Close => state.search = None,
        _ => {}
    }
}
