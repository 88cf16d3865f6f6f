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
pub enum Before {
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
pub enum Was {
    /// Nothing.
    Missing,
    /// A file with this content.
    File(ContentHash),
    /// A file that was too large to keep.
    Unknown,
}

/// A change as it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where.
    pub path: String,
    /// What was there before.
    pub was: Was,
    /// What it left there; `None` is no file.
    pub left: Option<ContentHash>,
}

/// What is at a path now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Missing,
    /// A file with this content.
    File(ContentHash),
    /// Something that is not looked into; why.
    Odd(String),
}

/// What to do at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Put back what was there before this change, by its place among the changes.
    Restore(usize),
    /// Take the file away that the agent made.
    Remove,
    /// Nothing: it is as it was before.
    AlreadyThere,
    /// Leave it alone.
    Conflict(Conflict),
}

/// Why a path is left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conflict {
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

impl fmt::Display for Conflict {
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
pub struct Planned {
    /// Where.
    pub path: String,
    /// What to do.
    pub action: Action,
    /// The changes that this is about, by their places.
    pub changes: Vec<usize>,
    /// The change whose past is wanted there, by its place; known for conflicts as well.
    pub goal: usize,
}

/// Plans how to take changes back, oldest first, from what is at each path now. Each path is one entry, or two when the
/// newer of its changes can be taken back and the older ones cannot.
pub fn plan(changes: &[Change], now: impl Fn(&str) -> Found) -> Vec<Planned> {
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
fn plan_path(changes: &[Change], mut left: Vec<usize>, mut now: Found, planned: &mut Vec<Planned>) {
    let path = left.first().map(|&first| changes[first].path.clone()).unwrap_or_default();
    let mut done: Option<Planned> = None;
    while !left.is_empty() {
        let run = left.split_off(start_of_run(changes, &left));
        let goal = run[0];
        let action = decide(changes, &run, &now);
        if let Action::Conflict(conflict) = action {
            let conflict = if done.is_some() { Conflict::InBetween } else { conflict };
            planned.extend(done);
            left.extend(run);
            let goal = left.first().copied().unwrap_or(goal);
            return planned.push(Planned { path, action: Action::Conflict(conflict), changes: left, goal });
        }
        now = match changes[goal].was {
            Was::File(hash) => Found::File(hash),
            Was::Missing | Was::Unknown => Found::Missing,
        };
        done = Some(match done {
            None => Planned { path: path.clone(), action, changes: run, goal },
            Some(newer) => {
                let action = if action == Action::AlreadyThere { newer.action } else { action };
                Planned { action, changes: [run, newer.changes].concat(), goal, ..newer }
            }
        });
    }
    planned.extend(done);
}

/// Finds where the newest changes begin that each start from what the one before it left.
fn start_of_run(changes: &[Change], of_path: &[usize]) -> usize {
    let follows = |pair: &[usize]| match (changes[pair[0]].left, changes[pair[1]].was) {
        (Some(left), Was::File(was)) => left == was,
        (None, Was::Missing) => true,
        (Some(_) | None, Was::Missing | Was::File(_) | Was::Unknown) => false,
    };
    of_path.windows(2).rposition(|pair| !follows(pair)).map_or(0, |gap| gap + 1)
}

/// Decides about changes of one path that follow from each other.
fn decide(changes: &[Change], run: &[usize], now: &Found) -> Action {
    let (goal, was) = (run[0], changes[run[0]].was);
    let is_left = |hash: Option<ContentHash>| run.iter().any(|&index| changes[index].left == hash);
    match (was, now) {
        (Was::Unknown, _) => Action::Conflict(Conflict::NotKept),
        (_, Found::Odd(why)) => Action::Conflict(Conflict::Odd(why.clone())),
        (Was::Missing, Found::Missing) => Action::AlreadyThere,
        (Was::File(was), Found::File(now)) if was == *now => Action::AlreadyThere,
        (Was::File(_), Found::File(now)) if is_left(Some(*now)) => Action::Restore(goal),
        (Was::Missing, Found::File(now)) if is_left(Some(*now)) => Action::Remove,
        (Was::File(_), Found::Missing) if is_left(None) => Action::Restore(goal),
        (Was::File(_), Found::Missing) => Action::Conflict(Conflict::Gone),
        (Was::File(_) | Was::Missing, Found::File(_)) => Action::Conflict(Conflict::Changed),
    }
}

/// A person looks at a change of so many lines at once; more is better seen in an editor.
const DIFF_LINES_MAX: usize = 40;

/// Characters of one line of a difference that are shown.
const DIFF_LINE_CHARS_MAX: usize = 200;

/// Comparing larger texts takes longer than a person waits for.
const COMPARED_BYTES_MAX: usize = 256 * 1024;

/// Shows what would become of a text, a line each; `None` when it is too large to compare.
pub fn difference(now: &str, then: &str) -> Option<String> {
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
