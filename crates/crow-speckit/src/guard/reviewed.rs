//! The checklists of reviewers while a step adds to them: their items and the boxes of those stay. Knows which file belongs
//! to whom, not what a checklist says.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::path::{Path, PathBuf};

use super::snapshot::{Change, Kept, Touched, read, walk};
use crate::REQUIREMENTS;
use crate::checklist::{ReviewOutcome, adopt_boxes, keep_reviewed};

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
    kept: BTreeMap<PathBuf, List>,
    /// Every list as it was after the last call.
    seen: BTreeMap<PathBuf, List>,
}

#[derive(Debug, Clone)]
struct List {
    text: String,
    permissions: Permissions,
}

impl ReviewedLists {
    /// Takes the lists that are there before the model adds to them.
    pub(super) fn take(folder: PathBuf) -> Self {
        let kept = lists(&folder);
        Self { folder, seen: kept.clone(), kept }
    }

    /// Takes what changed since the last call for the person's.
    pub(super) fn adopt(&mut self) {
        let now = lists(&self.folder);
        self.kept.retain(|path, _| now.contains_key(path));
        for (path, list) in &now {
            let seen = self.seen.get(path);
            if seen.is_some_and(|seen| seen.text == list.text) {
                continue;
            }
            let boxes = seen.and_then(|seen| adopt_boxes(&self.kept.get(path)?.text, &seen.text, &list.text));
            let text = boxes.unwrap_or_else(|| list.text.clone());
            self.kept.insert(path.clone(), List { text, permissions: list.permissions.clone() });
        }
        self.seen = now;
    }

    /// Puts back what a call took from a list, and says from which.
    pub(super) fn restore(&mut self, put_back: impl Fn(&Path, &Kept) -> io::Result<()>) -> Vec<Touched> {
        let now = lists(&self.folder);
        let mut touched = Vec::new();
        for (path, kept) in &self.kept {
            let (text, change) = match now.get(path).map(|now| keep_reviewed(&kept.text, &now.text)) {
                Some(ReviewOutcome::Whole) => continue,
                Some(ReviewOutcome::Boxes(text)) => (text, Change::Changed),
                Some(ReviewOutcome::Lost) => (kept.text.clone(), Change::Changed),
                None if fs::symlink_metadata(path).is_ok() => (kept.text.clone(), Change::Changed),
                None => (kept.text.clone(), Change::Removed),
            };
            let file = Kept { bytes: text.into_bytes(), permissions: kept.permissions.clone() };
            let is_undone = put_back(path, &file).is_ok();
            touched.push(Touched { path: path.clone(), change, is_undone });
        }
        self.seen = lists(&self.folder);
        touched
    }
}

/// Reads the lists in a folder. A link is none, and what is no text is nobody's list.
fn lists(folder: &Path) -> BTreeMap<PathBuf, List> {
    let mut found = Vec::new();
    let _unreadable = walk(folder, DEPTH_MAX, &mut found);
    found.sort();
    let is_list = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "md");
    let own = folder.join(REQUIREMENTS);
    let found = found.into_iter().filter(is_list).filter(|path| *path != own).take(LISTS_MAX);
    let list = |path: PathBuf| {
        // One byte more is read of a longer file: that is no whole list.
        let file =
            read(&path, LIST_BYTES_MAX).ok()?.filter(|file| file.bytes.len() as u64 <= LIST_BYTES_MAX)?;
        let text = String::from_utf8(file.bytes).ok()?;
        Some((path, List { text, permissions: file.permissions }))
    };
    found.filter_map(list).collect()
}
