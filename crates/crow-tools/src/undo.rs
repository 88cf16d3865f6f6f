//! Takes changes of files back: what was kept is put where it was, on disk or through the client.
//!
//! Must never overwrite what the agent did not leave; that is decided in `crow_core::undo`. Knows no store.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use crow_acp::{ClientError, Editor};
use crow_core::{
    ContentHash,
    undo::{Action, Before, Change, Conflict, Found, Planned, Was, difference, plan},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Workspace,
    buffers::Via,
    changing::{hash, hash_of, mode_of, on_disk_as, stamp},
    files::{self, Mark, Replacement},
    text::{Decoded, Encoding, decode},
    tool::{Refusal, off_thread},
    workspace::Stamp,
};

/// What an undo works with.
#[derive(Debug, Clone, Copy)]
pub struct Undoing<'a> {
    /// The session's folders and what was read in them.
    pub workspace: &'a Workspace,
    /// The files of the session's client, where there is one.
    pub editor: Option<&'a Editor>,
    /// Stops it between two files.
    pub cut: &'a CancellationToken,
    /// Whether anything is done.
    pub how: How,
}

/// Whether an undo is done, only shown, or given up where it cannot be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It is done.
    Do,
    /// Nothing is changed; what would be done is told.
    Show,
    /// No file is changed; what stands in the way is told and need not be undone any more.
    Skip,
}

/// A change with what was there before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Its resolved path.
    pub path: String,
    /// What was there before.
    pub before: Before,
    /// What it left; `None` is no file.
    pub after: Option<ContentHash>,
}

/// What became of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// What was there before is there again.
    Restored,
    /// The file that the agent made is gone.
    Removed,
    /// It was as it was before already.
    Already,
    /// It was left alone.
    Conflict,
    /// It was left alone for good.
    Skipped,
}

impl Done {
    /// Spells it for scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Restored => "restored",
            Self::Removed => "removed",
            Self::Already => "already",
            Self::Conflict => "conflict",
            Self::Skipped => "skipped",
        }
    }
}

/// What became of the changes of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undone {
    /// Its resolved path.
    pub path: String,
    /// What was done.
    pub done: Done,
    /// Why it was left alone.
    pub why: Option<String>,
    /// What would become of it, where it was left alone and is a text.
    pub diff: Option<String>,
    /// The changes that need not be undone any more, by their places.
    pub settled: Vec<usize>,
}

/// Takes changes back, oldest first, as far as nothing stands in the way. One that is cut leaves the rest as it is.
pub async fn undo(cx: Undoing<'_>, kept: Vec<Kept>) -> Vec<Undone> {
    let kept = Arc::new(kept);
    let Ok(changes) = changes(&kept).await else { return Vec::new() };
    let mut seen: Vec<Seen> = Vec::new();
    for change in &changes {
        if cx.cut.is_cancelled() {
            return Vec::new();
        }
        if seen.iter().all(|seen| seen.path != Path::new(&change.path)) {
            seen.push(look(&cx, &changes, PathBuf::from(&change.path)).await);
        }
    }
    let at = |path: &str| seen.iter().find(|seen| seen.path == Path::new(path));
    let planned = plan(&changes, |path| {
        at(path).map_or_else(|| Found::Odd("it was not looked at".into()), |seen| seen.found.clone())
    });
    let mut undone: Vec<Undone> = Vec::new();
    let mut last_goal = None;
    for planned in planned {
        let Some(seen) = at(&planned.path).filter(|_| !cx.cut.is_cancelled()) else { break };
        let is_second = undone.last().is_some_and(|last| last.path == planned.path);
        let now = match last_goal.filter(|_| is_second) {
            Some(goal) => Then::Kept(goal),
            None => Then::Seen(seen),
        };
        last_goal = Some(planned.goal);
        undone.push(carry_out(&cx, &kept, planned, (seen, now)).await);
    }
    if cx.how == How::Skip {
        undone.retain(|undone| undone.done == Done::Skipped);
    }
    // Calls that ran side by side were kept in any order.
    undone.sort_by(|one, other| one.path.cmp(&other.path));
    undone
}

/// Names what was kept; hashing takes its time.
async fn changes(kept: &Arc<Vec<Kept>>) -> Result<Vec<Change>, Refusal> {
    let kept = kept.clone();
    off_thread(move || {
        let was = |before: &Before| match before {
            Before::Missing => Was::Missing,
            Before::Content { bytes, .. } => Was::File(hash(bytes)),
            Before::Unknown => Was::Unknown,
        };
        let change =
            |kept: &Kept| Change { path: kept.path.clone(), was: was(&kept.before), left: kept.after };
        Ok(kept.iter().map(change).collect())
    })
    .await
}

/// What is at a path.
struct Seen {
    path: PathBuf,
    found: Found,
    /// What it would replace.
    mark: Option<Mark>,
    /// Its permission bits, where it is a file.
    mode: Option<u32>,
    /// Its text, unsaved changes included, where it is one.
    text: Option<String>,
    /// Whether a text goes through the client.
    via: Via,
}

impl Seen {
    fn odd(path: PathBuf, why: String) -> Self {
        Self { path, found: Found::Odd(why), mark: None, mode: None, text: None, via: Via::Disk }
    }
}

/// What a difference begins with.
#[derive(Clone, Copy)]
enum Then<'a> {
    Seen(&'a Seen),
    /// What was put back there just now, by the change it is the past of.
    Kept(usize),
}

/// Looks at a path: what a client has not saved yet counts.
async fn look(cx: &Undoing<'_>, changes: &[Change], path: PathBuf) -> Seen {
    let looked = {
        let path = path.clone();
        off_thread(move || {
            let snapshot = files::snapshot(&path).map_err(|error| Refusal(error.to_string()))?;
            Ok((stamp(&snapshot.before), hash_of(&snapshot.before), snapshot))
        })
        .await
    };
    let (stamp, hashed, snapshot) = match looked {
        Ok(looked) => looked,
        Err(Refusal(why)) => return Seen::odd(path, why),
    };
    let (mark, mode) = (Some(snapshot.mark), mode_of(&snapshot.before));
    let found = match (&snapshot.before, hashed) {
        (Before::Missing, _) => Found::Missing,
        (_, Some(hash)) => Found::File(hash),
        (Before::Content { .. } | Before::Unknown, None) => Found::Odd("it is too large to compare".into()),
    };
    let (text, via) = match buffer(cx, &path, stamp.is_some() || found == Found::Missing).await {
        Buffer::Silent => return Seen::odd(path, SILENT.to_owned()),
        Buffer::NotOpen => (text_of(&snapshot.before), Via::Disk),
        Buffer::Text(text) if stamp == Some(Stamp::of(&text)) => (text_of(&snapshot.before), Via::Client),
        Buffer::Text(text) => {
            let found = unsaved(changes, &path, &found, hash(&on_disk_as(&text, &snapshot.before)));
            return Seen { path, found, mark, mode, text: Some(text), via: Via::Client };
        }
    };
    Seen { path, found, mark, mode, text, via }
}

/// Names what a client has and has not saved. The disk may hold what the client has not seen.
fn unsaved(changes: &[Change], path: &Path, on_disk: &Found, held: ContentHash) -> Found {
    let is_known = changes.iter().filter(|change| Path::new(&change.path) == path).any(|change| {
        let was = match change.was {
            Was::Missing => Found::Missing,
            Was::File(hash) => Found::File(hash),
            Was::Unknown => return false,
        };
        was == *on_disk || change.left.map_or(Found::Missing, Found::File) == *on_disk
    });
    match is_known {
        true => Found::File(held),
        false => Found::Odd("it differs between the disk and the editor".into()),
    }
}

/// Why a file is left alone that may have changes nobody else knows.
const SILENT: &str = "the editor did not say what it has";

/// What a client has of a file.
#[derive(Debug, PartialEq, Eq)]
enum Buffer {
    Text(String),
    /// Nothing, or it was not asked.
    NotOpen,
    /// It was asked and said nothing.
    Silent,
}

/// Asks the client for a file, where it may have it.
async fn buffer(cx: &Undoing<'_>, path: &Path, may_be_text: bool) -> Buffer {
    let is_its = path.to_str().is_some_and(|path| cx.workspace.holds(path));
    match cx.editor.filter(|editor| may_be_text && is_its && editor.abilities().reads_files) {
        Some(editor) => told(editor.read_file(&cx.workspace.spelled(path), cx.cut).await),
        None => Buffer::NotOpen,
    }
}

fn told(answer: Result<String, ClientError>) -> Buffer {
    match answer {
        Ok(text) => Buffer::Text(text),
        Err(ClientError::Refused(_)) => Buffer::NotOpen,
        Err(ClientError::Silent(_) | ClientError::Cut) => Buffer::Silent,
    }
}

fn text_of(before: &Before) -> Option<String> {
    match before {
        Before::Missing => Some(String::new()),
        Before::Unknown => None,
        Before::Content { bytes, .. } => match decode(bytes.clone()) {
            Decoded::Text(text, _) => Some(text),
            Decoded::Lossy(_) | Decoded::Binary => None,
        },
    }
}

async fn carry_out(
    cx: &Undoing<'_>,
    kept: &Arc<Vec<Kept>>,
    planned: Planned,
    (seen, now): (&Seen, Then<'_>),
) -> Undone {
    let Planned { path, action, changes, goal } = planned;
    let conflict = match (action, seen.mark) {
        (Action::Conflict(conflict), _) => Err(conflict),
        (Action::AlreadyThere, _) => Ok(Done::Already),
        (Action::Remove, Some(_)) if cx.how != How::Do => Ok(Done::Removed),
        (Action::Restore(_), Some(_)) if cx.how != How::Do => Ok(Done::Restored),
        (Action::Remove, Some(mark)) => remove(cx, &seen.path, mark).await,
        (Action::Restore(change), Some(mark)) => restore(cx, seen, (kept, change), mark).await,
        (Action::Remove | Action::Restore(_), None) => Err(Conflict::Odd("it was not looked at".into())),
    };
    let settled = |changes| if cx.how == How::Do { changes } else { Vec::new() };
    match conflict {
        Ok(done) => Undone { path, done, why: None, diff: None, settled: settled(changes) },
        Err(conflict) => {
            let why = Some(conflict.to_string());
            if cx.how == How::Skip {
                return Undone { path, done: Done::Skipped, why, diff: None, settled: changes };
            }
            let diff = shown(kept, goal, now).filter(|_| conflict != Conflict::NotKept);
            // What can never be put back would stand in the way of older turns for ever.
            let is_for_good = matches!(conflict, Conflict::NotKept | Conflict::InBetween);
            let settled = if is_for_good { settled(changes) } else { Vec::new() };
            Undone { path, done: Done::Conflict, why, diff, settled }
        }
    }
}

/// Shows what would become of a text.
fn shown(kept: &[Kept], goal: usize, now: Then<'_>) -> Option<String> {
    let text = |change: usize| kept.get(change).and_then(|kept| text_of(&kept.before));
    let now = match now {
        Then::Seen(seen) => seen.text.clone(),
        Then::Kept(change) => text(change),
    };
    difference(&now?, &text(goal)?).filter(|diff| !diff.is_empty())
}

async fn remove(cx: &Undoing<'_>, path: &Path, mark: Mark) -> Result<Done, Conflict> {
    let removed = {
        let path = path.to_owned();
        off_thread(move || files::remove(&path, mark).map_err(|error| Refusal(error.to_string()))).await
    };
    removed.map_err(|why| Conflict::Odd(format!("could not remove it: {why}")))?;
    cx.workspace.forget(path);
    Ok(Done::Removed)
}

async fn restore(
    cx: &Undoing<'_>,
    seen: &Seen,
    (kept, change): (&Arc<Vec<Kept>>, usize),
    mark: Mark,
) -> Result<Done, Conflict> {
    let path = seen.path.as_path();
    let refuse = |why: &dyn std::fmt::Display| Conflict::Odd(format!("could not put it back: {why}"));
    let through = cx.editor.filter(|editor| seen.via == Via::Client && editor.abilities().writes_files);
    let mut mark = mark;
    if let Some(editor) = through
        && let Some(text) = kept.get(change).and_then(|kept| plain(&kept.before))
    {
        let place = path.to_owned();
        let made = off_thread(move || {
            files::folder_of(&place).map(drop).map_err(|error| Refusal(error.to_string()))
        });
        made.await.map_err(|why| refuse(&why))?;
        let written = editor.write_file(&cx.workspace.spelled(path), &text, cx.cut).await;
        written.map_err(|error| refuse(&error))?;
        let place = path.to_owned();
        let looked =
            off_thread(move || files::snapshot(&place).map_err(|error| Refusal(error.to_string()))).await;
        mark = looked.map_err(|why| refuse(&why))?.mark;
    }
    // A client may have other ideas of line ends, formats and modes: what was kept is what is put back. A mode that
    // somebody gave the file since is theirs.
    let mode = seen.mode.or_else(|| kept.get(change).and_then(|kept| mode_of(&kept.before)));
    let (kept, place) = (kept.clone(), path.to_owned());
    let restored = off_thread(move || put_back(&place, &kept[change].before, (mode, mark))).await;
    restored.map_err(|why| refuse(&why))?;
    cx.workspace.forget(path);
    Ok(Done::Restored)
}

/// A text that a client writes as it is.
fn plain(before: &Before) -> Option<String> {
    match before {
        Before::Content { bytes, .. } => match decode(bytes.clone()) {
            Decoded::Text(text, Encoding::Utf8) => Some(text),
            Decoded::Text(_, Encoding::Utf8Bom | Encoding::Utf16Le | Encoding::Utf16Be)
            | Decoded::Lossy(_)
            | Decoded::Binary => None,
        },
        Before::Missing | Before::Unknown => None,
    }
}

/// Puts a file back unless it is there to the letter.
fn put_back(path: &Path, before: &Before, (mode, mark): (Option<u32>, Mark)) -> Result<(), Refusal> {
    let Before::Content { bytes, .. } = before else { return Ok(()) };
    let is_there = files::snapshot(path).is_ok_and(|now| match now.before {
        Before::Content { bytes: there, mode: has } => there == *bytes && (mode.is_none() || mode == has),
        Before::Missing | Before::Unknown => false,
    });
    if is_there {
        return Ok(());
    }
    let new = Replacement { bytes, mode, over: mark };
    files::replace(path, new).map_err(|error| Refusal(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_client_that_says_nothing_may_have_anything() {
        let refused = ClientError::Refused("no such file".into());
        let answers = [
            Ok("a".to_owned()),
            Err(refused),
            Err(ClientError::Silent(Duration::ZERO)),
            Err(ClientError::Cut),
        ];
        let wanted = [Buffer::Text("a".into()), Buffer::NotOpen, Buffer::Silent, Buffer::Silent];
        assert_eq!(answers.map(told), wanted);
    }
}
