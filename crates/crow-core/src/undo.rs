//! Plans the undo of file changes. Pure: file states in, actions out.
//!
//! Never overwrites content that the agent did not leave.

use std::fmt;

use crate::ContentHash;
use crate::text_diff::TextDiff;

#[cfg(test)]
mod tests;

/// The mode of an undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoMode {
    /// The changes are undone.
    Apply,
    /// No file is changed; the result says what would be done.
    Preview,
    /// No file is changed; changes with a conflict count as undone from now on.
    Skip,
}

/// The file at a path before a change, with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoSnapshot {
    /// No file.
    Missing,
    /// A file.
    Content {
        /// The content.
        bytes: Vec<u8>,
        /// The permission bits, if the system has them.
        mode: Option<u32>,
    },
    /// A file that was too large to store.
    TooLarge,
}

/// The file at a path before a change, by its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriorFileState {
    /// No file.
    Missing,
    /// A file with this content.
    File(ContentHash),
    /// A file that was too large to store.
    TooLarge,
}

/// A file change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoChange {
    /// The path.
    pub path: String,
    /// The state before the change.
    pub before: PriorFileState,
    /// The content after the change; `None` is no file.
    pub after: Option<ContentHash>,
}

/// The file at a path now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CurrentFileState {
    /// No file.
    Missing,
    /// A file with this content.
    File(ContentHash),
    /// Something that is not read, with the reason.
    Unreadable(String),
}

/// The action for a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoAction {
    /// Restore the content before this change, by its index.
    Restore(usize),
    /// Remove the file that the agent created.
    Remove,
    /// None: the state is as before.
    AlreadyRestored,
    /// Leave the path unchanged.
    Conflict(UndoConflict),
}

/// The reason to leave a path unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoConflict {
    /// The content before was not stored.
    NotStored,
    /// The file differs from what the agent left.
    Changed,
    /// The file that the agent left was removed.
    Removed,
    /// The file was changed between two changes of the agent; only that state is restored.
    ChangedBetween,
    /// It is not a restorable file, with the reason.
    NotRestorable(String),
}

impl fmt::Display for UndoConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotStored => "the content before was too large to store; the change cannot be undone",
            Self::Changed => "it was changed after the agent's change",
            Self::Removed => "it was removed after the agent's change",
            Self::ChangedBetween => {
                "it was changed by someone else between two changes of the agent; only the later change is undone"
            }
            Self::NotRestorable(reason) => reason,
        })
    }
}

/// The plan for a path, or for its older changes if they differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedUndo {
    /// The path.
    pub path: String,
    /// The action.
    pub action: UndoAction,
    /// The indices of the changes.
    pub changes: Vec<usize>,
    /// The index of the change whose previous state is the target, also for conflicts.
    pub goal_change: usize,
}

/// Plans the undo of changes, given oldest first, by the current file states. Each path has one entry, or two if only
/// its newer changes can be undone.
pub fn plan_undo(changes: &[UndoChange], current: impl Fn(&str) -> CurrentFileState) -> Vec<PlannedUndo> {
    let mut planned = Vec::new();
    for (index, change) in changes.iter().enumerate() {
        if changes[..index].iter().all(|earlier| earlier.path != change.path) {
            let path_changes: Vec<usize> =
                (index..changes.len()).filter(|&later| changes[later].path == change.path).collect();
            plan_path(changes, path_changes, current(&change.path), &mut planned);
        }
    }
    planned
}

/// Follows the changes of one path backwards while they are consecutive.
fn plan_path(
    changes: &[UndoChange],
    mut remaining: Vec<usize>,
    mut current: CurrentFileState,
    planned: &mut Vec<PlannedUndo>,
) {
    let path = remaining.first().map(|&first| changes[first].path.clone()).unwrap_or_default();
    let mut plan: Option<PlannedUndo> = None;
    while !remaining.is_empty() {
        let run = remaining.split_off(run_start(changes, &remaining));
        let goal = run[0];
        let action = decide_action(changes, &run, &current);
        if let UndoAction::Conflict(conflict) = action {
            let conflict = if plan.is_some() { UndoConflict::ChangedBetween } else { conflict };
            planned.extend(plan);
            remaining.extend(run);
            let goal = remaining.first().copied().unwrap_or(goal);
            return planned.push(PlannedUndo {
                path,
                action: UndoAction::Conflict(conflict),
                changes: remaining,
                goal_change: goal,
            });
        }
        current = match changes[goal].before {
            PriorFileState::File(hash) => CurrentFileState::File(hash),
            PriorFileState::Missing | PriorFileState::TooLarge => CurrentFileState::Missing,
        };
        plan = Some(match plan {
            None => PlannedUndo { path: path.clone(), action, changes: run, goal_change: goal },
            Some(newer) => {
                let action = if action == UndoAction::AlreadyRestored { newer.action } else { action };
                PlannedUndo { action, changes: [run, newer.changes].concat(), goal_change: goal, ..newer }
            }
        });
    }
    planned.extend(plan);
}

/// Finds the start of the newest run of consecutive changes.
fn run_start(changes: &[UndoChange], path_changes: &[usize]) -> usize {
    let follows = |pair: &[usize]| match (changes[pair[0]].after, changes[pair[1]].before) {
        (Some(left), PriorFileState::File(was)) => left == was,
        (None, PriorFileState::Missing) => true,
        (Some(_) | None, PriorFileState::Missing | PriorFileState::File(_) | PriorFileState::TooLarge) => {
            false
        }
    };
    path_changes.windows(2).rposition(|pair| !follows(pair)).map_or(0, |gap| gap + 1)
}

/// Decides the action for a run of consecutive changes.
fn decide_action(changes: &[UndoChange], run: &[usize], current: &CurrentFileState) -> UndoAction {
    let (goal, was) = (run[0], changes[run[0]].before);
    let is_left = |hash: Option<ContentHash>| run.iter().any(|&index| changes[index].after == hash);
    match (was, current) {
        (PriorFileState::TooLarge, _) => UndoAction::Conflict(UndoConflict::NotStored),
        (_, CurrentFileState::Unreadable(reason)) => {
            UndoAction::Conflict(UndoConflict::NotRestorable(reason.clone()))
        }
        (PriorFileState::Missing, CurrentFileState::Missing) => UndoAction::AlreadyRestored,
        (PriorFileState::File(was), CurrentFileState::File(current)) if was == *current => {
            UndoAction::AlreadyRestored
        }
        (PriorFileState::File(_), CurrentFileState::File(current)) if is_left(Some(*current)) => {
            UndoAction::Restore(goal)
        }
        (PriorFileState::Missing, CurrentFileState::File(current)) if is_left(Some(*current)) => {
            UndoAction::Remove
        }
        (PriorFileState::File(_), CurrentFileState::Missing) if is_left(None) => UndoAction::Restore(goal),
        (PriorFileState::File(_), CurrentFileState::Missing) => UndoAction::Conflict(UndoConflict::Removed),
        (PriorFileState::File(_) | PriorFileState::Missing, CurrentFileState::File(_)) => {
            UndoAction::Conflict(UndoConflict::Changed)
        }
    }
}

/// Lines of a diff that a user can review at once; longer ones are better viewed in an editor.
const DIFF_LINES_MAX: usize = 40;

/// Characters of one shown line of a diff.
const DIFF_LINE_CHARS_MAX: usize = 200;

/// Comparing larger texts takes too long.
const COMPARED_BYTES_MAX: usize = 256 * 1024;

/// Renders the change of a text as a unified diff; `None` if it is too large to compare.
pub fn render_unified_diff(current: &str, target: &str) -> Option<String> {
    if current.len().max(target.len()) > COMPARED_BYTES_MAX {
        return None;
    }
    let shown = TextDiff::compare_lines(current, target).render_hunks(2);
    let n_lines = shown.lines().count();
    let mut lines: Vec<String> = shown
        .lines()
        .take(DIFF_LINES_MAX)
        .map(|line| match line.char_indices().nth(DIFF_LINE_CHARS_MAX) {
            Some((cut, _)) => format!("{}…", &line[..cut]),
            None => line.to_owned(),
        })
        .collect();
    if n_lines > DIFF_LINES_MAX {
        lines.push(format!("… and {} more lines", n_lines - DIFF_LINES_MAX));
    }
    Some(lines.join("\n"))
}
