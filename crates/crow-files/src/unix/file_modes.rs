//! Permission bits of files.

use std::{
    fs::{File, Metadata, OpenOptions, Permissions},
    io,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

use rustix::fs::OFlags;

/// The permission bits of a file mode.
const PERMISSION_BITS: u32 = 0o7777;

/// Any user may execute it.
const EXECUTABLE_BITS: u32 = 0o111;

/// Returns the permission bits, if the system has them.
pub fn permission_bits(metadata: &Metadata) -> Option<u32> {
    Some(metadata.permissions().mode() & PERMISSION_BITS)
}

/// Sets the permission bits of a file.
pub(crate) fn set_permission_bits(file: &File, bits: u32) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(bits & PERMISSION_BITS))
}

/// Whether some user may execute a file.
pub fn is_executable(metadata: &Metadata) -> bool {
    metadata.permissions().mode() & EXECUTABLE_BITS != 0
}

/// Whether a path is a file that some user may execute.
pub fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && is_executable(&metadata))
}

/// Lets only the owner read, write and execute a file.
pub fn make_executable(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(0o700))
}

/// Lets the owner write a file and all users read it.
pub fn make_public(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(0o644))
}

/// Sets flags so that opening does not wait for the other end of a pipe, and rejects a link unless it is followed.
pub(crate) fn set_open_flags(options: &mut OpenOptions, follows_links: bool) -> &mut OpenOptions {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let flags = if follows_links { flags } else { flags | OFlags::NOFOLLOW };
    options.custom_flags(flags.bits().cast_signed())
}
