//! Properties that a new file takes over from the one that it replaces, and the identity of a file.

use std::{
    ffi::OsStr,
    fs::{File, Metadata},
    io,
};

use super::{nofollow::DirHandle, nt_calls};

/// Returns numbers that differ if the file is another one or has changed.
pub(crate) fn file_state(file: &File, _metadata: &Metadata) -> io::Result<[i64; 7]> {
    nt_calls::query_state(file)
}

/// The user who replaces a file owns the new one: only administrators can give files away.
#[expect(clippy::unnecessary_wraps, reason = "the same signature as on other systems")]
pub(crate) fn keep_owner(_file: &File, _existing: &Metadata) -> io::Result<bool> {
    Ok(true)
}

/// Sets the attributes of the existing file.
pub(crate) fn keep_permissions(
    file: &File,
    existing: &Metadata,
    _mode: Option<u32>,
    _has_same_group: bool,
) -> io::Result<()> {
    file.set_permissions(existing.permissions())
}

/// Copies the access control list to the new file, as far as its file system supports it.
pub(crate) fn keep_attributes(dir: &DirHandle, name: &OsStr, file: &File, _has_same_group: bool) {
    let Ok(existing) = dir.open_entry(name) else { return };
    let _ = nt_calls::copy_access_list(&existing, file);
}
