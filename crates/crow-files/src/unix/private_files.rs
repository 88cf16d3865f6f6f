//! Files and directories that only their owner may read.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

use rustix::fs::OFlags;

use super::reserved_files;
use crate::file_exposure::FileExposure;

const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Follows no link and does not block on a pipe.
const NO_FOLLOW: i32 = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits().cast_signed();

/// Opens a regular file for reading.
pub fn open_to_read(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
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
    builder.mode(DIRECTORY_MODE);
    builder.recursive(true).create(path)
}

/// Returns options with which a new file is for its owner only.
pub fn private_file_options() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.mode(FILE_MODE);
    options
}

/// Makes a file readable by its owner only.
pub fn restrict_permissions(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.permissions().mode() & 0o777 == FILE_MODE {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(FILE_MODE))
}

/// Opens a file for reading and writing, or creates it for its owner only.
pub fn open_private_file(path: &Path) -> io::Result<fs::File> {
    let mut options = private_file_options();
    options.custom_flags(NO_FOLLOW);
    options.read(true).write(true).create(true).truncate(false).open(path)
}

/// Whether an open file is the one at a path.
pub fn is_file_at(file: &fs::File, path: &Path) -> bool {
    let same =
        |open: fs::Metadata, there: fs::Metadata| (open.dev(), open.ino()) == (there.dev(), there.ino());
    file.metadata().and_then(|open| Ok(same(open, fs::metadata(path)?))).unwrap_or(false)
}

/// Determines who can read a file or directory that should be private.
pub fn file_exposure(path: &Path, user: u32) -> FileExposure {
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

/// Whether other users may access a file.
pub fn is_accessible_to_others(metadata: &fs::Metadata) -> bool {
    metadata.permissions().mode() & 0o077 != 0
}

/// Makes what the user owns private. Links are not followed: the mode is changed through the descriptor that was
/// opened.
pub fn make_private(path: &Path, user: u32) -> io::Result<()> {
    reserved_files::check_unreserved(&fs::symlink_metadata(path)?)?;
    let file = fs::OpenOptions::new().read(true).custom_flags(NO_FOLLOW).open(path)?;
    let metadata = file.metadata()?;
    if metadata.uid() != user {
        return Err(io::Error::from(io::ErrorKind::PermissionDenied));
    }
    file.set_permissions(fs::Permissions::from_mode(metadata.mode() & 0o700))
}
