//! Stored file changes, so that they can be undone.

pub use crow_core::undo::UndoSnapshot;
use crow_core::{CallId, ContentHash, TranscriptEntry};

use crate::Timestamp;

/// A change that is about to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFileChange {
    /// Sequence number of the prompt whose turn makes it.
    pub turn: u64,
    pub call: CallId,
    /// Absolute path.
    pub path: String,
    /// The present content.
    pub before: UndoSnapshot,
    /// The content after the change; `None` if the file is deleted.
    pub after: Option<ContentHash>,
}

/// Identifies a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangeId(pub(crate) i64);

/// A change that was made, unless the process ended just before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub id: ChangeId,
    /// Sequence number of the prompt whose turn made it.
    pub turn: u64,
    pub call: CallId,
    /// Absolute path.
    pub path: String,
    /// The content before the change.
    pub before: UndoSnapshot,
    /// The content after the change; `None` if the file was deleted.
    pub after: Option<ContentHash>,
    pub created: Timestamp,
}

/// A prompt of a session, and the changes of files since.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredPrompt {
    pub seq: u64,
    pub entry: TranscriptEntry,
    /// Turns from this prompt on with changes that are not undone.
    pub n_undoable_turns: u64,
    /// Files that those changes concern.
    pub n_undoable_files: u64,
}
