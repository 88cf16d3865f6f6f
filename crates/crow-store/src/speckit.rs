//! What is kept of Spec Kit beside a session: where it stands, and what its commands came to. What the words mean is
//! the affair of those who run the commands.

use crow_core::ContentHash;

use crate::Timestamp;

/// Where a session stands in Spec Kit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpeckitRow {
    /// Absolute path of the project.
    pub project_root: String,
    /// The feature it works on.
    pub feature_dir: Option<String>,
    /// The command that ran last.
    pub last_command: Option<String>,
    /// When any of this was last said.
    pub updated: Timestamp,
}

/// What a command of Spec Kit came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpeckitEvent {
    /// When it ended.
    pub ts: Timestamp,
    /// Which command.
    pub command: String,
    /// What it was told, as a hash: the words themselves stand in the history.
    pub args_sha: Option<ContentHash>,
    /// What it came to.
    pub outcome: String,
    /// The files that it changed; the store keeps the first [`SpeckitEvent::FILES_MAX`].
    pub files: Vec<String>,
}

impl SpeckitEvent {
    /// A feature has a dozen documents; what the list of a longer run leaves out, its changes of files have.
    pub const FILES_MAX: usize = 256;
}
