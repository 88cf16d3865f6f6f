//! The checklists of reviewers while a step adds to them: their items and the boxes of those stay. Knows which file belongs
//! to whom, not what a checklist says.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::path::{Path, PathBuf};

use super::snapshot::{ProtectedChange, ProtectedChangeKind, ProtectedFile, read_file, walk_folder};
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
    folder: PathBuf,
    /// What of each list is the reviewers'.
    kept: BTreeMap<PathBuf, ReviewedList>,
    /// Every list as it was after the last call.
    seen: BTreeMap<PathBuf, ReviewedList>,
}

#[derive(Debug, Clone)]
struct ReviewedList {
    text: String,
    permissions: Permissions,
}

impl ReviewedLists {
    /// Takes the lists that are there before the model adds to them.
    pub(super) fn capture(folder: PathBuf) -> Self {
        let kept = read_lists(&folder);
        Self { folder, seen: kept.clone(), kept }
    }

    /// Takes what changed since the last call for the person's.
    pub(super) fn adopt_changes(&mut self) {
        let now = read_lists(&self.folder);
        self.kept.retain(|path, _| now.contains_key(path));
        for (path, list) in &now {
            let seen = self.seen.get(path);
            if seen.is_some_and(|seen| seen.text == list.text) {
                continue;
            }
            let boxes = seen.and_then(|seen| adopt_boxes(&self.kept.get(path)?.text, &seen.text, &list.text));
            let text = boxes.unwrap_or_else(|| list.text.clone());
            self.kept.insert(path.clone(), ReviewedList { text, permissions: list.permissions.clone() });
        }
        self.seen = now;
    }

    /// Puts back what a call took from a list, and says from which.
    pub(super) fn restore_lists(
        &mut self,
        put_back: impl Fn(&Path, &ProtectedFile) -> io::Result<()>,
    ) -> Vec<ProtectedChange> {
        let now = read_lists(&self.folder);
        let mut touched = Vec::new();
        for (path, kept) in &self.kept {
            let (text, change) = match now.get(path).map(|now| compare_reviewed(&kept.text, &now.text)) {
                Some(ReviewOutcome::Whole) => continue,
                Some(ReviewOutcome::Boxes(text)) => (text, ProtectedChangeKind::Changed),
                Some(ReviewOutcome::Lost) => (kept.text.clone(), ProtectedChangeKind::Changed),
                None if fs::symlink_metadata(path).is_ok() => {
                    (kept.text.clone(), ProtectedChangeKind::Changed)
                }
                None => (kept.text.clone(), ProtectedChangeKind::Removed),
            };
            let file = ProtectedFile { bytes: text.into_bytes(), permissions: kept.permissions.clone() };
            let is_undone = put_back(path, &file).is_ok();
            touched.push(ProtectedChange { path: path.clone(), change, is_undone });
        }
        self.seen = read_lists(&self.folder);
        touched
    }
}

/// Reads the lists in a folder. A link is none, and what is no text is nobody's list.
fn read_lists(folder: &Path) -> BTreeMap<PathBuf, ReviewedList> {
    let mut found = Vec::new();
    let _unreadable = walk_folder(folder, DEPTH_MAX, &mut found);
    found.sort();
    let is_list = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "md");
    let own = folder.join(REQUIREMENTS);
    let found = found.into_iter().filter(is_list).filter(|path| *path != own).take(LISTS_MAX);
    let list = |path: PathBuf| {
        // One byte more is read of a longer file: that is no whole list.
        let file = read_file(&path, LIST_BYTES_MAX)
            .ok()?
            .filter(|file| file.bytes.len() as u64 <= LIST_BYTES_MAX)?;
        let text = String::from_utf8(file.bytes).ok()?;
        Some((path, ReviewedList { text, permissions: file.permissions }))
    };
    found.filter_map(list).collect()
}
