//! The file system that permission decisions ask about.

#[cfg(all(test, unix))]
mod tests;

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

use crow_core::{DirectoryLink, FileLookup};
use crow_files::is_missing;

/// Entries of a directory that are looked at; a pattern in a larger one asks.
const ENTRIES_MAX: usize = 10_000;

/// The file system of this machine.
pub(crate) struct LocalFileSystem;

impl FileLookup for LocalFileSystem {
    fn resolve_links(&self, path: &Path) -> PathBuf {
        crow_files::resolve_links(path)
    }

    fn links_in(&self, directory: &Path) -> Option<Vec<DirectoryLink>> {
        let links = crow_files::links_in(directory, ENTRIES_MAX)?;
        let links = links
            .into_iter()
            .map(|(name, target)| DirectoryLink { name: name.to_string_lossy().into_owned(), target });
        Some(links.collect())
    }

    fn may_be_repository(&self, directory: &Path) -> bool {
        may_exist(&directory.join(".git"), |_| true) || self.has_git_head(directory)
    }

    fn has_git_head(&self, directory: &Path) -> bool {
        may_exist(&directory.join("HEAD"), |metadata| !metadata.is_dir())
    }
}

/// Whether there is such an entry, or none can be seen.
fn may_exist(path: &Path, is_meant: impl FnOnce(&Metadata) -> bool) -> bool {
    match fs::symlink_metadata(path) {
        Ok(metadata) => is_meant(&metadata),
        Err(error) => !is_missing(&error),
    }
}
