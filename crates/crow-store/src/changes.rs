//! What is kept of a change to a file, so that it can be undone.

pub use crow_core::undo::UndoSnapshot;
use crow_core::{CallId, ContentHash};

use crate::Timestamp;

/// A change about to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFileChange {
    /// Place of the prompt whose turn makes it.
    pub turn: u64,
    /// The call that makes it.
    pub call: CallId,
    /// Absolute path.
    pub path: String,
    /// What is there now.
    pub before: UndoSnapshot,
    /// What will be there; `None` when the file will be gone.
    pub after: Option<ContentHash>,
}

/// Which change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangeId(pub(crate) i64);

/// A change that was made, unless the process ended just before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Its name.
    pub id: ChangeId,
    /// Place of the prompt whose turn made it.
    pub turn: u64,
    /// The call that made it.
    pub call: CallId,
    /// Absolute path.
    pub path: String,
    /// What was there.
    pub before: UndoSnapshot,
    /// What it left there; `None` when the file was gone.
    pub after: Option<ContentHash>,
    /// When.
    pub created: Timestamp,
}
