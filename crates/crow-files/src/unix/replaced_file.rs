//! Properties that a new file takes over from the one that it replaces, and the identity of a file.

use std::{
    ffi::OsStr,
    fs::{File, Metadata},
    io,
    os::unix::fs::{MetadataExt as _, fchown},
};

use super::{
    file_modes::{permission_bits, set_permission_bits},
    nofollow::DirHandle,
};

/// The rights of the group of a file, and of a program that runs with those of its group.
const GROUP_BITS: u32 = 0o2070;

/// Returns numbers that differ if the file is another one or has changed.
#[expect(clippy::unnecessary_wraps, reason = "the same signature as on other systems")]
pub(crate) fn file_state(_file: &File, metadata: &Metadata) -> io::Result<[i64; 7]> {
    let times = [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()];
    let [dev, ino, size] = [metadata.dev(), metadata.ino(), metadata.size()].map(u64::cast_signed);
    let [mtime, mtime_nsec, ctime, ctime_nsec] = times;
    Ok([dev, ino, size, mtime, mtime_nsec, ctime, ctime_nsec])
}

/// Gives the new file the group and the owner of the existing one, as far as the system permits it; returns whether the
/// group is the same.
pub(crate) fn keep_owner(file: &File, existing: &Metadata) -> io::Result<bool> {
    // In two steps: a member of the group may keep it, though only root can change an owner, and only root needs to:
    // its edits must not take over files.
    let _ = fchown(file, None, Some(existing.gid()));
    let _ = fchown(file, Some(existing.uid()), None);
    Ok(file.metadata()?.gid() == existing.gid())
}

/// Sets the permission bits `mode`, or those of the existing file. Another group than before gains nothing.
pub(crate) fn keep_permissions(
    file: &File,
    existing: &Metadata,
    mode: Option<u32>,
    has_same_group: bool,
) -> io::Result<()> {
    let bits = mode.or_else(|| permission_bits(existing)).unwrap_or_default();
    set_permission_bits(file, limit_permissions(bits, has_same_group))
}

fn limit_permissions(bits: u32, has_same_group: bool) -> u32 {
    if has_same_group { bits } else { bits & !GROUP_BITS }
}

/// Linux's limit for a list of extended attributes and for the value of one.
#[cfg(target_os = "linux")]
const ATTRIBUTE_BYTES_MAX: usize = 64 * 1024;

/// Copies the user's extended attributes to the new file, and the access control list unless the group is another one,
/// as far as its file system supports them.
#[cfg(target_os = "linux")]
pub(crate) fn keep_attributes(dir: &DirHandle, name: &OsStr, file: &File, has_same_group: bool) {
    use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};
    let Ok(existing) = dir.open_entry(name) else { return };
    let mut list = vec![0; ATTRIBUTE_BYTES_MAX];
    let Ok(n_bytes) = flistxattr(&existing, &mut list) else { return };
    let mut value = vec![0; ATTRIBUTE_BYTES_MAX];
    for attribute in list[..n_bytes].split(|&byte| byte == 0) {
        let is_access_list = has_same_group && attribute == b"system.posix_acl_access";
        if !attribute.starts_with(b"user.") && !is_access_list {
            continue;
        }
        if let Ok(n_bytes) = fgetxattr(&existing, attribute, &mut value) {
            let _ = fsetxattr(file, attribute, &value[..n_bytes], XattrFlags::empty());
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn keep_attributes(_dir: &DirHandle, _name: &OsStr, _file: &File, _has_same_group: bool) {}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
