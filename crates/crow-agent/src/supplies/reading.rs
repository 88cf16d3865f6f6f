//! Reading files that somebody else may have laid out: bounded, no pipes, no way out of a folder. Blocks.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

/// Where a file has to be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Inside<'a> {
    /// Wherever its links lead: the person laid it out.
    Anywhere,
    /// Below this folder, which is spelled without links.
    Folder(&'a Path),
}

/// Why a file is left alone.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotRead {
    #[error("it leads out of the repository")]
    Outside,
    #[error("it is not a file")]
    NotAFile,
    #[error("it is larger than {bytes_max} bytes")]
    TooLarge { bytes_max: u64 },
    #[error("it is not UTF-8 text")]
    NotText,
    #[error("{0}")]
    System(#[from] io::Error),
}

impl Inside<'_> {
    /// Tells whether a path is where it has to be, once its links are followed.
    pub(crate) fn holds(self, path: &Path) -> bool {
        match self {
            Self::Anywhere => true,
            Self::Folder(folder) => crow_tools::resolve(path).starts_with(folder),
        }
    }
}

/// Reads a whole text of at most `bytes_max`; `None` when there is no such file.
pub(crate) fn text(path: &Path, inside: Inside<'_>, bytes_max: u64) -> Result<Option<String>, NotRead> {
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if !inside.holds(path) {
        return Err(NotRead::Outside);
    }
    // Asked before opening: opening a pipe waits for its other end.
    if !found.is_file() {
        return Err(NotRead::NotAFile);
    }
    let file = File::open(path)?;
    // What was opened may be something else than what was looked at.
    if !inside.holds(path) || !file.metadata()?.is_file() {
        return Err(NotRead::Outside);
    }
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(NotRead::TooLarge { bytes_max });
    }
    String::from_utf8(bytes).map(Some).map_err(|_| NotRead::NotText)
}

/// Lists the names in a folder in their order, at most `n_max`; a folder that is not there has none.
pub(crate) fn names(folder: &Path, inside: Inside<'_>, n_max: usize) -> Vec<String> {
    if !inside.holds(folder) {
        return Vec::new();
    }
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let names = entries.take(n_max).filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
