//! Undoes changes of files: restores the recorded content on disk or through the client.
//!
//! Must never overwrite content that the agent did not write; `crow_core::undo` decides that. Must not know the store.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use crow_acp::{ClientEditor, ClientError};
use crow_core::{
    ContentHash,
    undo::{
        CurrentFileState, PlannedUndo, PriorFileState, UndoAction, UndoChange, UndoConflict, UndoMode,
        UndoSnapshot, plan_undo, render_unified_diff,
    },
};
use crow_files::{FileFingerprint, FileReplacement, hash_content};
use tokio_util::sync::CancellationToken;

use crate::{
    Workspace,
    editor_buffers::WriteTarget,
    file_write::{hash_before, mode_before, stamp_before, to_disk_bytes},
    text_encoding::{DecodedText, TextEncoding, decode_text},
    tool_error::{ToolError, run_blocking},
    workspace::ContentStamp,
};

/// The context of an undo.
#[derive(Debug, Clone, Copy)]
pub struct UndoContext<'a> {
    /// The session's roots and the files read in them.
    pub workspace: &'a Workspace,
    /// The files of the session's client, if it has one.
    pub editor: Option<&'a ClientEditor>,
    /// Cancels the undo between two files.
    pub cancel: &'a CancellationToken,
    /// Whether the changes are undone.
    pub mode: UndoMode,
}

/// A recorded change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedChange {
    /// Its resolved path.
    pub path: String,
    /// The content before the change.
    pub before: UndoSnapshot,
    /// The content after the change; `None` if the file did not exist.
    pub after: Option<ContentHash>,
}

/// The outcome for one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoStatus {
    /// The content before the change was restored.
    Restored,
    /// The file that the agent created was deleted.
    Removed,
    /// The file already had the content before the change.
    AlreadyRestored,
    /// The file was left unchanged.
    Conflict,
    /// The file was left unchanged, and its changes count as undone.
    Skipped,
}

impl UndoStatus {
    /// The name in output for scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Restored => "restored",
            Self::Removed => "removed",
            Self::AlreadyRestored => "already",
            Self::Conflict => "conflict",
            Self::Skipped => "skipped",
        }
    }
}

/// The outcome of undoing the changes of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoneFile {
    /// Its resolved path.
    pub path: String,
    /// The outcome.
    pub status: UndoStatus,
    /// Reason why it was left unchanged.
    pub reason: Option<String>,
    /// The difference that an undo would make, if it was left unchanged and is a text.
    pub diff: Option<String>,
    /// Indices of the changes that no longer need to be undone.
    pub resolved_changes: Vec<usize>,
}

/// Undoes changes, given oldest first, as far as there is no conflict. If cancelled, it leaves the remaining files
/// unchanged.
pub async fn undo_changes(cx: UndoContext<'_>, recorded: Vec<RecordedChange>) -> Vec<UndoneFile> {
    let recorded = Arc::new(recorded);
    let Ok(changes) = hash_changes(&recorded).await else { return Vec::new() };
    let mut files: Vec<CurrentFile> = Vec::new();
    for change in &changes {
        if cx.cancel.is_cancelled() {
            return Vec::new();
        }
        if files.iter().all(|file| file.path != Path::new(&change.path)) {
            files.push(inspect_file(&cx, &recorded, &changes, PathBuf::from(&change.path)).await);
        }
    }
    let at = |path: &str| files.iter().find(|file| file.path == Path::new(path));
    let planned = plan_undo(&changes, |path| {
        at(path).map_or_else(
            || CurrentFileState::Unreadable("it was not inspected".into()),
            |current| current.state.clone(),
        )
    });
    let mut undone: Vec<UndoneFile> = Vec::new();
    let mut last_goal = None;
    for planned in planned {
        let Some(current) = at(&planned.path).filter(|_| !cx.cancel.is_cancelled()) else { break };
        let is_second = undone.last().is_some_and(|last| last.path == planned.path);
        let base = match last_goal.filter(|_| is_second) {
            Some(goal) => DiffBase::Restored(goal),
            None => DiffBase::Current(current),
        };
        last_goal = Some(planned.goal_change);
        undone.push(apply_planned(&cx, &recorded, planned, current, base).await);
    }
    if cx.mode == UndoMode::Skip {
        undone.retain(|undone| undone.status == UndoStatus::Skipped);
    }
    // Concurrent calls are recorded in any order.
    undone.sort_by(|one, other| one.path.cmp(&other.path));
    undone
}

/// Hashes the recorded contents on a blocking thread.
async fn hash_changes(recorded: &Arc<Vec<RecordedChange>>) -> Result<Vec<UndoChange>, ToolError> {
    let recorded = recorded.clone();
    run_blocking(move || {
        let prior_state = |before: &UndoSnapshot| match before {
            UndoSnapshot::Missing => PriorFileState::Missing,
            UndoSnapshot::Content { bytes, .. } => PriorFileState::File(hash_content(bytes)),
            UndoSnapshot::TooLarge => PriorFileState::TooLarge,
        };
        let change = |recorded: &RecordedChange| UndoChange {
            path: recorded.path.clone(),
            before: prior_state(&recorded.before),
            after: recorded.after,
        };
        Ok(recorded.iter().map(change).collect())
    })
    .await
}

/// The current state of a file.
struct CurrentFile {
    path: PathBuf,
    state: CurrentFileState,
    /// The state that an undo would replace.
    fingerprint: Option<FileFingerprint>,
    /// Its permission bits, if it is a file.
    mode: Option<u32>,
    /// Its text including unsaved changes, if it is one.
    text: Option<String>,
    target: WriteTarget,
}

impl CurrentFile {
    fn from_problem(path: PathBuf, reason: String) -> Self {
        Self {
            path,
            state: CurrentFileState::Unreadable(reason),
            fingerprint: None,
            mode: None,
            text: None,
            target: WriteTarget::Disk,
        }
    }
}

/// The base of a difference.
#[derive(Clone, Copy)]
enum DiffBase<'a> {
    Current(&'a CurrentFile),
    /// The content that the change with this index restored before.
    Restored(usize),
}

/// Reads the current state of a file, including changes that the client has not saved.
async fn inspect_file(
    cx: &UndoContext<'_>,
    recorded: &Arc<Vec<RecordedChange>>,
    changes: &[UndoChange],
    path: PathBuf,
) -> CurrentFile {
    let lookup = {
        let path = path.clone();
        run_blocking(move || {
            let snapshot = crow_files::read_snapshot(&path).map_err(|error| ToolError(error.to_string()))?;
            Ok((stamp_before(&snapshot.before), hash_before(&snapshot.before), snapshot))
        })
        .await
    };
    let (stamp, hash, snapshot) = match lookup {
        Ok(lookup) => lookup,
        Err(ToolError(reason)) => return CurrentFile::from_problem(path, reason),
    };
    let (fingerprint, mode) = (Some(snapshot.fingerprint), mode_before(&snapshot.before));
    let state = match (&snapshot.before, hash) {
        (UndoSnapshot::Missing, _) => CurrentFileState::Missing,
        (_, Some(hash)) => CurrentFileState::File(hash),
        (UndoSnapshot::Content { .. } | UndoSnapshot::TooLarge, None) => {
            CurrentFileState::Unreadable("it is too large to compare".into())
        }
    };
    let (text, target) =
        match read_buffer(cx, &path, stamp.is_some() || state == CurrentFileState::Missing).await {
            EditorBuffer::NoAnswer => return CurrentFile::from_problem(path, NO_EDITOR_ANSWER.to_owned()),
            EditorBuffer::NotOpen => (text_before(&snapshot.before), WriteTarget::Disk),
            EditorBuffer::Text(text) if stamp == Some(ContentStamp::from_text(&text)) => {
                (text_before(&snapshot.before), WriteTarget::Client)
            }
            EditorBuffer::Text(text) => {
                let hashed = {
                    let (recorded, path) = (recorded.clone(), path.clone());
                    run_blocking(move || Ok((hash_unsaved(&recorded, &path, &text, &snapshot.before), text)))
                };
                let (buffer_hash, text) = match hashed.await {
                    Ok(hashed) => hashed,
                    Err(ToolError(reason)) => return CurrentFile::from_problem(path, reason),
                };
                let state = classify_unsaved(changes, &path, &state, buffer_hash);
                return CurrentFile {
                    path,
                    state,
                    fingerprint,
                    mode,
                    text: Some(text),
                    target: WriteTarget::Client,
                };
            }
        };
    CurrentFile { path, state, fingerprint, mode, text, target }
}

/// Hashes a client's unsaved text as a file: as the recorded content with this text, whose encoding and line endings
/// the client does not show, or as it would be saved now.
fn hash_unsaved(recorded: &[RecordedChange], path: &Path, text: &str, disk: &UndoSnapshot) -> ContentHash {
    let stamp = Some(ContentStamp::from_text(text));
    let mut of_file = recorded.iter().filter(|change| Path::new(&change.path) == path);
    let same = of_file.rfind(|change| stamp_before(&change.before) == stamp);
    same.and_then(|change| hash_before(&change.before))
        .unwrap_or_else(|| hash_content(&to_disk_bytes(text, disk)))
}

/// Classifies a client's unsaved text. The file on disk may have changes that the client has not read.
fn classify_unsaved(
    changes: &[UndoChange],
    path: &Path,
    on_disk: &CurrentFileState,
    buffer_hash: ContentHash,
) -> CurrentFileState {
    let is_known = changes.iter().filter(|change| Path::new(&change.path) == path).any(|change| {
        let prior_state = match change.before {
            PriorFileState::Missing => CurrentFileState::Missing,
            PriorFileState::File(hash) => CurrentFileState::File(hash),
            PriorFileState::TooLarge => return false,
        };
        prior_state == *on_disk
            || change.after.map_or(CurrentFileState::Missing, CurrentFileState::File) == *on_disk
    });
    match is_known {
        // What is restored in the editor alone is missing on disk.
        true if is_goal(changes, path, buffer_hash) => on_disk.clone(),
        true => CurrentFileState::File(buffer_hash),
        false => CurrentFileState::Unreadable("it differs between the disk and the editor".into()),
    }
}

/// Whether an undo would leave a file with this content as it is.
fn is_goal(changes: &[UndoChange], path: &Path, hash: ContentHash) -> bool {
    let of_file: Vec<UndoChange> =
        changes.iter().filter(|change| Path::new(&change.path) == path).cloned().collect();
    let planned = plan_undo(&of_file, |_| CurrentFileState::File(hash));
    planned.iter().any(|planned| planned.action == UndoAction::AlreadyRestored)
}

/// Reason to leave a file unchanged that may have unsaved changes.
const NO_EDITOR_ANSWER: &str = "the editor did not respond";

/// A client's buffer of a file.
#[derive(Debug, PartialEq, Eq)]
enum EditorBuffer {
    Text(String),
    /// The client does not have the file, or was not asked.
    NotOpen,
    /// The client did not respond.
    NoAnswer,
}

/// Reads a file from the client, if it may have it.
async fn read_buffer(cx: &UndoContext<'_>, path: &Path, may_be_text: bool) -> EditorBuffer {
    let is_in_workspace = path.to_str().is_some_and(|path| cx.workspace.contains(path));
    match cx.editor.filter(|editor| may_be_text && is_in_workspace && editor.capabilities().reads_files) {
        Some(editor) => to_buffer(editor.read_file(&cx.workspace.client_path(path), cx.cancel).await),
        None => EditorBuffer::NotOpen,
    }
}

fn to_buffer(answer: Result<String, ClientError>) -> EditorBuffer {
    match answer {
        Ok(text) => EditorBuffer::Text(text),
        Err(ClientError::Rejected(_)) => EditorBuffer::NotOpen,
        Err(ClientError::TimedOut(_) | ClientError::Cancelled) => EditorBuffer::NoAnswer,
    }
}

fn text_before(before: &UndoSnapshot) -> Option<String> {
    match before {
        UndoSnapshot::Missing => Some(String::new()),
        UndoSnapshot::TooLarge => None,
        UndoSnapshot::Content { bytes, .. } => match decode_text(bytes.clone()) {
            DecodedText::Text(text, _) => Some(text),
            DecodedText::Lossy(_) | DecodedText::Binary => None,
        },
    }
}

async fn apply_planned(
    cx: &UndoContext<'_>,
    recorded: &Arc<Vec<RecordedChange>>,
    planned: PlannedUndo,
    current: &CurrentFile,
    base: DiffBase<'_>,
) -> UndoneFile {
    let PlannedUndo { path, action, changes, goal_change: goal } = planned;
    let result = match (action, current.fingerprint) {
        (UndoAction::Conflict(conflict), _) => Err(conflict),
        (UndoAction::AlreadyRestored, _) => Ok(UndoStatus::AlreadyRestored),
        (UndoAction::Remove, Some(_)) if cx.mode != UndoMode::Apply => Ok(UndoStatus::Removed),
        (UndoAction::Restore(_), Some(_)) if cx.mode != UndoMode::Apply => Ok(UndoStatus::Restored),
        (UndoAction::Remove, Some(fingerprint)) => remove_file(cx, &current.path, fingerprint).await,
        (UndoAction::Restore(change), Some(fingerprint)) => {
            restore_file(cx, current, recorded, change, fingerprint).await
        }
        (UndoAction::Remove | UndoAction::Restore(_), None) => {
            Err(UndoConflict::NotRestorable("it was not inspected".into()))
        }
    };
    let resolve = |changes| if cx.mode == UndoMode::Apply { changes } else { Vec::new() };
    match result {
        Ok(status) => {
            UndoneFile { path, status, reason: None, diff: None, resolved_changes: resolve(changes) }
        }
        Err(conflict) => {
            let reason = Some(conflict.to_string());
            if cx.mode == UndoMode::Skip {
                return UndoneFile {
                    path,
                    status: UndoStatus::Skipped,
                    reason,
                    diff: None,
                    resolved_changes: changes,
                };
            }
            let diff = render_diff(recorded, goal, base).filter(|_| conflict != UndoConflict::NotStored);
            // A change that can never be undone must not block the undo of older turns forever.
            let is_permanent = matches!(conflict, UndoConflict::NotStored | UndoConflict::ChangedBetween);
            let resolved_changes = if is_permanent { resolve(changes) } else { Vec::new() };
            UndoneFile { path, status: UndoStatus::Conflict, reason, diff, resolved_changes }
        }
    }
}

/// Renders the difference that an undo would make.
fn render_diff(recorded: &[RecordedChange], goal: usize, base: DiffBase<'_>) -> Option<String> {
    let text = |change: usize| recorded.get(change).and_then(|change| text_before(&change.before));
    let base = match base {
        DiffBase::Current(current) => current.text.clone(),
        DiffBase::Restored(change) => text(change),
    };
    render_unified_diff(&base?, &text(goal)?).filter(|diff| !diff.is_empty())
}

async fn remove_file(
    cx: &UndoContext<'_>,
    path: &Path,
    fingerprint: FileFingerprint,
) -> Result<UndoStatus, UndoConflict> {
    let removed = {
        let path = path.to_owned();
        run_blocking(move || {
            crow_files::remove_file(&path, fingerprint).map_err(|error| ToolError(error.to_string()))
        })
        .await
    };
    removed.map_err(|reason| UndoConflict::NotRestorable(format!("could not remove it: {reason}")))?;
    cx.workspace.forget_file(path);
    Ok(UndoStatus::Removed)
}

async fn restore_file(
    cx: &UndoContext<'_>,
    current: &CurrentFile,
    recorded: &Arc<Vec<RecordedChange>>,
    change: usize,
    fingerprint: FileFingerprint,
) -> Result<UndoStatus, UndoConflict> {
    let path = current.path.as_path();
    let refuse = |reason: &dyn std::fmt::Display| {
        UndoConflict::NotRestorable(format!("could not restore it: {reason}"))
    };
    let editor = cx
        .editor
        .filter(|editor| current.target == WriteTarget::Client && editor.capabilities().writes_files);
    let mut fingerprint = fingerprint;
    if let Some(editor) = editor
        && let Some(text) = recorded.get(change).and_then(|change| utf8_text(&change.before))
    {
        let owned_path = path.to_owned();
        let created = run_blocking(move || {
            crow_files::open_or_create_parent(&owned_path)
                .map(drop)
                .map_err(|error| ToolError(error.to_string()))
        });
        created.await.map_err(|reason| refuse(&reason))?;
        let written = editor.write_file(&cx.workspace.client_path(path), &text, cx.cancel).await;
        written.map_err(|error| refuse(&error))?;
        let owned_path = path.to_owned();
        let lookup = run_blocking(move || {
            crow_files::read_snapshot(&owned_path).map_err(|error| ToolError(error.to_string()))
        })
        .await;
        fingerprint = lookup.map_err(|reason| refuse(&reason))?.fingerprint;
    }
    // A client may change line endings, format and mode: the recorded content is restored. A mode that the user has set
    // since is kept.
    let mode = current.mode.or_else(|| recorded.get(change).and_then(|change| mode_before(&change.before)));
    let (recorded, owned_path) = (recorded.clone(), path.to_owned());
    let restored =
        run_blocking(move || restore_content(&owned_path, &recorded[change].before, mode, fingerprint)).await;
    restored.map_err(|reason| refuse(&reason))?;
    cx.workspace.forget_file(path);
    Ok(UndoStatus::Restored)
}

/// Returns a text that a client writes unchanged.
fn utf8_text(before: &UndoSnapshot) -> Option<String> {
    match before {
        UndoSnapshot::Content { bytes, .. } => match decode_text(bytes.clone()) {
            DecodedText::Text(text, TextEncoding::Utf8) => Some(text),
            DecodedText::Text(_, TextEncoding::Utf8Bom | TextEncoding::Utf16Le | TextEncoding::Utf16Be)
            | DecodedText::Lossy(_)
            | DecodedText::Binary => None,
        },
        UndoSnapshot::Missing | UndoSnapshot::TooLarge => None,
    }
}

/// Restores a file unless its content is already the same.
fn restore_content(
    path: &Path,
    before: &UndoSnapshot,
    mode: Option<u32>,
    fingerprint: FileFingerprint,
) -> Result<(), ToolError> {
    let UndoSnapshot::Content { bytes, .. } = before else { return Ok(()) };
    let is_there = crow_files::read_snapshot(path).is_ok_and(|current| match current.before {
        UndoSnapshot::Content { bytes: content_now, mode: mode_now } => {
            content_now == *bytes && (mode.is_none() || mode == mode_now)
        }
        UndoSnapshot::Missing | UndoSnapshot::TooLarge => false,
    });
    if is_there {
        return Ok(());
    }
    let replacement = FileReplacement { bytes, mode, expected: fingerprint };
    crow_files::replace_file(path, replacement).map_err(|error| ToolError(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn text_before_the_change_in_the_editor_alone_is_not_restored() {
        let hash = |text: &str| hash_content(text.as_bytes());
        let path = Path::new("/a");
        let change = |before: &str, after| UndoChange {
            path: "/a".into(),
            before: PriorFileState::File(hash(before)),
            after,
        };
        let removed = [change("one", Some(hash("two"))), change("two", None)];
        let edited = [change("one", Some(hash("two")))];
        let twice = [change("one", Some(hash("two"))), change("person", Some(hash("three")))];
        let file = |text: &str| CurrentFileState::File(hash(text));
        let cases = [
            (&removed[..], CurrentFileState::Missing, "one", CurrentFileState::Missing),
            (&removed[..], CurrentFileState::Missing, "typed", file("typed")),
            (&edited[..], file("two"), "one", file("two")),
            (&edited[..], file("two"), "typed", file("typed")),
            (&edited[..], file("one"), "two", file("two")),
            (&twice[..], file("three"), "person", file("three")),
            (&twice[..], file("three"), "one", file("one")),
        ];
        for (changes, on_disk, buffer, expected) in cases {
            let classified = classify_unsaved(changes, path, &on_disk, hash(buffer));
            assert_eq!(classified, expected, "{buffer} in the editor, {on_disk:?} on disk");
        }
    }

    #[test]
    fn unsaved_text_has_the_bytes_of_the_recorded_file() {
        let utf16: Vec<u8> = "\u{feff}one\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let before = UndoSnapshot::Content { bytes: utf16.clone(), mode: None };
        let recorded = [RecordedChange { path: "/a".into(), before, after: None }];
        let hash = |text: &str| hash_unsaved(&recorded, Path::new("/a"), text, &UndoSnapshot::Missing);
        assert_eq!(hash("one\n"), hash_content(&utf16));
        assert_eq!(hash("typed\n"), hash_content(b"typed\n"));
    }

    #[test]
    fn silent_client_may_have_unsaved_changes() {
        let refused = ClientError::Rejected("no such file".into());
        let answers = [
            Ok("a".to_owned()),
            Err(refused),
            Err(ClientError::TimedOut(Duration::ZERO)),
            Err(ClientError::Cancelled),
        ];
        let expected = [
            EditorBuffer::Text("a".into()),
            EditorBuffer::NotOpen,
            EditorBuffer::NoAnswer,
            EditorBuffer::NoAnswer,
        ];
        assert_eq!(answers.map(to_buffer), expected);
    }
}
