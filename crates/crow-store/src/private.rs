//! Files and folders that only their owner may read.

use std::{fs, io, path::Path};

#[cfg(unix)]
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};

#[cfg(unix)]
const FOLDER_MODE: u32 = 0o700;
#[cfg(unix)]
const FILE_MODE: u32 = 0o600;
/// Follows no link that somebody put there, and waits for no pipe.
#[cfg(unix)]
const NO_LINK: i32 = libc::O_NOFOLLOW | libc::O_NONBLOCK;

/// Opens a file for reading, if it is one.
pub(crate) fn read_file(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    #[cfg(unix)]
    options.custom_flags(NO_LINK);
    let file = options.read(true).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::from(io::ErrorKind::NotFound)),
    }
}

/// Makes a folder with the folders above it; one that exists keeps its permissions.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    builder.mode(FOLDER_MODE);
    builder.recursive(true).create(path)
}

/// Makes an empty file that was not there.
pub(crate) fn make_file(path: &Path) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    #[cfg(unix)]
    options.mode(FILE_MODE);
    options.write(true).create_new(true).open(path).map(drop)
}

/// Takes a file away from everyone but its owner.
#[cfg(unix)]
pub(crate) fn keep_file(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.permissions().mode() & 0o777 == FILE_MODE {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(FILE_MODE))
}

/// Elsewhere a file in the owner's folder is the owner's.
#[cfg(not(unix))]
pub(crate) fn keep_file(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Opens a file for reading and writing, or makes it.
pub(crate) fn open_file(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    #[cfg(unix)]
    options.mode(FILE_MODE).custom_flags(NO_LINK);
    options.read(true).write(true).create(true).truncate(false).open(path)
}

/// Tells whether an open file is the one at a path.
#[cfg(unix)]
pub(crate) fn is_at(file: &fs::File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let same =
        |open: fs::Metadata, there: fs::Metadata| (open.dev(), open.ino()) == (there.dev(), there.ino());
    file.metadata().and_then(|open| Ok(same(open, fs::metadata(path)?))).unwrap_or(false)
}

/// Elsewhere a file that is open cannot be removed.
#[cfg(not(unix))]
pub(crate) fn is_at(_file: &fs::File, path: &Path) -> bool {
    path.exists()
}
