//! Lists the folders of a project one by one, without what it wants left out, within bounds. Opens every folder and every
//! ignore file without following links. Blocks; knows no tool.

use std::{
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;

use super::ignore_rules::{IgnoreRules, IgnoreRulesReader};
use crate::nofollow::{self, EntryKind};

/// How much is looked at before a walk gives up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WalkBounds {
    /// Entries of all folders together.
    pub(crate) entries_max: usize,
    /// Time from the start of the walk; looked at between two calls of the system.
    pub(crate) timeout: Duration,
}

/// What becomes of names that begin with a dot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HiddenFiles {
    Included,
    Excluded,
}

/// Lists folders of one project.
pub(crate) struct DirectoryLister<'a> {
    start: PathBuf,
    hidden: HiddenFiles,
    rules: IgnoreRulesReader,
    entries_max: usize,
    n_entries: AtomicUsize,
    is_truncated: AtomicBool,
    deadline: Instant,
    cancel: &'a CancellationToken,
}

/// A folder with what its project wants left out in it.
pub(crate) struct WalkDirectory {
    path: PathBuf,
    /// Of the folders above it.
    rules: Option<Arc<IgnoreRules>>,
}

/// What is in a folder and is not left out.
pub(crate) enum WalkEntry {
    Directory(WalkDirectory),
    /// The path of a file.
    File(PathBuf),
}

impl WalkDirectory {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl<'a> DirectoryLister<'a> {
    /// Begins a walk. `start` is resolved.
    pub(crate) fn new(
        start: &Path,
        hidden: HiddenFiles,
        limits: WalkBounds,
        cancel: &'a CancellationToken,
    ) -> Self {
        Self {
            start: start.to_owned(),
            hidden,
            rules: IgnoreRulesReader::new(start),
            entries_max: limits.entries_max,
            n_entries: AtomicUsize::new(0),
            is_truncated: AtomicBool::new(false),
            deadline: Instant::now() + limits.timeout,
            cancel,
        }
    }

    /// The folder where it begins, with what the folders above it leave out.
    pub(crate) fn start_directory(&self) -> WalkDirectory {
        let ancestors: Vec<&Path> = self.start.ancestors().skip(1).collect();
        let mut rules = None;
        for path in ancestors.into_iter().rev() {
            if let Ok(dir) = nofollow::DirHandle::open(path) {
                rules = self.rules.read_rules(&dir, path, rules);
            }
        }
        WalkDirectory { path: self.start.clone(), rules }
    }

    /// Lists a folder. One that may not be read is passed by, as a search by hand would.
    pub(crate) fn list_directory(&self, dir: &WalkDirectory, on_entry: impl FnMut(WalkEntry)) {
        self.list_first(dir, usize::MAX, on_entry);
    }

    /// Lists a folder as far as its first entries, in the order of the system; says whether that is all of it.
    pub(crate) fn list_first(
        &self,
        dir: &WalkDirectory,
        n_max: usize,
        mut on_entry: impl FnMut(WalkEntry),
    ) -> bool {
        if self.is_truncated() || self.cancel.is_cancelled() {
            return false;
        }
        let Ok(handle) = nofollow::DirHandle::open_to_list(&dir.path) else { return true };
        let rules = self.rules.read_rules(&handle, &dir.path, dir.rules.clone());
        let Ok(entries) = handle.into_entries() else { return true };
        for (index, entry) in entries.enumerate() {
            let Ok(entry) = entry else { return true };
            if self.cancel.is_cancelled() || index >= n_max || !self.count_entry() {
                return false;
            }
            let is_hidden = self.hidden == HiddenFiles::Excluded && entry.name.as_bytes().starts_with(b".");
            if is_hidden || entry.name == ".git" || entry.kind == EntryKind::Other {
                continue;
            }
            let path = dir.path.join(&entry.name);
            let is_dir = entry.kind == EntryKind::Directory;
            if self.rules.is_ignored(rules.as_deref(), &path, is_dir) {
                continue;
            }
            on_entry(match is_dir {
                true => WalkEntry::Directory(WalkDirectory { path, rules: rules.clone() }),
                false => WalkEntry::File(path),
            });
        }
        true
    }

    /// Whether it gave up before the end.
    pub(crate) fn is_truncated(&self) -> bool {
        self.is_truncated.load(Relaxed)
    }

    /// Ignore files that were not read to their end.
    pub(crate) fn n_unread_rules(&self) -> usize {
        self.rules.n_unread()
    }

    fn count_entry(&self) -> bool {
        let is_within_bounds =
            self.n_entries.fetch_add(1, Relaxed) < self.entries_max && Instant::now() < self.deadline;
        if !is_within_bounds {
            self.is_truncated.store(true, Relaxed);
        }
        is_within_bounds
    }
}
