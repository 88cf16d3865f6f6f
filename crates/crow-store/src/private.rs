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
pub(crate) fn open_read_only(path: &Path) -> io::Result<fs::File> {
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
pub(crate) fn restrict_permissions(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.permissions().mode() & 0o777 == FILE_MODE {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(FILE_MODE))
}

/// Elsewhere a file in the owner's folder is the owner's.
#[cfg(not(unix))]
pub(crate) fn restrict_permissions(_path: &Path) -> io::Result<()> {
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
pub(crate) fn is_file_at(file: &fs::File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let same =
        |open: fs::Metadata, there: fs::Metadata| (open.dev(), open.ino()) == (there.dev(), there.ino());
    file.metadata().and_then(|open| Ok(same(open, fs::metadata(path)?))).unwrap_or(false)
}

/// Elsewhere a file that is open cannot be removed.
#[cfg(not(unix))]
pub(crate) fn is_file_at(_file: &fs::File, path: &Path) -> bool {
    path.exists()
}

/// Who beside its owner can read something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileExposure {
    /// Nobody, or it is not there.
    Nobody,
    /// The group or others.
    Others,
    /// The group or others, through a link: what it leads to is not Crow's to change.
    OthersByLink,
    /// Another user, whose it is.
    ItsOwner,
    /// Everybody, in a folder that is made for that.
    Everybody,
}

/// Tells who can read a file or a folder that should be the user's alone.
#[cfg(unix)]
pub fn file_exposure(path: &Path, user: u32) -> FileExposure {
    use std::os::unix::fs::MetadataExt;
    let Ok(found) = fs::symlink_metadata(path) else { return FileExposure::Nobody };
    let is_link = found.is_symlink();
    let Ok(meant) = (if is_link { fs::metadata(path) } else { Ok(found) }) else {
        return FileExposure::Nobody;
    };
    let is_open = meant.mode() & 0o077 != 0;
    // `/tmp` and its like, and the folders of the system.
    let is_common = meant.is_dir() && (meant.mode() & 0o1000 != 0 || path.components().count() <= 2);
    match (meant.uid() == user, is_open, is_link) {
        _ if is_common => FileExposure::Everybody,
        (false, ..) => FileExposure::ItsOwner,
        (true, false, _) => FileExposure::Nobody,
        (true, true, false) => FileExposure::Others,
        (true, true, true) => FileExposure::OthersByLink,
    }
}

/// Elsewhere a file in the owner's folder is the owner's.
#[cfg(not(unix))]
pub fn file_exposure(_path: &Path, _user: u32) -> FileExposure {
    FileExposure::Nobody
}

/// Takes what the user owns away from everybody else. What is no link now is none then: it is changed through the
/// descriptor that it was opened with.
#[cfg(unix)]
pub fn make_private(path: &Path, user: u32) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let file = fs::OpenOptions::new().read(true).custom_flags(NO_LINK).open(path)?;
    let found = file.metadata()?;
    if found.uid() != user {
        return Err(io::Error::from(io::ErrorKind::PermissionDenied));
    }
    file.set_permissions(fs::Permissions::from_mode(found.mode() & 0o700))
}

/// Elsewhere there is nothing to do.
#[cfg(not(unix))]
pub fn make_private(_path: &Path, _user: u32) -> io::Result<()> {
    Ok(())
}
