//! Properties that a new file takes over from the one that it replaces, and the identity of a file.

use std::{
    ffi::OsStr,
    fs::{File, Metadata},
    io,
    os::unix::fs::{MetadataExt as _, fchown},
};

use super::nofollow::DirHandle;

/// Returns numbers that differ if the file is another one or has changed.
#[expect(clippy::unnecessary_wraps, reason = "the same signature as on other systems")]
pub(crate) fn file_state(_file: &File, metadata: &Metadata) -> io::Result<[i64; 7]> {
    let times = [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()];
    let [dev, ino, size] = [metadata.dev(), metadata.ino(), metadata.size()].map(u64::cast_signed);
    let [mtime, mtime_nsec, ctime, ctime_nsec] = times;
    Ok([dev, ino, size, mtime, mtime_nsec, ctime, ctime_nsec])
}

/// Only root can change an owner, and only root needs to: its edits must not take over files.
pub(crate) fn keep_owner(file: &File, existing: &Metadata) {
    let _ = fchown(file, Some(existing.uid()), Some(existing.gid()));
}

/// Linux's limit for a list of extended attributes and for the value of one.
#[cfg(target_os = "linux")]
const ATTRIBUTE_BYTES_MAX: usize = 64 * 1024;

/// Copies the user's extended attributes and access control list to the new file, as far as its file system supports
/// them.
#[cfg(target_os = "linux")]
pub(crate) fn keep_attributes(dir: &DirHandle, name: &OsStr, file: &File) {
    use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};
    let Ok(existing) = dir.open_entry(name) else { return };
    let mut list = vec![0; ATTRIBUTE_BYTES_MAX];
    let Ok(n_bytes) = flistxattr(&existing, &mut list) else { return };
    let mut value = vec![0; ATTRIBUTE_BYTES_MAX];
    for attribute in list[..n_bytes].split(|&byte| byte == 0) {
        if !attribute.starts_with(b"user.") && attribute != b"system.posix_acl_access" {
            continue;
        }
        if let Ok(n_bytes) = fgetxattr(&existing, attribute, &mut value) {
            let _ = fsetxattr(file, attribute, &value[..n_bytes], XattrFlags::empty());
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn keep_attributes(_dir: &DirHandle, _name: &OsStr, _file: &File) {}
