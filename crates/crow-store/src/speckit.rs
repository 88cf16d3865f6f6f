//! The state of Spec Kit in a session: the current feature, and the outcomes of its commands. The meaning of the
//! values belongs to the callers.

use crow_core::ContentHash;

use crate::Timestamp;

/// The Spec Kit state of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpeckitRow {
    /// Absolute path of the project.
    pub project_root: String,
    /// The feature it works on.
    pub feature_dir: Option<String>,
    pub last_command: Option<String>,
    /// Time of the last change.
    pub updated: Timestamp,
}

/// The outcome of a Spec Kit command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpeckitEvent {
    /// Time of its end.
    pub ts: Timestamp,
    pub command: String,
    /// A hash of its arguments, which are in the history.
    pub args_sha: Option<ContentHash>,
    pub outcome: String,
    /// The files that it changed; the store keeps the first [`SpeckitEvent::FILES_MAX`].
    pub files: Vec<String>,
}

impl SpeckitEvent {
    /// A feature has a dozen documents; the file changes have what a longer list omits.
    pub const FILES_MAX: usize = 256;
}
