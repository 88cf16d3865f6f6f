//! The table of keys. It feeds dispatch, hints, `/keys` and the documentation; there is no other place that names one.

mod table;

use self::table::KEY_TABLE;
use super::composer::vi::ViCommand;
use crate::screen::{KeyCode, KeyPress};

/// The part of the screen that a key belongs to, the most specific first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum KeyContext {
    /// A question that has the keyboard.
    Question,
    /// A list to choose from.
    Picker,
    /// The transcript.
    Pager,
    /// The completions above the composer.
    Completion,
    /// The search in earlier prompts.
    Search,
    /// The composer with the answer to a question.
    Answer,
    /// The composer with vi keys, whose letters are commands.
    ViNormal,
    /// The composer with vi keys, whose letters are text.
    ViInsert,
    /// The composer without text, while no turn runs.
    Idle,
    /// The composer while a turn runs.
    Working,
    /// The composer.
    Composer,
    /// Everywhere.
    Anywhere,
}

/// The effect of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum KeyAction {
    Submit,
    QueuePrompt,
    TakeQueueBack,
    InsertNewline,
    MoveLeft,
    MoveRight,
    MoveUp,
    MoveDown,
    MoveWordLeft,
    MoveWordRight,
    MoveLineStart,
    MoveLineEnd,
    DeleteLeft,
    DeleteRight,
    KillWordLeft,
    KillWordRight,
    KillLineStart,
    KillLineEnd,
    Yank,
    Transpose,
    Undo,
    SearchHistory,
    OpenEditor,
    PasteImage,
    Complete,
    NextMode,
    StopTurn,
    GoBack,
    ShowTranscript,
    UnfoldCall,
    ClearOrQuit,
    QuitOrDelete,
    Redraw,
    Suspend,
    FocusQuestion,
    AnswerAllowOnce,
    AnswerAllowSession,
    AnswerAllowProject,
    AnswerReject,
    AnswerInstead,
    AnswerRejectAlways,
    SelectPrevious,
    SelectNext,
    Choose,
    PageUp,
    PageDown,
    ScrollUp,
    ScrollDown,
    JumpToStart,
    JumpToEnd,
    NextCall,
    PreviousCall,
    FindText,
    FindNext,
    FindPrevious,
    Close,
    /// Leaves the insert mode of vi.
    EnterNormal,
    Vi(ViCommand),
}

impl KeyAction {
    /// Whether it edits, moves or scrolls, so that its key may be held.
    pub(crate) fn is_repeatable(self) -> bool {
        match self {
            Self::InsertNewline
            | Self::MoveLeft
            | Self::MoveRight
            | Self::MoveUp
            | Self::MoveDown
            | Self::MoveWordLeft
            | Self::MoveWordRight
            | Self::MoveLineStart
            | Self::MoveLineEnd
            | Self::DeleteLeft
            | Self::DeleteRight
            | Self::KillWordLeft
            | Self::KillWordRight
            | Self::KillLineStart
            | Self::KillLineEnd
            | Self::Yank
            | Self::Transpose
            | Self::Undo
            | Self::SelectPrevious
            | Self::SelectNext
            | Self::PageUp
            | Self::PageDown
            | Self::ScrollUp
            | Self::ScrollDown
            | Self::JumpToStart
            | Self::JumpToEnd
            | Self::NextCall
            | Self::PreviousCall
            | Self::FindNext
            | Self::FindPrevious
            | Self::Vi(_) => true,
            Self::Submit
            | Self::QueuePrompt
            | Self::TakeQueueBack
            | Self::SearchHistory
            | Self::OpenEditor
            | Self::PasteImage
            | Self::Complete
            | Self::NextMode
            | Self::StopTurn
            | Self::GoBack
            | Self::ShowTranscript
            | Self::UnfoldCall
            | Self::ClearOrQuit
            | Self::QuitOrDelete
            | Self::Redraw
            | Self::Suspend
            | Self::FocusQuestion
            | Self::AnswerAllowOnce
            | Self::AnswerAllowSession
            | Self::AnswerAllowProject
            | Self::AnswerReject
            | Self::AnswerInstead
            | Self::AnswerRejectAlways
            | Self::Choose
            | Self::FindText
            | Self::Close
            | Self::EnterNormal => false,
        }
    }
}

/// One line of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyBinding {
    pub(crate) context: KeyContext,
    /// Names of keys; a sequence has a space in it.
    pub(crate) keys: &'static [&'static str],
    pub(crate) action: KeyAction,
    pub(crate) help: &'static str,
}

/// The result of looking a key up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyLookup {
    Action {
        context: KeyContext,
        action: KeyAction,
    },
    /// The key begins a sequence.
    Prefix,
    Unbound,
}

impl KeyContext {
    /// The heading in `/keys` and in the documentation.
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::Question => "At a question",
            Self::Picker => "In a list",
            Self::Pager => "In the transcript",
            Self::Completion => "At a completion",
            Self::Search => "While searching the history",
            Self::Answer => "Writing an answer",
            Self::ViNormal => "With vi keys, in normal mode",
            Self::ViInsert => "With vi keys, in insert mode",
            Self::Idle => "With nothing typed and nothing running",
            Self::Working => "While a turn runs",
            Self::Composer => "Writing",
            Self::Anywhere => "Everywhere",
        }
    }
}

/// Finds the binding of a key, after `prefix` if that key was pressed before, in the first context that has one.
pub(crate) fn find_action(contexts: &[KeyContext], prefix: Option<&str>, key: &str) -> KeyLookup {
    let sequence = prefix.map_or_else(|| key.to_owned(), |prefix| format!("{prefix} {key}"));
    for context in contexts {
        let bindings = KEY_TABLE.iter().filter(|binding| binding.context == *context);
        for binding in bindings {
            if binding.keys.contains(&sequence.as_str()) {
                return KeyLookup::Action { context: *context, action: binding.action };
            }
            let begins =
                |keys: &&&str| keys.strip_prefix(&sequence).is_some_and(|rest| rest.starts_with(' '));
            if binding.keys.iter().any(|keys| begins(&keys)) {
                return KeyLookup::Prefix;
            }
        }
    }
    KeyLookup::Unbound
}

/// Returns the first key of an action, for hints.
pub(crate) fn key_for(action: KeyAction) -> &'static str {
    let binding = KEY_TABLE.iter().find(|binding| binding.action == action);
    binding.and_then(|binding| binding.keys.first()).copied().unwrap_or_default()
}

/// Returns the table by context, for `/keys` and the documentation.
pub(crate) fn all_bindings() -> impl Iterator<Item = &'static KeyBinding> {
    KEY_TABLE.iter()
}

/// Returns the name of a key as in the table.
pub(crate) fn key_name(key: &KeyPress) -> String {
    let base = match key.code {
        KeyCode::Char(' ') => "space".to_owned(),
        KeyCode::Char(letter) => letter.to_string(),
        KeyCode::Enter => "enter".to_owned(),
        KeyCode::Tab => "tab".to_owned(),
        KeyCode::Backspace => "backspace".to_owned(),
        KeyCode::Escape => "esc".to_owned(),
        KeyCode::Up => "up".to_owned(),
        KeyCode::Down => "down".to_owned(),
        KeyCode::Left => "left".to_owned(),
        KeyCode::Right => "right".to_owned(),
        KeyCode::Home => "home".to_owned(),
        KeyCode::End => "end".to_owned(),
        KeyCode::PageUp => "pageup".to_owned(),
        KeyCode::PageDown => "pagedown".to_owned(),
        KeyCode::WheelUp => "wheelup".to_owned(),
        KeyCode::WheelDown => "wheeldown".to_owned(),
        KeyCode::Insert => "insert".to_owned(),
        KeyCode::Delete => "delete".to_owned(),
        KeyCode::Function(number) => format!("f{number}"),
    };
    let modifiers = key.modifiers;
    let names = [(modifiers.ctrl, "ctrl-"), (modifiers.alt, "alt-"), (modifiers.shift, "shift-")];
    let held: String = names.iter().filter(|(is_held, _)| *is_held).map(|(_, name)| *name).collect();
    held + &base
}

/// Returns the letter that a key types.
pub(crate) fn typed_letter(key: &KeyPress) -> Option<char> {
    let KeyCode::Char(letter) = key.code else { return None };
    (!key.modifiers.ctrl && !key.modifiers.alt).then_some(letter)
}

#[cfg(test)]
pub(crate) mod tests;
