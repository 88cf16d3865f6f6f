//! The file system that permission decisions ask about.

#[cfg(all(test, unix))]
mod tests;

use std::fs;
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
        // The second is in a repository without a working tree.
        [".git", "HEAD"].iter().any(|name| match fs::symlink_metadata(directory.join(name)) {
            Ok(_) => true,
            Err(error) => !is_missing(&error),
        })
    }
}
