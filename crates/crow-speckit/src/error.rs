//! Errors of project operations.

use std::io;
use std::path::{Path, PathBuf};

use crate::{WorkflowCommand, sanitize_text};

/// An error of a project operation. Everything that can be checked is checked before anything is written; what was
/// written before an error stays.
#[derive(Debug, thiserror::Error)]
pub enum SpeckitError {
    /// A prerequisite is missing.
    #[error("{}", sanitize_text(reason))]
    MissingPrerequisite {
        /// The missing prerequisite, as a clause.
        reason: String,
        /// The command that creates it.
        command: Option<WorkflowCommand>,
    },
    /// The request is not possible.
    #[error("{}", sanitize_text(.0))]
    Invalid(String),
    /// A file of the project is not usable.
    #[error("{} cannot be used: {}", display_path(path), sanitize_text(reason))]
    InvalidFile {
        /// The file.
        path: PathBuf,
        /// The problem with it.
        reason: String,
    },
    /// An I/O error.
    #[error("{}: {error}", display_path(path))]
    Io {
        /// The file that was read or written.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
}

impl SpeckitError {
    /// Returns the next action, if the message does not include it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::MissingPrerequisite { command: next, .. } => {
                next.map(|command| format!("run {command} first"))
            }
            Self::Invalid(_) | Self::InvalidFile { .. } | Self::Io { .. } => None,
        }
    }

    pub(crate) fn io(path: &Path, error: io::Error) -> Self {
        Self::Io { path: path.to_owned(), error }
    }

    pub(crate) fn invalid_file(path: &Path, reason: impl Into<String>) -> Self {
        Self::InvalidFile { path: path.to_owned(), reason: reason.into() }
    }
}

fn display_path(path: &Path) -> String {
    sanitize_text(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hint_of_a_missing_prerequisite_is_its_command() {
        let error =
            |command| SpeckitError::MissingPrerequisite { reason: "there is no plan".to_owned(), command };
        assert_eq!(error(Some(WorkflowCommand::Plan)).hint().as_deref(), Some("run /speckit.plan first"));
        assert_eq!(error(None).hint(), None);
        assert_eq!(SpeckitError::Invalid("no".to_owned()).hint(), None);
    }
}
