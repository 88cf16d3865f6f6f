//! Takes changes of files back: what was kept is put where it was, on disk or through the client.
//!
//! Must never overwrite what the agent did not leave; that is decided in `crow_core::undo`. Knows no store.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use crow_acp::{ClientEditor, ClientError};
use crow_core::{
    ContentHash,
    undo::{
        CurrentFileState, PlannedUndo, PriorFileState, UndoAction, UndoChange, UndoConflict, UndoSnapshot,
        plan_undo, render_unified_diff,
    },
};
use tokio_util::sync::CancellationToken;

use crate::{
    Workspace,
    buffers::WriteTarget,
    changing::{hash_before, hash_content, mode_before, stamp_before, to_disk_bytes},
    files::{self, FileFingerprint, FileReplacement},
    text::{DecodedText, TextEncoding, decode_text},
    tool::{ToolError, run_blocking},
    workspace::ContentStamp,
};

/// What an undo works with.
#[derive(Debug, Clone, Copy)]
pub struct UndoContext<'a> {
    /// The session's folders and what was read in them.
    pub workspace: &'a Workspace,
    /// The files of the session's client, where there is one.
    pub editor: Option<&'a ClientEditor>,
    /// Stops it between two files.
    pub cut: &'a CancellationToken,
    /// Whether anything is done.
    pub how: UndoMode,
}

/// Whether an undo is done, only shown, or given up where it cannot be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoMode {
    /// It is done.
    Do,
    /// Nothing is changed; what would be done is told.
    Show,
    /// No file is changed; what stands in the way is told and need not be undone any more.
    Skip,
}

/// A change with what was there before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedChange {
    /// Its resolved path.
    pub path: String,
    /// What was there before.
    pub before: UndoSnapshot,
    /// What it left; `None` is no file.
    pub after: Option<ContentHash>,
}

/// What became of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoStatus {
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

impl UndoStatus {
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
pub struct UndoneFile {
    /// Its resolved path.
    pub path: String,
    /// What was done.
    pub done: UndoStatus,
    /// Why it was left alone.
    pub why: Option<String>,
    /// What would become of it, where it was left alone and is a text.
    pub diff: Option<String>,
    /// The changes that need not be undone any more, by their places.
    pub settled: Vec<usize>,
}

/// Takes changes back, oldest first, as far as nothing stands in the way. One that is cut leaves the rest as it is.
pub async fn undo_changes(cx: UndoContext<'_>, kept: Vec<RecordedChange>) -> Vec<UndoneFile> {
    let kept = Arc::new(kept);
    let Ok(changes) = hash_changes(&kept).await else { return Vec::new() };
    let mut seen: Vec<CurrentFile> = Vec::new();
    for change in &changes {
        if cx.cut.is_cancelled() {
            return Vec::new();
        }
        if seen.iter().all(|seen| seen.path != Path::new(&change.path)) {
            seen.push(inspect_file(&cx, &changes, PathBuf::from(&change.path)).await);
        }
    }
    let at = |path: &str| seen.iter().find(|seen| seen.path == Path::new(path));
    let planned = plan_undo(&changes, |path| {
        at(path)
            .map_or_else(|| CurrentFileState::Odd("it was not looked at".into()), |seen| seen.found.clone())
    });
    let mut undone: Vec<UndoneFile> = Vec::new();
    let mut last_goal = None;
    for planned in planned {
        let Some(seen) = at(&planned.path).filter(|_| !cx.cut.is_cancelled()) else { break };
        let is_second = undone.last().is_some_and(|last| last.path == planned.path);
        let now = match last_goal.filter(|_| is_second) {
            Some(goal) => DiffBase::Kept(goal),
            None => DiffBase::Seen(seen),
        };
        last_goal = Some(planned.goal);
        undone.push(apply_planned(&cx, &kept, planned, (seen, now)).await);
    }
    if cx.how == UndoMode::Skip {
        undone.retain(|undone| undone.done == UndoStatus::Skipped);
    }
    // Calls that ran side by side were kept in any order.
    undone.sort_by(|one, other| one.path.cmp(&other.path));
    undone
}

/// Names what was kept; hashing takes its time.
async fn hash_changes(kept: &Arc<Vec<RecordedChange>>) -> Result<Vec<UndoChange>, ToolError> {
    let kept = kept.clone();
    run_blocking(move || {
        let was = |before: &UndoSnapshot| match before {
            UndoSnapshot::Missing => PriorFileState::Missing,
            UndoSnapshot::Content { bytes, .. } => PriorFileState::File(hash_content(bytes)),
            UndoSnapshot::Unknown => PriorFileState::Unknown,
        };
        let change = |kept: &RecordedChange| UndoChange {
            path: kept.path.clone(),
            was: was(&kept.before),
            left: kept.after,
        };
        Ok(kept.iter().map(change).collect())
    })
    .await
}

/// What is at a path.
struct CurrentFile {
    path: PathBuf,
    found: CurrentFileState,
    /// What it would replace.
    mark: Option<FileFingerprint>,
    /// Its permission bits, where it is a file.
    mode: Option<u32>,
    /// Its text, unsaved changes included, where it is one.
    text: Option<String>,
    /// Whether a text goes through the client.
    via: WriteTarget,
}

impl CurrentFile {
    fn from_problem(path: PathBuf, why: String) -> Self {
        Self {
            path,
            found: CurrentFileState::Odd(why),
            mark: None,
            mode: None,
            text: None,
            via: WriteTarget::Disk,
        }
    }
}

/// What a difference begins with.
#[derive(Clone, Copy)]
enum DiffBase<'a> {
    Seen(&'a CurrentFile),
    /// What was put back there just now, by the change it is the past of.
    Kept(usize),
}

/// Looks at a path: what a client has not saved yet counts.
async fn inspect_file(cx: &UndoContext<'_>, changes: &[UndoChange], path: PathBuf) -> CurrentFile {
    let looked = {
        let path = path.clone();
        run_blocking(move || {
            let snapshot = files::read_snapshot(&path).map_err(|error| ToolError(error.to_string()))?;
            Ok((stamp_before(&snapshot.before), hash_before(&snapshot.before), snapshot))
        })
        .await
    };
    let (stamp, hashed, snapshot) = match looked {
        Ok(looked) => looked,
        Err(ToolError(why)) => return CurrentFile::from_problem(path, why),
    };
    let (mark, mode) = (Some(snapshot.mark), mode_before(&snapshot.before));
    let found = match (&snapshot.before, hashed) {
        (UndoSnapshot::Missing, _) => CurrentFileState::Missing,
        (_, Some(hash)) => CurrentFileState::File(hash),
        (UndoSnapshot::Content { .. } | UndoSnapshot::Unknown, None) => {
            CurrentFileState::Odd("it is too large to compare".into())
        }
    };
    let (text, via) =
        match read_buffer(cx, &path, stamp.is_some() || found == CurrentFileState::Missing).await {
            EditorBuffer::Silent => return CurrentFile::from_problem(path, SILENT.to_owned()),
            EditorBuffer::NotOpen => (text_before(&snapshot.before), WriteTarget::Disk),
            EditorBuffer::Text(text) if stamp == Some(ContentStamp::from_text(&text)) => {
                (text_before(&snapshot.before), WriteTarget::Client)
            }
            EditorBuffer::Text(text) => {
                let found = classify_unsaved(
                    changes,
                    &path,
                    &found,
                    hash_content(&to_disk_bytes(&text, &snapshot.before)),
                );
                return CurrentFile { path, found, mark, mode, text: Some(text), via: WriteTarget::Client };
            }
        };
    CurrentFile { path, found, mark, mode, text, via }
}

/// Names what a client has and has not saved. The disk may hold what the client has not seen.
fn classify_unsaved(
    changes: &[UndoChange],
    path: &Path,
    on_disk: &CurrentFileState,
    held: ContentHash,
) -> CurrentFileState {
    let is_known = changes.iter().filter(|change| Path::new(&change.path) == path).any(|change| {
        let was = match change.was {
            PriorFileState::Missing => CurrentFileState::Missing,
            PriorFileState::File(hash) => CurrentFileState::File(hash),
            PriorFileState::Unknown => return false,
        };
        was == *on_disk || change.left.map_or(CurrentFileState::Missing, CurrentFileState::File) == *on_disk
    });
    match is_known {
        true => CurrentFileState::File(held),
        false => CurrentFileState::Odd("it differs between the disk and the editor".into()),
    }
}

/// Why a file is left alone that may have changes nobody else knows.
const SILENT: &str = "the editor did not say what it has";

/// What a client has of a file.
#[derive(Debug, PartialEq, Eq)]
enum EditorBuffer {
    Text(String),
    /// Nothing, or it was not asked.
    NotOpen,
    /// It was asked and said nothing.
    Silent,
}

/// Asks the client for a file, where it may have it.
async fn read_buffer(cx: &UndoContext<'_>, path: &Path, may_be_text: bool) -> EditorBuffer {
    let is_its = path.to_str().is_some_and(|path| cx.workspace.contains(path));
    match cx.editor.filter(|editor| may_be_text && is_its && editor.capabilities().reads_files) {
        Some(editor) => to_buffer(editor.read_file(&cx.workspace.client_path(path), cx.cut).await),
        None => EditorBuffer::NotOpen,
    }
}

fn to_buffer(answer: Result<String, ClientError>) -> EditorBuffer {
    match answer {
        Ok(text) => EditorBuffer::Text(text),
        Err(ClientError::Refused(_)) => EditorBuffer::NotOpen,
        Err(ClientError::Silent(_) | ClientError::Cut) => EditorBuffer::Silent,
    }
}

fn text_before(before: &UndoSnapshot) -> Option<String> {
    match before {
        UndoSnapshot::Missing => Some(String::new()),
        UndoSnapshot::Unknown => None,
        UndoSnapshot::Content { bytes, .. } => match decode_text(bytes.clone()) {
            DecodedText::Text(text, _) => Some(text),
            DecodedText::Lossy(_) | DecodedText::Binary => None,
        },
    }
}

async fn apply_planned(
    cx: &UndoContext<'_>,
    kept: &Arc<Vec<RecordedChange>>,
    planned: PlannedUndo,
    (seen, now): (&CurrentFile, DiffBase<'_>),
) -> UndoneFile {
    let PlannedUndo { path, action, changes, goal } = planned;
    let conflict = match (action, seen.mark) {
        (UndoAction::Conflict(conflict), _) => Err(conflict),
        (UndoAction::AlreadyThere, _) => Ok(UndoStatus::Already),
        (UndoAction::Remove, Some(_)) if cx.how != UndoMode::Do => Ok(UndoStatus::Removed),
        (UndoAction::Restore(_), Some(_)) if cx.how != UndoMode::Do => Ok(UndoStatus::Restored),
        (UndoAction::Remove, Some(mark)) => remove_file(cx, &seen.path, mark).await,
        (UndoAction::Restore(change), Some(mark)) => restore_file(cx, seen, (kept, change), mark).await,
        (UndoAction::Remove | UndoAction::Restore(_), None) => {
            Err(UndoConflict::Odd("it was not looked at".into()))
        }
    };
    let settled = |changes| if cx.how == UndoMode::Do { changes } else { Vec::new() };
    match conflict {
        Ok(done) => UndoneFile { path, done, why: None, diff: None, settled: settled(changes) },
        Err(conflict) => {
            let why = Some(conflict.to_string());
            if cx.how == UndoMode::Skip {
                return UndoneFile { path, done: UndoStatus::Skipped, why, diff: None, settled: changes };
            }
            let diff = render_diff(kept, goal, now).filter(|_| conflict != UndoConflict::NotKept);
            // What can never be put back would stand in the way of older turns for ever.
            let is_for_good = matches!(conflict, UndoConflict::NotKept | UndoConflict::InBetween);
            let settled = if is_for_good { settled(changes) } else { Vec::new() };
            UndoneFile { path, done: UndoStatus::Conflict, why, diff, settled }
        }
    }
}

/// Shows what would become of a text.
fn render_diff(kept: &[RecordedChange], goal: usize, now: DiffBase<'_>) -> Option<String> {
    let text = |change: usize| kept.get(change).and_then(|kept| text_before(&kept.before));
    let now = match now {
        DiffBase::Seen(seen) => seen.text.clone(),
        DiffBase::Kept(change) => text(change),
    };
    render_unified_diff(&now?, &text(goal)?).filter(|diff| !diff.is_empty())
}

async fn remove_file(
    cx: &UndoContext<'_>,
    path: &Path,
    mark: FileFingerprint,
) -> Result<UndoStatus, UndoConflict> {
    let removed = {
        let path = path.to_owned();
        run_blocking(move || files::remove_file(&path, mark).map_err(|error| ToolError(error.to_string())))
            .await
    };
    removed.map_err(|why| UndoConflict::Odd(format!("could not remove it: {why}")))?;
    cx.workspace.forget_file(path);
    Ok(UndoStatus::Removed)
}

async fn restore_file(
    cx: &UndoContext<'_>,
    seen: &CurrentFile,
    (kept, change): (&Arc<Vec<RecordedChange>>, usize),
    mark: FileFingerprint,
) -> Result<UndoStatus, UndoConflict> {
    let path = seen.path.as_path();
    let refuse = |why: &dyn std::fmt::Display| UndoConflict::Odd(format!("could not put it back: {why}"));
    let through =
        cx.editor.filter(|editor| seen.via == WriteTarget::Client && editor.capabilities().writes_files);
    let mut mark = mark;
    if let Some(editor) = through
        && let Some(text) = kept.get(change).and_then(|kept| utf8_text(&kept.before))
    {
        let place = path.to_owned();
        let made = run_blocking(move || {
            files::open_or_create_parent(&place).map(drop).map_err(|error| ToolError(error.to_string()))
        });
        made.await.map_err(|why| refuse(&why))?;
        let written = editor.write_file(&cx.workspace.client_path(path), &text, cx.cut).await;
        written.map_err(|error| refuse(&error))?;
        let place = path.to_owned();
        let looked =
            run_blocking(move || files::read_snapshot(&place).map_err(|error| ToolError(error.to_string())))
                .await;
        mark = looked.map_err(|why| refuse(&why))?.mark;
    }
    // A client may have other ideas of line ends, formats and modes: what was kept is what is put back. A mode that
    // somebody gave the file since is theirs.
    let mode = seen.mode.or_else(|| kept.get(change).and_then(|kept| mode_before(&kept.before)));
    let (kept, place) = (kept.clone(), path.to_owned());
    let restored = run_blocking(move || restore_content(&place, &kept[change].before, (mode, mark))).await;
    restored.map_err(|why| refuse(&why))?;
    cx.workspace.forget_file(path);
    Ok(UndoStatus::Restored)
}

/// A text that a client writes as it is.
fn utf8_text(before: &UndoSnapshot) -> Option<String> {
    match before {
        UndoSnapshot::Content { bytes, .. } => match decode_text(bytes.clone()) {
            DecodedText::Text(text, TextEncoding::Utf8) => Some(text),
            DecodedText::Text(_, TextEncoding::Utf8Bom | TextEncoding::Utf16Le | TextEncoding::Utf16Be)
            | DecodedText::Lossy(_)
            | DecodedText::Binary => None,
        },
        UndoSnapshot::Missing | UndoSnapshot::Unknown => None,
    }
}

/// Puts a file back unless it is there to the letter.
fn restore_content(
    path: &Path,
    before: &UndoSnapshot,
    (mode, mark): (Option<u32>, FileFingerprint),
) -> Result<(), ToolError> {
    let UndoSnapshot::Content { bytes, .. } = before else { return Ok(()) };
    let is_there = files::read_snapshot(path).is_ok_and(|now| match now.before {
        UndoSnapshot::Content { bytes: there, mode: has } => {
            there == *bytes && (mode.is_none() || mode == has)
        }
        UndoSnapshot::Missing | UndoSnapshot::Unknown => false,
    });
    if is_there {
        return Ok(());
    }
    let new = FileReplacement { bytes, mode, over: mark };
    files::replace_file(path, new).map_err(|error| ToolError(error.to_string()))
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
        let wanted = [
            EditorBuffer::Text("a".into()),
            EditorBuffer::NotOpen,
            EditorBuffer::Silent,
            EditorBuffer::Silent,
        ];
        assert_eq!(answers.map(to_buffer), wanted);
    }
}
