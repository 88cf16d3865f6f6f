//! Files and directories that only their owner may read.

use std::{fs, io, path::Path};

#[cfg(unix)]
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};

#[cfg(unix)]
use rustix::fs::OFlags;

#[cfg(unix)]
const DIRECTORY_MODE: u32 = 0o700;
#[cfg(unix)]
const FILE_MODE: u32 = 0o600;
/// Follows no link and does not block on a pipe.
#[cfg(unix)]
const NO_FOLLOW: i32 = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits().cast_signed();

/// Opens a regular file for reading.
pub fn open_to_read(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    #[cfg(unix)]
    options.custom_flags(NO_FOLLOW);
    let file = options.read(true).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::from(io::ErrorKind::NotFound)),
    }
}

/// Creates a directory and its parents for their owner only; an existing one keeps its permissions.
pub fn create_private_dir(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    builder.mode(DIRECTORY_MODE);
    builder.recursive(true).create(path)
}

/// Returns options with which a new file is for its owner only.
pub fn private_file_options() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    #[cfg(unix)]
    options.mode(FILE_MODE);
    options
}

/// Creates an empty file for its owner only; it must not exist.
pub fn create_private_file(path: &Path) -> io::Result<()> {
    let mut options = private_file_options();
    options.write(true).create_new(true).open(path).map(drop)
}

/// Makes a file readable by its owner only.
#[cfg(unix)]
pub fn restrict_permissions(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.permissions().mode() & 0o777 == FILE_MODE {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(FILE_MODE))
}

/// On other systems a file in the owner's directory is private.
#[cfg(not(unix))]
pub fn restrict_permissions(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Opens a file for reading and writing, or creates it for its owner only.
pub fn open_private_file(path: &Path) -> io::Result<fs::File> {
    let mut options = private_file_options();
    #[cfg(unix)]
    options.custom_flags(NO_FOLLOW);
    options.read(true).write(true).create(true).truncate(false).open(path)
}

/// Whether an open file is the one at a path.
#[cfg(unix)]
pub fn is_file_at(file: &fs::File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let same =
        |open: fs::Metadata, there: fs::Metadata| (open.dev(), open.ino()) == (there.dev(), there.ino());
    file.metadata().and_then(|open| Ok(same(open, fs::metadata(path)?))).unwrap_or(false)
}

/// On other systems an open file cannot be removed.
#[cfg(not(unix))]
pub fn is_file_at(_file: &fs::File, path: &Path) -> bool {
    path.exists()
}

/// The users besides the owner who can read a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileExposure {
    /// None, or it does not exist.
    Private,
    /// The group or others.
    GroupOrOthers,
    /// The group or others, through a link: Crow does not change the target.
    GroupOrOthersByLink,
    /// Another user, who owns it.
    ForeignOwner,
    /// Everyone, in a directory that is meant for that.
    Shared,
}

/// Determines who can read a file or directory that should be private.
#[cfg(unix)]
pub fn file_exposure(path: &Path, user: u32) -> FileExposure {
    use std::os::unix::fs::MetadataExt;
    let Ok(metadata) = fs::symlink_metadata(path) else { return FileExposure::Private };
    let is_link = metadata.is_symlink();
    let Ok(target) = (if is_link { fs::metadata(path) } else { Ok(metadata) }) else {
        return FileExposure::Private;
    };
    let is_accessible = target.mode() & 0o077 != 0;
    // `/tmp` and the like, and system directories.
    let is_shared = target.is_dir() && (target.mode() & 0o1000 != 0 || path.components().count() <= 2);
    match (target.uid() == user, is_accessible, is_link) {
        _ if is_shared => FileExposure::Shared,
        (false, ..) => FileExposure::ForeignOwner,
        (true, false, _) => FileExposure::Private,
        (true, true, false) => FileExposure::GroupOrOthers,
        (true, true, true) => FileExposure::GroupOrOthersByLink,
    }
}

/// On other systems a file in the owner's directory is private.
#[cfg(not(unix))]
pub fn file_exposure(_path: &Path, _user: u32) -> FileExposure {
    FileExposure::Private
}

/// Whether other users may access a file.
#[cfg(unix)]
pub fn is_accessible_to_others(metadata: &fs::Metadata) -> bool {
    metadata.permissions().mode() & 0o077 != 0
}

/// On other systems a file in the owner's directory is private.
#[cfg(not(unix))]
pub fn is_accessible_to_others(_metadata: &fs::Metadata) -> bool {
    false
}

/// Makes what the user owns private. Links are not followed: the mode is changed through the descriptor that was
/// opened.
#[cfg(unix)]
pub fn make_private(path: &Path, user: u32) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let file = fs::OpenOptions::new().read(true).custom_flags(NO_FOLLOW).open(path)?;
    let metadata = file.metadata()?;
    if metadata.uid() != user {
        return Err(io::Error::from(io::ErrorKind::PermissionDenied));
    }
    file.set_permissions(fs::Permissions::from_mode(metadata.mode() & 0o700))
}

/// Nothing to do on other systems.
#[cfg(not(unix))]
pub fn make_private(_path: &Path, _user: u32) -> io::Result<()> {
    Ok(())
}
