//! The links in a directory.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{is_missing, resolve_links};

/// Returns the names of the links in a directory, and to what they lead. `None` if the directory cannot be read or has more
/// than `n_max` entries.
pub fn links_in(directory: &Path, n_max: usize) -> Option<Vec<(OsString, PathBuf)>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => return is_missing(&error).then(Vec::new),
    };
    let mut links = Vec::new();
    for (index, entry) in entries.enumerate() {
        let entry = entry.ok().filter(|_| index < n_max)?;
        if entry.file_type().ok()?.is_symlink() {
            links.push((entry.file_name(), resolve_links(&entry.path())));
        }
    }
    Some(links)
}
