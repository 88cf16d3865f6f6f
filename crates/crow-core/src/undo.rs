//! What becomes of each path when changes are taken back. Pure: what is there is told, what is to be done is said.
//!
//! Must never decide to overwrite what the agent did not leave.

use std::fmt;

use similar::TextDiff;

use crate::ContentHash;

#[cfg(test)]
mod tests;

/// What was at a path before a change, kept whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoSnapshot {
    /// Nothing.
    Missing,
    /// A file.
    Content {
        /// What was in it.
        bytes: Vec<u8>,
        /// Its permission bits, where the system has them.
        mode: Option<u32>,
    },
    /// A file that was too large to keep.
    Unknown,
}

/// What was at a path before a change, known by its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriorFileState {
    /// Nothing.
    Missing,
    /// A file with this content.
    File(ContentHash),
    /// A file that was too large to keep.
    Unknown,
}

/// A change as it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoChange {
    /// Where.
    pub path: String,
    /// What was there before.
    pub was: PriorFileState,
    /// What it left there; `None` is no file.
    pub left: Option<ContentHash>,
}

/// What is at a path now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CurrentFileState {
    /// Nothing.
    Missing,
    /// A file with this content.
    File(ContentHash),
    /// Something that is not looked into; why.
    Odd(String),
}

/// What to do at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoAction {
    /// Put back what was there before this change, by its place among the changes.
    Restore(usize),
    /// Take the file away that the agent made.
    Remove,
    /// Nothing: it is as it was before.
    AlreadyThere,
    /// Leave it alone.
    Conflict(UndoConflict),
}

/// Why a path is left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoConflict {
    /// What was there was not kept, and never will be.
    NotKept,
    /// It is not as the agent left it.
    Changed,
    /// The file that the agent left is gone.
    Gone,
    /// Somebody changed it between two changes of the agent; what they left is what is put back.
    InBetween,
    /// It is no file that could be put back; why.
    Odd(String),
}

impl fmt::Display for UndoConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotKept => "what was there before was too large to keep; it cannot be undone",
            Self::Changed => "it has changed since the agent left it",
            Self::Gone => "it was removed since the agent left it",
            Self::InBetween => {
                "somebody else changed it between two changes of the agent; nothing before that is put back"
            }
            Self::Odd(why) => why,
        })
    }
}

/// What becomes of a path, or of its older changes when those are another matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedUndo {
    /// Where.
    pub path: String,
    /// What to do.
    pub action: UndoAction,
    /// The changes that this is about, by their places.
    pub changes: Vec<usize>,
    /// The change whose past is wanted there, by its place; known for conflicts as well.
    pub goal: usize,
}

/// Plans how to take changes back, oldest first, from what is at each path now. Each path is one entry, or two when the
/// newer of its changes can be taken back and the older ones cannot.
pub fn plan_undo(changes: &[UndoChange], now: impl Fn(&str) -> CurrentFileState) -> Vec<PlannedUndo> {
    let mut planned = Vec::new();
    for (index, change) in changes.iter().enumerate() {
        if changes[..index].iter().all(|earlier| earlier.path != change.path) {
            let of_path: Vec<usize> =
                (index..changes.len()).filter(|&later| changes[later].path == change.path).collect();
            plan_path(changes, of_path, now(&change.path), &mut planned);
        }
    }
    planned
}

/// Goes back through the changes of one path for as long as they follow from each other.
fn plan_path(
    changes: &[UndoChange],
    mut left: Vec<usize>,
    mut now: CurrentFileState,
    planned: &mut Vec<PlannedUndo>,
) {
    let path = left.first().map(|&first| changes[first].path.clone()).unwrap_or_default();
    let mut done: Option<PlannedUndo> = None;
    while !left.is_empty() {
        let run = left.split_off(run_start(changes, &left));
        let goal = run[0];
        let action = decide_action(changes, &run, &now);
        if let UndoAction::Conflict(conflict) = action {
            let conflict = if done.is_some() { UndoConflict::InBetween } else { conflict };
            planned.extend(done);
            left.extend(run);
            let goal = left.first().copied().unwrap_or(goal);
            return planned.push(PlannedUndo {
                path,
                action: UndoAction::Conflict(conflict),
                changes: left,
                goal,
            });
        }
        now = match changes[goal].was {
            PriorFileState::File(hash) => CurrentFileState::File(hash),
            PriorFileState::Missing | PriorFileState::Unknown => CurrentFileState::Missing,
        };
        done = Some(match done {
            None => PlannedUndo { path: path.clone(), action, changes: run, goal },
            Some(newer) => {
                let action = if action == UndoAction::AlreadyThere { newer.action } else { action };
                PlannedUndo { action, changes: [run, newer.changes].concat(), goal, ..newer }
            }
        });
    }
    planned.extend(done);
}

/// Finds where the newest changes begin that each start from what the one before it left.
fn run_start(changes: &[UndoChange], of_path: &[usize]) -> usize {
    let follows = |pair: &[usize]| match (changes[pair[0]].left, changes[pair[1]].was) {
        (Some(left), PriorFileState::File(was)) => left == was,
        (None, PriorFileState::Missing) => true,
        (Some(_) | None, PriorFileState::Missing | PriorFileState::File(_) | PriorFileState::Unknown) => {
            false
        }
    };
    of_path.windows(2).rposition(|pair| !follows(pair)).map_or(0, |gap| gap + 1)
}

/// Decides about changes of one path that follow from each other.
fn decide_action(changes: &[UndoChange], run: &[usize], now: &CurrentFileState) -> UndoAction {
    let (goal, was) = (run[0], changes[run[0]].was);
    let is_left = |hash: Option<ContentHash>| run.iter().any(|&index| changes[index].left == hash);
    match (was, now) {
        (PriorFileState::Unknown, _) => UndoAction::Conflict(UndoConflict::NotKept),
        (_, CurrentFileState::Odd(why)) => UndoAction::Conflict(UndoConflict::Odd(why.clone())),
        (PriorFileState::Missing, CurrentFileState::Missing) => UndoAction::AlreadyThere,
        (PriorFileState::File(was), CurrentFileState::File(now)) if was == *now => UndoAction::AlreadyThere,
        (PriorFileState::File(_), CurrentFileState::File(now)) if is_left(Some(*now)) => {
            UndoAction::Restore(goal)
        }
        (PriorFileState::Missing, CurrentFileState::File(now)) if is_left(Some(*now)) => UndoAction::Remove,
        (PriorFileState::File(_), CurrentFileState::Missing) if is_left(None) => UndoAction::Restore(goal),
        (PriorFileState::File(_), CurrentFileState::Missing) => UndoAction::Conflict(UndoConflict::Gone),
        (PriorFileState::File(_) | PriorFileState::Missing, CurrentFileState::File(_)) => {
            UndoAction::Conflict(UndoConflict::Changed)
        }
    }
}

/// A person looks at a change of so many lines at once; more is better seen in an editor.
const DIFF_LINES_MAX: usize = 40;

/// Characters of one line of a difference that are shown.
const DIFF_LINE_CHARS_MAX: usize = 200;

/// Comparing larger texts takes longer than a person waits for.
const COMPARED_BYTES_MAX: usize = 256 * 1024;

/// Shows what would become of a text, a line each; `None` when it is too large to compare.
pub fn render_unified_diff(now: &str, then: &str) -> Option<String> {
    if now.len().max(then.len()) > COMPARED_BYTES_MAX {
        return None;
    }
    let diff = TextDiff::from_lines(now, then);
    let shown = diff.unified_diff().context_radius(2).missing_newline_hint(false).to_string();
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
        lines.push(format!("… and {} lines more", n_lines - DIFF_LINES_MAX));
    }
    Some(lines.join("\n"))
}
