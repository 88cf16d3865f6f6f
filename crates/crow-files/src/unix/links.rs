//! Symbolic links.

use std::{
    collections::VecDeque,
    ffi::OsString,
    fs, io,
    path::{Component, Path, PathBuf},
};

use super::nofollow::exists_without_links;
use crate::{path_limits::PATH_BYTES_MAX, read::is_missing};

/// Linux follows as many before it reports a loop.
const LINKS_MAX: usize = 40;

/// Resolves links without `canonicalize`, which requires that the file exists; shows where a link to nothing would
/// create a file.
pub fn resolve_links(path: &Path) -> PathBuf {
    // Most paths have no link: one question in place of one for each directory.
    match exists_without_links(path) {
        Some(_) => path.components().collect(),
        None => follow_links(path),
    }
}

/// Resolves links; `None` if nothing exists where they lead. Most files that are looked for do not exist: one system
/// call for each of these.
pub fn resolve_present(path: &Path) -> Option<PathBuf> {
    match exists_without_links(path) {
        Some(exists) => exists.then(|| path.components().collect()),
        None => {
            let resolved = follow_links(path);
            let is_absent = fs::symlink_metadata(&resolved).is_err_and(|error| is_missing(&error));
            (!is_absent).then_some(resolved)
        }
    }
}

fn follow_links(path: &Path) -> PathBuf {
    let mut remaining: VecDeque<OsString> =
        path.components().map(|part| part.as_os_str().to_owned()).collect();
    let mut resolved = PathBuf::new();
    // No system opens a path that is as long as two of the longest.
    let mut n_links = if path.as_os_str().len() > 2 * PATH_BYTES_MAX { LINKS_MAX } else { 0 };
    while let Some(part) = remaining.pop_front() {
        match Path::new(&part).components().next() {
            Some(Component::ParentDir) => {
                resolved.pop();
            }
            Some(Component::CurDir) | None => {}
            Some(Component::RootDir | Component::Prefix(_)) => resolved.push(part),
            Some(Component::Normal(_)) => {
                resolved.push(part);
                // No system has a longer path, and resolving a very long one would take very long.
                let is_too_long = resolved.as_os_str().len() > PATH_BYTES_MAX;
                let target =
                    if is_too_long || n_links >= LINKS_MAX { None } else { fs::read_link(&resolved).ok() };
                if let Some(target) = target {
                    n_links += 1;
                    resolved.pop();
                    for part in target.components().rev() {
                        remaining.push_front(part.as_os_str().to_owned());
                    }
                }
            }
        }
    }
    resolved
}

/// Resolves the links of an existing path.
pub fn resolve_existing(path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(path)
}

/// Creates a symbolic link; an error where the system has none.
pub fn create_link(target: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(test)]
mod tests;
