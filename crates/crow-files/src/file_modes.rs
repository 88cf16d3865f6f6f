//! Permission bits of files. A system without them has no executable bit, and new files are as it makes them.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

#[cfg(unix)]
use std::os::unix::fs::PermissionsExt as _;

/// The permission bits of a file mode.
#[cfg(unix)]
const PERMISSION_BITS: u32 = 0o7777;

/// Any user may execute it.
#[cfg(unix)]
const EXECUTABLE_BITS: u32 = 0o111;

/// Returns the permission bits, if the system has them.
#[cfg(unix)]
pub fn permission_bits(metadata: &Metadata) -> Option<u32> {
    Some(metadata.permissions().mode() & PERMISSION_BITS)
}

/// Returns the permission bits, if the system has them.
#[cfg(not(unix))]
pub fn permission_bits(_metadata: &Metadata) -> Option<u32> {
    None
}

/// Whether some user may execute a file.
#[cfg(unix)]
pub fn is_executable(metadata: &Metadata) -> bool {
    metadata.permissions().mode() & EXECUTABLE_BITS != 0
}

/// Whether some user may execute a file.
#[cfg(not(unix))]
pub fn is_executable(_metadata: &Metadata) -> bool {
    false
}

/// Whether a path is a file that some user may execute.
#[cfg(unix)]
pub fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && is_executable(&metadata))
}

/// Whether a path is a file; the system has no executable bit.
#[cfg(not(unix))]
pub fn is_program(path: &Path) -> bool {
    path.is_file()
}

/// Lets only the owner read, write and execute a file.
#[cfg(unix)]
pub fn make_executable(file: &File) -> io::Result<()> {
    file.set_permissions(std::fs::Permissions::from_mode(0o700))
}

/// Lets only the owner read, write and execute a file.
#[cfg(not(unix))]
pub fn make_executable(_file: &File) -> io::Result<()> {
    Ok(())
}

/// Lets the owner write a file and all users read it.
#[cfg(unix)]
pub fn make_public(file: &File) -> io::Result<()> {
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

/// Lets the owner write a file and all users read it.
#[cfg(not(unix))]
pub fn make_public(_file: &File) -> io::Result<()> {
    Ok(())
}
