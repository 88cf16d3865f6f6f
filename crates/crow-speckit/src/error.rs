//! Why something could not be done in a project.

use std::io;
use std::path::{Path, PathBuf};

use crate::{WorkflowCommand, sanitize_text};

/// Why something could not be done. What can be checked is checked before anything is written; what was written before one
/// is returned stays.
#[derive(Debug, thiserror::Error)]
pub enum SpeckitError {
    /// Something has to be there first.
    #[error("{}", sanitize_text(reason))]
    MissingPrerequisite {
        /// What is missing, a whole sentence.
        reason: String,
        /// The command that makes it.
        command: Option<WorkflowCommand>,
    },
    /// What was asked for is not possible.
    #[error("{}", sanitize_text(.0))]
    Invalid(String),
    /// A file of the project says what nobody can use.
    #[error("{} cannot be used: {}", display_path(path), sanitize_text(reason))]
    InvalidFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The disk said no.
    #[error("{}: {error}", display_path(path))]
    Io {
        /// What was read or written.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl SpeckitError {
    /// What helps, where its sentence does not say so.
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
    fn what_is_missing_is_made_by_a_command() {
        let error =
            |command| SpeckitError::MissingPrerequisite { reason: "there is no plan".to_owned(), command };
        assert_eq!(error(Some(WorkflowCommand::Plan)).hint().as_deref(), Some("run /speckit.plan first"));
        assert_eq!(error(None).hint(), None);
        assert_eq!(SpeckitError::Invalid("no".to_owned()).hint(), None);
    }
}
