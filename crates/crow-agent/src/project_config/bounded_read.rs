//! Reading files that somebody else may have laid out: bounded, no pipes, no way out of a folder. Blocks.

use std::io;
use std::path::Path;

use crow_tools::ReadError;

/// Where a file has to be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AllowedRoot<'a> {
    /// Wherever its links lead: the person laid it out.
    Anywhere,
    /// Below this folder, which is spelled without links.
    Folder(&'a Path),
}

/// Why a file is left alone.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BoundedReadError {
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
    /// Tells whether a path without links is where it has to be.
    fn contains_resolved(self, path: &Path) -> bool {
        match self {
            Self::Anywhere => true,
            Self::Folder(directory) => path.starts_with(directory),
        }
    }
}

/// Reads a whole text of at most `bytes_max`; `None` when there is no such file. Links are followed once, to a path that is
/// judged; what is opened is that path and nothing that a link has it name by then.
pub(crate) fn read_bounded_text(
    path: &Path,
    root: AllowedRoot<'_>,
    bytes_max: u64,
) -> Result<Option<String>, BoundedReadError> {
    let path = crow_tools::resolve_links(path);
    if !root.contains_resolved(&path) {
        // A link that leads nowhere is no file.
        return if path.exists() { Err(BoundedReadError::OutsideRoot) } else { Ok(None) };
    }
    let bytes = match crow_tools::read_file(&path, bytes_max) {
        Err(ReadError::Missing) => return Ok(None),
        Err(ReadError::Directory | ReadError::NotAFile) => return Err(BoundedReadError::NotAFile),
        Err(ReadError::TooLarge { .. }) => return Err(BoundedReadError::TooLarge { bytes_max }),
        Err(ReadError::System(error)) => return Err(error.into()),
        Ok(bytes) => bytes,
    };
    String::from_utf8(bytes).map(Some).map_err(|_| BoundedReadError::NotText)
}

/// Lists the names in a folder in their order, at most `n_max`; a folder that is not there has none.
pub(crate) fn list_names(directory: &Path, root: AllowedRoot<'_>, n_max: usize) -> Vec<String> {
    let directory = crow_tools::resolve_links(directory);
    if !root.contains_resolved(&directory) {
        return Vec::new();
    }
    crow_tools::list_names(&directory, n_max).unwrap_or_default()
}
