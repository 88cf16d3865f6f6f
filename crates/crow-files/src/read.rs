//! Reads files of a limited size from places that others can change. Blocks.

use std::{
    fs::{File, Metadata},
    io::{self, Read as _},
    path::Path,
};

use crate::system::nofollow::{self, DirHandle};

/// Reason why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// No file exists at the path.
    #[error("it does not exist")]
    Missing,
    /// The path is a directory.
    #[error("it is a directory")]
    Directory,
    /// The path is a device, a pipe or a socket.
    #[error("it is a device or a pipe, not a file")]
    NotAFile,
    /// The file is larger than the limit.
    #[error("it is too large ({n_bytes} bytes, the limit is {bytes_max})")]
    TooLarge {
        /// Size of the file; a lower bound if it is growing.
        n_bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// The operating system's error.
    #[error("{0}")]
    System(#[from] io::Error),
}

/// Lists the names in a directory, sorted, at most `n_max`; names that are not UTF-8 are left out. `path` is resolved.
pub(crate) fn list_names(path: &Path, n_max: usize) -> io::Result<Vec<String>> {
    let entries = DirHandle::open_to_list(path)?.into_entries()?.take(n_max);
    let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.name.into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// Reads a file of at most `bytes_max` from an untrusted place. `path` is resolved: a link that is there by now is not
/// followed, and no device or pipe is opened.
pub fn read_file(path: &Path, bytes_max: u64) -> Result<Vec<u8>, ReadError> {
    let file = open_bounded(path, bytes_max)?;
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    // The file may have grown, and some system files report a size of 0.
    let n_bytes = bytes.len() as u64;
    if n_bytes > bytes_max { Err(ReadError::TooLarge { n_bytes, bytes_max }) } else { Ok(bytes) }
}

/// Opens a file of any size for reading. `path` is resolved.
pub fn open_file(path: &Path) -> Result<File, ReadError> {
    open_bounded(path, u64::MAX)
}

fn open_bounded(path: &Path, bytes_max: u64) -> Result<File, ReadError> {
    let missing = |error: io::Error| if is_missing(&error) { ReadError::Missing } else { error.into() };
    // Checked before opening: opening a device may have an effect.
    check_readable(&nofollow::read_metadata(path).map_err(missing)?, bytes_max)?;
    let file = nofollow::open_file(path).map_err(missing)?;
    check_readable(&file.metadata()?, bytes_max)?;
    Ok(file)
}

pub(crate) fn check_readable(metadata: &Metadata, bytes_max: u64) -> Result<(), ReadError> {
    match metadata.len() {
        _ if metadata.is_dir() => Err(ReadError::Directory),
        _ if !metadata.is_file() => Err(ReadError::NotAFile),
        n_bytes if n_bytes > bytes_max => Err(ReadError::TooLarge { n_bytes, bytes_max }),
        _ => Ok(()),
    }
}

/// Whether an error means that nothing exists at a path.
pub fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
