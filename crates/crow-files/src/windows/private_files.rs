//! Files and directories that only their owner may read. Windows gives a new file the access control list of its
//! directory; below the user's profile that is for the user, the system and administrators. In other places the
//! user chooses the list.

use std::{
    fs::{self, DirBuilder, File, Metadata, OpenOptions},
    io,
    os::windows::fs::OpenOptionsExt as _,
    path::Path,
};

use windows_sys::Win32::Storage::FileSystem::FILE_FLAG_OPEN_REPARSE_POINT;

use super::nt_calls;
use crate::file_exposure::FileExposure;

/// The numbers of a file's state that identify it: the volume and the file.
const IDENTITY_LEN: usize = 2;

/// Opens a regular file for reading.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(FILE_FLAG_OPEN_REPARSE_POINT).open(path)?;
    check_regular(file)
}

/// Creates a directory and its parents.
pub fn create_private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).create(path)
}

/// Returns options with which a new file is as private as its directory.
pub fn private_file_options() -> OpenOptions {
    OpenOptions::new()
}

/// Does nothing: the file is as private as its directory.
pub fn restrict_permissions(path: &Path) -> io::Result<()> {
    fs::metadata(path).map(drop)
}

/// Opens a file for reading and writing, or creates it.
pub fn open_private_file(path: &Path) -> io::Result<File> {
    let mut options = private_file_options();
    options.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT);
    check_regular(options.read(true).write(true).create(true).truncate(false).open(path)?)
}

fn check_regular(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::from(io::ErrorKind::NotFound)),
    }
}

/// Whether an open file is the one at a path.
pub fn is_file_at(file: &File, path: &Path) -> bool {
    let identity = |file: &File| Ok::<_, io::Error>(nt_calls::query_state(file)?[..IDENTITY_LEN].to_vec());
    let is_same = || Ok::<_, io::Error>(identity(file)? == identity(&File::open(path)?)?);
    is_same().unwrap_or(false)
}

/// Determines who can read a file or directory that should be private. Access control lists are not examined.
pub fn file_exposure(_path: &Path, _user: u32) -> FileExposure {
    FileExposure::Private
}

/// Whether other users may access a file. Access control lists are not examined.
pub fn is_accessible_to_others(_metadata: &Metadata) -> bool {
    false
}

/// Does nothing: the file is as private as its directory.
pub fn make_private(_path: &Path, _user: u32) -> io::Result<()> {
    Ok(())
}
