//! Windows has no permission bits: new files get the access control list of their directory.

use std::{
    fs::{File, Metadata, OpenOptions},
    io,
    os::windows::fs::OpenOptionsExt as _,
    path::Path,
};

use windows_sys::Win32::Storage::FileSystem::FILE_FLAG_OPEN_REPARSE_POINT;

/// The extensions of files that the system executes.
const PROGRAM_EXTENSIONS: [&str; 4] = ["exe", "com", "bat", "cmd"];

/// Returns the permission bits, if the system has them.
pub fn permission_bits(_metadata: &Metadata) -> Option<u32> {
    None
}

/// Does nothing: the bits come from another system.
pub(crate) fn set_permission_bits(_file: &File, _bits: u32) -> io::Result<()> {
    Ok(())
}

/// Whether some user may execute a file: the system does not say it of an open file.
pub fn is_executable(_metadata: &Metadata) -> bool {
    false
}

/// Whether a path is a file that the system executes.
pub fn is_program(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    let is_known = PROGRAM_EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known));
    is_known && path.is_file()
}

/// Does nothing: a file with the extension of a program can be executed.
pub fn make_executable(_file: &File) -> io::Result<()> {
    Ok(())
}

/// Does nothing: a file is as public as its directory.
pub fn make_public(_file: &File) -> io::Result<()> {
    Ok(())
}

/// Sets a flag so that a link is opened itself unless it is followed; it is no file then.
pub(crate) fn set_open_flags(options: &mut OpenOptions, follows_links: bool) -> &mut OpenOptions {
    options.custom_flags(if follows_links { 0 } else { FILE_FLAG_OPEN_REPARSE_POINT })
}
