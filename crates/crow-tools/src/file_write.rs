//! The only way in which a tool changes a file: it records the content for undo, then replaces it on disk or through
//! the client. Must not know any tool, nor where undo records are stored.

use std::path::{Path, PathBuf};

use crow_acp::ClientEditor;
use crow_core::{ContentHash, undo::UndoSnapshot};
use crow_files::{FileReplacement, FileSnapshot, hash_content};

use crate::{
    ToolCx,
    editor_buffers::{self, WriteTarget},
    text_encoding::{BOM, DecodedText, TextEncoding, decode_text, encode_text},
    tool_error::{ToolError, run_blocking},
    workspace::ContentStamp,
};

pub(crate) const CHANGED_SINCE_READ: &str = "it has changed since it was read; read it again";
pub(crate) const CHANGED_OR_UNSAVED: &str = "it has changed since it was read, or has changes in the editor that are not saved; \
                                  the user has to save it there, then read it again";

/// Note for the model: an editor formatted the text on save.
const FORMATTED_NOTE: &str =
    "\n(the editor changed the text while saving; read the file before the next edit)";

/// Note for the user: the change has no undo record.
const NOT_UNDOABLE_NOTE: &str = "\n(the file was too large to record; this change cannot be undone)";

/// The content that a tool found before it computed a change.
#[derive(Debug)]
pub(crate) enum PriorContent<'a> {
    Missing,
    Disk(&'a str),
    /// The client's text, saved or not.
    Buffer(&'a str),
    /// Binary, or too large to read.
    Unreadable,
}

/// A change of a file that is computed and not yet written.
#[derive(Debug)]
pub(crate) struct FileWrite<'a> {
    /// The tool's action, for error messages.
    pub(crate) verb: &'static str,
    pub(crate) file_path: &'a str,
    pub(crate) prior: PriorContent<'a>,
    pub(crate) text: String,
    /// Whether the model gave the whole text, and not a change of a part of it.
    pub(crate) is_whole: bool,
    /// The file's encoding, which is kept.
    pub(crate) encoding: TextEncoding,
    /// Permission bits, if they are others than those of the file there.
    pub(crate) mode: Option<u32>,
}

/// A change that was written.
#[derive(Debug)]
pub(crate) struct WrittenFile {
    /// The file's content after the change.
    pub(crate) text: String,
    /// Further information for the model.
    pub(crate) note: String,
}

/// Returns the hash of the content before a change, if it is known.
pub(crate) fn hash_before(before: &UndoSnapshot) -> Option<ContentHash> {
    match before {
        UndoSnapshot::Content { bytes, .. } => Some(hash_content(bytes)),
        UndoSnapshot::Missing | UndoSnapshot::TooLarge => None,
    }
}

/// The permission bits of the file before a change.
pub(crate) fn mode_before(before: &UndoSnapshot) -> Option<u32> {
    match before {
        UndoSnapshot::Content { mode, .. } => *mode,
        UndoSnapshot::Missing | UndoSnapshot::TooLarge => None,
    }
}

/// Records the current content, then writes a change.
pub(crate) async fn apply_write(cx: &ToolCx<'_>, change: FileWrite<'_>) -> Result<WrittenFile, ToolError> {
    let path = cx.approved_path(change.file_path)?;
    let snapshot = take_snapshot(cx, &change, path.clone()).await?;
    // A client would write a file that it does not have open in an encoding of its own choice.
    let uses_client = editor_buffers::write_target(cx, change.file_path) == WriteTarget::Client
        && change.encoding == TextEncoding::Utf8
        && change.mode.is_none();
    // The rest of a file that the model has not read stays unknown to it.
    let is_known = change.is_whole
        || matches!(change.prior, PriorContent::Missing)
        || cx.workspace.seen_stamp(&path).is_some();
    let mut note = String::new();
    if cx.undo_recorder.is_some() && snapshot.before == UndoSnapshot::TooLarge {
        note.push_str(NOT_UNDOABLE_NOTE);
    }
    let text = match cx.editor.filter(|_| uses_client) {
        Some(editor) => {
            let text = write_through_client(cx, editor, change, path.clone(), snapshot).await?;
            if let SavedText::Reformatted(_) = text {
                note.push_str(FORMATTED_NOTE);
            }
            text.into_text()
        }
        None => write_to_disk(cx, change, path.clone(), snapshot).await?,
    };
    if is_known {
        cx.workspace.record_seen(path, ContentStamp::from_text(&text));
    }
    Ok(WrittenFile { text, note })
}

/// Records the current content, then removes a file from disk: clients have no method for it. The text of the change is
/// not used.
pub(crate) async fn remove_file(cx: &ToolCx<'_>, change: FileWrite<'_>) -> Result<(), ToolError> {
    let path = cx.approved_path(change.file_path)?;
    let FileSnapshot { before, fingerprint } = take_snapshot(cx, &change, path.clone()).await?;
    // Until the file is gone, the record says that nothing changed.
    let old_hash = hash_before(&before).unwrap_or_else(|| hash_content(&[]));
    record_undo(cx, &change, &path, before, old_hash).await?;
    let removed = {
        let path = path.clone();
        run_blocking(move || Ok(crow_files::remove_file(&path, fingerprint))).await?
    };
    removed.map_err(|error| change.to_error(cx, &error))?;
    correct_undo(cx, None).await;
    cx.workspace.forget_file(&path);
    Ok(())
}

impl FileWrite<'_> {
    fn to_error(&self, cx: &ToolCx<'_>, reason: &dyn std::fmt::Display) -> ToolError {
        ToolError(format!("could not {} {}: {reason}", self.verb, cx.workspace.display_path(self.file_path)))
    }
}

/// Reads the content that is about to be replaced; it must be the content that the tool read.
async fn take_snapshot(
    cx: &ToolCx<'_>,
    change: &FileWrite<'_>,
    path: PathBuf,
) -> Result<FileSnapshot, ToolError> {
    let lookup = run_blocking(move || {
        Ok(crow_files::read_snapshot(&path).map(|snapshot| (stamp_before(&snapshot.before), snapshot)))
    });
    let (current, mut snapshot) = lookup.await?.map_err(|error| change.to_error(cx, &error))?;
    let is_unchanged = match change.prior {
        PriorContent::Missing => snapshot.before == UndoSnapshot::Missing,
        PriorContent::Disk(text) => current == Some(ContentStamp::from_text(text)),
        PriorContent::Buffer(text) => {
            // Unsaved changes would be replaced as well. They cannot be detected if the encoding is unknown.
            let is_unsaved = current.is_some_and(|now| now != ContentStamp::from_text(text));
            if is_unsaved || snapshot.before == UndoSnapshot::Missing {
                let bytes = to_disk_bytes(text, &snapshot.before);
                snapshot.before = UndoSnapshot::Content { bytes, mode: mode_before(&snapshot.before) };
            }
            true
        }
        PriorContent::Unreadable => true,
    };
    if is_unchanged { Ok(snapshot) } else { Err(change.to_error(cx, &CHANGED_SINCE_READ)) }
}

/// Converts a client's text to the bytes of the file: an editor shows every line ending as `\n`.
pub(crate) fn to_disk_bytes(text: &str, disk: &UndoSnapshot) -> Vec<u8> {
    let has_crlf = match disk {
        // Line endings in another encoding are unknown.
        UndoSnapshot::Content { bytes, .. } => match decode_text(bytes.clone()) {
            DecodedText::Text(disk, _) => {
                let n_crlf = disk.matches("\r\n").count();
                n_crlf > 0 && n_crlf == disk.matches('\n').count()
            }
            DecodedText::Lossy(_) | DecodedText::Binary => false,
        },
        UndoSnapshot::Missing | UndoSnapshot::TooLarge => false,
    };
    match has_crlf && !text.contains('\r') {
        true => text.replace('\n', "\r\n").into_bytes(),
        false => text.as_bytes().to_vec(),
    }
}

/// Returns the stamp of the text before a change, if it is text.
pub(crate) fn stamp_before(before: &UndoSnapshot) -> Option<ContentStamp> {
    match before {
        UndoSnapshot::Content { bytes, .. } => match decode_text(bytes.clone()) {
            DecodedText::Text(text, _) => Some(ContentStamp::from_text(&text)),
            DecodedText::Lossy(_) | DecodedText::Binary => None,
        },
        UndoSnapshot::Missing | UndoSnapshot::TooLarge => None,
    }
}

async fn record_undo(
    cx: &ToolCx<'_>,
    change: &FileWrite<'_>,
    path: &Path,
    before: UndoSnapshot,
    after: ContentHash,
) -> Result<(), ToolError> {
    let Some(undo_recorder) = cx.undo_recorder else { return Ok(()) };
    let recorded = undo_recorder.record_change(path, before, after).await;
    recorded.map_err(|error| {
        let reason =
            format!("the current content could not be recorded for undo ({error}); nothing was changed");
        change.to_error(cx, &reason)
    })
}

async fn correct_undo(cx: &ToolCx<'_>, after: Option<ContentHash>) {
    if let Some(undo_recorder) = cx.undo_recorder {
        undo_recorder.correct_after(after).await;
    }
}

async fn write_to_disk(
    cx: &ToolCx<'_>,
    mut change: FileWrite<'_>,
    path: PathBuf,
    snapshot: FileSnapshot,
) -> Result<String, ToolError> {
    let FileSnapshot { before, fingerprint } = snapshot;
    let (mut text, encoding, mode) = (std::mem::take(&mut change.text), change.encoding, change.mode);
    let (text, bytes, before, old_hash, new_hash) = run_blocking(move || {
        // The encoder adds its own byte order mark.
        if encoding != TextEncoding::Utf8 && text.starts_with(BOM) {
            text.remove(0);
        }
        let bytes = encode_text(&text, encoding);
        let (old_hash, new_hash) = (hash_before(&before), hash_content(&bytes));
        Ok((text, bytes, before, old_hash, new_hash))
    })
    .await?;
    record_undo(cx, &change, &path, before, new_hash).await?;
    let replaced = run_blocking(move || {
        Ok(crow_files::replace_file(&path, FileReplacement { bytes: &bytes, mode, expected: fingerprint }))
    });
    match replaced.await? {
        Ok(()) => Ok(text),
        Err(error) => {
            correct_undo(cx, old_hash).await;
            Err(change.to_error(cx, &error))
        }
    }
}

/// The client's text after a save.
enum SavedText {
    Unchanged(String),
    Reformatted(String),
}

impl SavedText {
    fn into_text(self) -> String {
        match self {
            Self::Unchanged(text) | Self::Reformatted(text) => text,
        }
    }
}

async fn write_through_client(
    cx: &ToolCx<'_>,
    editor: &ClientEditor,
    mut change: FileWrite<'_>,
    path: PathBuf,
    snapshot: FileSnapshot,
) -> Result<SavedText, ToolError> {
    let text = std::mem::take(&mut change.text);
    let new_hash = hash_content(text.as_bytes());
    record_undo(cx, &change, &path, snapshot.before, new_hash).await?;
    let saved = editor_buffers::save_through_client(cx, editor, change.file_path, &text).await;
    let saved =
        saved.map(|current| current.map_or_else(|| SavedText::Unchanged(text), SavedText::Reformatted));
    if cx.undo_recorder.is_some() {
        let client_text = saved
            .as_ref()
            .ok()
            .map(|(SavedText::Unchanged(text) | SavedText::Reformatted(text))| text.as_str());
        // A client that failed may still write later; that cannot be known.
        if let Some(current) = current_hash(path, client_text).await.filter(|now| *now != Some(new_hash)) {
            correct_undo(cx, current).await;
        }
    }
    saved
}

/// Returns the hash of the content on disk, or of the client's text if that is not saved yet.
async fn current_hash(path: PathBuf, client_text: Option<&str>) -> Option<Option<ContentHash>> {
    let lookup = run_blocking(move || {
        let before = crow_files::read_snapshot(&path).ok().map(|snapshot| snapshot.before);
        Ok(before.map(|before| (stamp_before(&before), hash_before(&before), before)))
    });
    let on_disk = lookup.await.ok().flatten();
    match (on_disk, client_text) {
        (Some((stamp, hash, _)), Some(client_text))
            if stamp == Some(ContentStamp::from_text(client_text)) =>
        {
            Some(hash)
        }
        (Some((_, _, before)), Some(client_text)) => {
            Some(Some(hash_content(&to_disk_bytes(client_text, &before))))
        }
        (None, Some(client_text)) => Some(Some(hash_content(client_text.as_bytes()))),
        (on_disk, None) => on_disk.map(|(_, hash, _)| hash),
    }
}
