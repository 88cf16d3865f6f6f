//! Links, and the other ways in which two names are one file: short names, and letters that differ only by case.

use std::{
    ffi::OsString,
    io,
    path::{Component, Path, PathBuf, Prefix},
};

use crate::{path_limits::PATH_BYTES_MAX, read::is_missing};

/// Resolves the part of a path that exists to the names that its files really have; shows where a new file would be
/// created.
pub fn resolve_links(path: &Path) -> PathBuf {
    let path = normalize(path);
    // No system opens a path that is as long as two of the longest.
    if path.as_os_str().len() > 2 * PATH_BYTES_MAX || !path.is_absolute() {
        return path;
    }
    for existing in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (resolve_existing(existing), path.strip_prefix(existing)) {
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    path
}

/// Resolves links; `None` if nothing exists where they lead.
pub fn resolve_present(path: &Path) -> Option<PathBuf> {
    let resolved = resolve_links(path);
    let is_absent = std::fs::symlink_metadata(&resolved).is_err_and(|error| is_missing(&error));
    (!is_absent).then_some(resolved)
}

/// Resolves the links of an existing path.
pub fn resolve_existing(path: &Path) -> io::Result<PathBuf> {
    std::fs::canonicalize(path).map(|real| simplify(&real))
}

/// Creates a symbolic link to a file or a directory. The system may permit that to administrators only.
pub fn create_link(target: &Path, link: &Path) -> io::Result<()> {
    let is_directory = link.parent().is_some_and(|parent| parent.join(target).is_dir());
    match is_directory {
        true => std::os::windows::fs::symlink_dir(target, link),
        false => std::os::windows::fs::symlink_file(target, link),
    }
}

/// Removes `.` and `..`, as the system does before it looks at any file.
fn normalize(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                normalized.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => normalized.push(component),
        }
    }
    normalized
}

/// Writes a path without the prefix `\\?\`, as people and other programs do.
fn simplify(path: &Path) -> PathBuf {
    let mut components = path.components();
    let Some(Component::Prefix(prefix)) = components.next() else { return path.to_owned() };
    let mut start = OsString::new();
    match prefix.kind() {
        Prefix::VerbatimDisk(letter) => start.push(format!("{}:", char::from(letter))),
        Prefix::VerbatimUNC(server, share) => {
            for part in ["\\\\".as_ref(), server, "\\".as_ref(), share] {
                start.push(part);
            }
        }
        Prefix::Verbatim(_) | Prefix::DeviceNS(_) | Prefix::UNC(..) | Prefix::Disk(_) => {
            return path.to_owned();
        }
    }
    start.push(components.as_path());
    start.into()
}

#[cfg(test)]
mod tests;
