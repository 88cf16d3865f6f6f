//! Why something could not be done in a project.

use std::io;
use std::path::{Path, PathBuf};

use crate::Command;

/// Why something could not be done. Nothing was written when one is returned, unless the variant says so.
#[derive(Debug, thiserror::Error)]
pub enum SpeckitError {
    /// Something has to be there first.
    #[error("{why}")]
    Unmet {
        /// What is missing, a whole sentence.
        why: String,
        /// The command that makes it.
        next: Option<Command>,
    },
    /// What was asked for is not possible.
    #[error("{0}")]
    Invalid(String),
    /// A file of the project says what nobody can use.
    #[error("{} cannot be used: {why}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The disk said no; what was written before stays.
    #[error("{}: {error}", path.display())]
    Io {
        /// What was read or written.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl SpeckitError {
    pub(crate) fn io(path: &Path, error: io::Error) -> Self {
        Self::Io { path: path.to_owned(), error }
    }

    pub(crate) fn broken(path: &Path, why: impl Into<String>) -> Self {
        Self::Broken { path: path.to_owned(), why: why.into() }
    }
}
