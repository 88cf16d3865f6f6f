//! Reading a file with a bound and replacing one in a single step. Blocks; knows no tool.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::Path,
};

/// Larger files are not for reading: they are searched, or looked at in parts with a command.
pub(crate) const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Names listed of one folder to look for near ones.
const NEIGHBOURS_MAX: usize = 10_000;

/// Near names worth telling.
const NEAR_NAMES_MAX: usize = 3;

/// How alike names have to be, from 0 to 1; lower ones are noise.
const NEAR_ENOUGH: f32 = 0.6;

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("it does not exist")]
    Missing,
    #[error("it is a folder")]
    Folder,
    #[error("it is a device or a pipe, not a file")]
    NotAFile,
    #[error("it is too large ({n_bytes} bytes, the limit is {bytes_max})")]
    TooLarge { n_bytes: u64, bytes_max: u64 },
    #[error("{0}")]
    System(#[from] io::Error),
}

/// Reads a whole file of at most `bytes_max`.
pub(crate) fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, ReadError> {
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) if is_missing(&error) => return Err(ReadError::Missing),
        Err(error) => return Err(error.into()),
    };
    // Asked before opening: opening a pipe waits for its other end.
    if found.is_dir() {
        return Err(ReadError::Folder);
    }
    if !found.is_file() {
        return Err(ReadError::NotAFile);
    }
    if found.len() > bytes_max {
        return Err(ReadError::TooLarge { n_bytes: found.len(), bytes_max });
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    // It may have grown, and some files of the system say that they are empty.
    let n_bytes = bytes.len() as u64;
    if n_bytes > bytes_max { Err(ReadError::TooLarge { n_bytes, bytes_max }) } else { Ok(bytes) }
}

/// As far as Git looks for a zero byte before it calls a file binary.
const SNIFFED_BYTES: usize = 8000;

/// Tells whether an editor would open it: images and programs have zero bytes at their beginning.
pub(crate) fn may_be_text(bytes: &[u8]) -> bool {
    !bytes.iter().take(SNIFFED_BYTES).any(|&byte| byte == 0)
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Names in the same folder that look like the one that is missing.
pub(crate) fn near_names(path: &Path) -> Vec<String> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let entries = entries.take(NEIGHBOURS_MAX).flatten();
    let names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let near =
        similar::get_close_matches(name.to_string_lossy().as_ref(), &names, NEAR_NAMES_MAX, NEAR_ENOUGH);
    near.into_iter().map(str::to_owned).collect()
}

/// Replaces a file or makes a new one: whoever reads it finds the old or the new, never a part.
/// `path` is resolved, so that a link stays a link.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder).map_err(|error| {
        io::Error::new(error.kind(), format!("the folder {} could not be made: {error}", folder.display()))
    })?;
    let before = fs::metadata(path).ok();
    if before.as_ref().is_some_and(|before| before.permissions().readonly()) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is read-only"));
    }
    // Made by us instead of by `tempfile`, so that a new file gets the permissions any new file gets.
    let make = |path: &Path| File::options().write(true).create_new(true).open(path);
    let mut temporary = tempfile::Builder::new().prefix(".crow-").make_in(folder, make)?;
    if let Some(before) = before {
        keep_owner(temporary.as_file(), &before);
        temporary.as_file().set_permissions(before.permissions())?;
    }
    temporary.write_all(bytes)?;
    temporary.as_file().sync_all()?;
    temporary.persist(path).map_err(|error| error.error)?;
    // The new name lives in the folder; a system that cannot sync folders keeps it anyway.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Only root can give a file away, and only root has the need to: its edits must not take files over.
#[cfg(unix)]
fn keep_owner(file: &File, before: &fs::Metadata) {
    use std::os::unix::fs::{MetadataExt, fchown};
    let _ = fchown(file, Some(before.uid()), Some(before.gid()));
}

#[cfg(not(unix))]
fn keep_owner(_file: &File, _before: &fs::Metadata) {}
