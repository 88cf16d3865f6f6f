//! The checklists of reviewers while a step adds to them: their items and the boxes of those stay. Knows which file belongs
//! to whom, not what a checklist says.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::path::{Path, PathBuf};

use super::snapshot::{ProtectedChange, ProtectedChangeKind, ProtectedFile, read_file, walk_dir};
use crate::REQUIREMENTS;
use crate::checklist::{ReviewOutcome, adopt_boxes, compare_reviewed};

/// Bytes of a checklist that is watched, as many as a page of a project may have.
const LIST_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Folders within folders that are looked through.
const DEPTH_MAX: usize = 4;

/// Checklists that are watched.
const LISTS_MAX: usize = 256;

/// The lists of a feature.
#[derive(Debug)]
pub(super) struct ReviewedLists {
    directory: PathBuf,
    /// What of each list is the reviewers'.
    protected: BTreeMap<PathBuf, ReviewedList>,
    /// Every list as it was after the last call.
    last_seen: BTreeMap<PathBuf, ReviewedList>,
}

#[derive(Debug, Clone)]
struct ReviewedList {
    text: String,
    permissions: Permissions,
}

impl ReviewedLists {
    /// Takes the lists that are there before the model adds to them.
    pub(super) fn capture(directory: PathBuf) -> Self {
        let protected = read_lists(&directory);
        Self { directory, last_seen: protected.clone(), protected }
    }

    /// Takes what changed since the last call for the person's.
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

    /// Puts back what a call took from a list, and says from which.
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

/// Reads the lists in a folder. A link is none, and what is no text is nobody's list.
fn read_lists(directory: &Path) -> BTreeMap<PathBuf, ReviewedList> {
    let mut paths = Vec::new();
    let _unreadable = walk_dir(directory, DEPTH_MAX, &mut paths);
    paths.sort();
    let is_list = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    let requirements = directory.join(REQUIREMENTS);
    let paths = paths.into_iter().filter(is_list).filter(|path| *path != requirements).take(LISTS_MAX);
    let read_list = |path: PathBuf| {
        // One byte more is read of a longer file: that is no whole list.
        let file = read_file(&path, LIST_BYTES_MAX)
            .ok()?
            .filter(|file| file.bytes.len() as u64 <= LIST_BYTES_MAX)?;
        let text = String::from_utf8(file.bytes).ok()?;
        Some((path, ReviewedList { text, permissions: file.permissions }))
    };
    paths.filter_map(read_list).collect()
}
