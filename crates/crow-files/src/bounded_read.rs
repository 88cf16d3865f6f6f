//! Reads untrusted files: of limited size, no pipes, no links out of a directory. Blocks. A file is identified by the
//! hash of its content.

use std::io;
use std::path::Path;

use crow_core::ContentHash;
use sha2::{Digest as _, Sha256};

use crate::read::{self, ReadError};
use crate::system::links::resolve_present;

/// The limits on the location of a file.
#[derive(Debug, Clone, Copy)]
pub enum AllowedRoot<'a> {
    /// Anywhere its links lead: the user created it.
    Anywhere,
    /// Below this directory, which has no links in its path.
    Folder(&'a Path),
}

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum BoundedReadError {
    #[error("it leads out of the repository")]
    OutsideRoot,
    #[error("it is not a file")]
    NotAFile,
    #[error("it is larger than {bytes_max} bytes")]
    TooLarge { bytes_max: u64 },
    #[error("it is not UTF-8 text")]
    NotText,
    #[error("{0}")]
    System(#[from] io::Error),
}

impl AllowedRoot<'_> {
    /// Whether a path without links is allowed.
    fn contains_resolved(self, path: &Path) -> bool {
        match self {
            Self::Anywhere => true,
            Self::Folder(directory) => path.starts_with(directory),
        }
    }
}

/// Reads a text of at most `bytes_max`; `None` if there is no such file. Links are resolved once, and the resolved path
/// is checked and opened; a link that changes later has no effect.
pub fn read_bounded_text(
    path: &Path,
    root: AllowedRoot<'_>,
    bytes_max: u64,
) -> Result<Option<String>, BoundedReadError> {
    // A link without a target is no file.
    let Some(path) = resolve_present(path) else { return Ok(None) };
    if !root.contains_resolved(&path) {
        return Err(BoundedReadError::OutsideRoot);
    }
    let bytes = match read::read_file(&path, bytes_max) {
        Err(ReadError::Missing) => return Ok(None),
        Err(ReadError::Directory | ReadError::NotAFile) => return Err(BoundedReadError::NotAFile),
        Err(ReadError::TooLarge { .. }) => return Err(BoundedReadError::TooLarge { bytes_max }),
        Err(ReadError::System(error)) => return Err(error.into()),
        Ok(bytes) => bytes,
    };
    String::from_utf8(bytes).map(Some).map_err(|_| BoundedReadError::NotText)
}

/// Lists the names in a directory in order, at most `n_max`; a missing directory has none.
pub fn list_names(directory: &Path, root: AllowedRoot<'_>, n_max: usize) -> Vec<String> {
    let directory = resolve_present(directory).filter(|directory| root.contains_resolved(directory));
    directory.and_then(|directory| read::list_names(&directory, n_max).ok()).unwrap_or_default()
}

/// Returns the hash of a content.
pub fn hash_content(bytes: &[u8]) -> ContentHash {
    ContentHash::new(Sha256::digest(bytes).into())
}
