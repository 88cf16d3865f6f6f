//! Protects reviewers' checklists while a step adds to them: existing items and boxes stay. Knows who owns a file, not
//! its syntax.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::path::{Path, PathBuf};

use super::snapshot::{ProtectedChange, ProtectedChangeKind, ProtectedFile, read_file, walk_dir};
use crate::REQUIREMENTS;
use crate::checklist::{ReviewOutcome, adopt_boxes, compare_reviewed};

/// The size of a protected checklist, the same as for any page.
const LIST_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The depth of nested directories that are searched.
const DEPTH_MAX: usize = 4;

/// The number of protected checklists.
const LISTS_MAX: usize = 256;

/// The checklists of a feature.
#[derive(Debug)]
pub(super) struct ReviewedLists {
    directory: PathBuf,
    /// The reviewers' version of each list.
    protected: BTreeMap<PathBuf, ReviewedList>,
    /// Every list after the last call.
    last_seen: BTreeMap<PathBuf, ReviewedList>,
}

#[derive(Debug, Clone)]
struct ReviewedList {
    text: String,
    permissions: Permissions,
}

impl ReviewedLists {
    /// Reads the lists before the model adds to them.
    pub(super) fn capture(directory: PathBuf) -> Self {
        let protected = read_lists(&directory);
        Self { directory, last_seen: protected.clone(), protected }
    }

    /// Adopts changes since the last call as the reviewers'.
    pub(super) fn adopt_changes(&mut self) {
        let current = read_lists(&self.directory);
        self.protected.retain(|path, _| current.contains_key(path));
        for (path, read_list) in &current {
            let last_seen = self.last_seen.get(path);
            if last_seen.is_some_and(|last_seen| last_seen.text == read_list.text) {
                continue;
            }
            let boxes = last_seen.and_then(|last_seen| {
                adopt_boxes(&self.protected.get(path)?.text, &last_seen.text, &read_list.text)
            });
            let text = boxes.unwrap_or_else(|| read_list.text.clone());
            self.protected
                .insert(path.clone(), ReviewedList { text, permissions: read_list.permissions.clone() });
        }
        self.last_seen = current;
    }

    /// Restores what a call removed from a list and returns the changes.
    pub(super) fn restore_lists(
        &mut self,
        restore: impl Fn(&Path, &ProtectedFile) -> io::Result<()>,
    ) -> Vec<ProtectedChange> {
        let current = read_lists(&self.directory);
        let mut changes = Vec::new();
        for (path, protected) in &self.protected {
            let (text, change) =
                match current.get(path).map(|current| compare_reviewed(&protected.text, &current.text)) {
                    Some(ReviewOutcome::Unchanged) => continue,
                    Some(ReviewOutcome::BoxesRestored(text)) => (text, ProtectedChangeKind::Changed),
                    Some(ReviewOutcome::Broken) => (protected.text.clone(), ProtectedChangeKind::Changed),
                    None if fs::symlink_metadata(path).is_ok() => {
                        (protected.text.clone(), ProtectedChangeKind::Changed)
                    }
                    None => (protected.text.clone(), ProtectedChangeKind::Removed),
                };
            let file = ProtectedFile { bytes: text.into_bytes(), permissions: protected.permissions.clone() };
            let is_undone = restore(path, &file).is_ok();
            changes.push(ProtectedChange { path: path.clone(), kind: change, is_undone });
        }
        self.last_seen = read_lists(&self.directory);
        changes
    }
}

/// Reads the lists in a directory. Links and files that are not UTF-8 are skipped.
fn read_lists(directory: &Path) -> BTreeMap<PathBuf, ReviewedList> {
    let mut paths = Vec::new();
    let _unreadable = walk_dir(directory, DEPTH_MAX, &mut paths);
    paths.sort();
    let is_list = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    let requirements = directory.join(REQUIREMENTS);
    let paths = paths.into_iter().filter(is_list).filter(|path| *path != requirements).take(LISTS_MAX);
    let read_list = |path: PathBuf| {
        // A longer file has one more byte here and is skipped.
        let file = read_file(&path, LIST_BYTES_MAX)
            .ok()?
            .filter(|file| file.bytes.len() as u64 <= LIST_BYTES_MAX)?;
        let text = String::from_utf8(file.bytes).ok()?;
        Some((path, ReviewedList { text, permissions: file.permissions }))
    };
    paths.filter_map(read_list).collect()
}
