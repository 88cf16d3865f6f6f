//! Why something could not be done in a project.

use std::io;
use std::path::{Path, PathBuf};

use crate::{WorkflowCommand, sanitize_text};

/// Why something could not be done. What can be checked is checked before anything is written; what was written before one
/// is returned stays.
#[derive(Debug, thiserror::Error)]
pub enum SpeckitError {
    /// Something has to be there first.
    #[error("{}", sanitize_text(why))]
    Unmet {
        /// What is missing, a whole sentence.
        why: String,
        /// The command that makes it.
        next: Option<WorkflowCommand>,
    },
    /// What was asked for is not possible.
    #[error("{}", sanitize_text(.0))]
    Invalid(String),
    /// A file of the project says what nobody can use.
    #[error("{} cannot be used: {}", display_path(path), sanitize_text(why))]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
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
            Self::Unmet { next, .. } => next.map(|next| format!("run {next} first")),
            Self::Invalid(_) | Self::Broken { .. } | Self::Io { .. } => None,
        }
    }

    pub(crate) fn io(path: &Path, error: io::Error) -> Self {
        Self::Io { path: path.to_owned(), error }
    }

    pub(crate) fn broken(path: &Path, why: impl Into<String>) -> Self {
        Self::Broken { path: path.to_owned(), why: why.into() }
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
        let unmet = |next| SpeckitError::Unmet { why: "there is no plan".to_owned(), next };
        assert_eq!(unmet(Some(WorkflowCommand::Plan)).hint().as_deref(), Some("run /speckit.plan first"));
        assert_eq!(unmet(None).hint(), None);
        assert_eq!(SpeckitError::Invalid("no".to_owned()).hint(), None);
    }
}
