//! Lists the directories of a project one by one, without ignored files, within limits. Opens directories and ignore
//! files without following links. Blocks; must not know any tool.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use crow_files::nofollow::{self, EntryKind};
use tokio_util::sync::CancellationToken;

use super::ignore_rules::{IgnoreRules, IgnoreRulesReader};

/// Limits of a walk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WalkBounds {
    /// Entries of all directories together.
    pub(crate) entries_max: usize,
    /// Time from the start of the walk; checked between two system calls.
    pub(crate) timeout: Duration,
}

/// Whether names that begin with a dot are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HiddenFiles {
    Included,
    Excluded,
}

/// Lists the directories of one project.
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

/// A directory with the ignore rules that apply to it.
pub(crate) struct WalkDirectory {
    path: PathBuf,
    /// Rules of its parents.
    rules: Option<Arc<IgnoreRules>>,
}

/// An entry of a directory that is not ignored.
pub(crate) enum WalkEntry {
    Directory(WalkDirectory),
    File(PathBuf),
}

impl WalkDirectory {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl<'a> DirectoryLister<'a> {
    /// Starts a walk. `start` is resolved.
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

    /// The start directory, with the rules of its parents.
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

    /// Lists a directory. An unreadable one is skipped, as in a search by hand.
    pub(crate) fn list_directory(&self, dir: &WalkDirectory, on_entry: impl FnMut(WalkEntry)) {
        self.list_first(dir, usize::MAX, on_entry);
    }

    /// Lists the first entries of a directory, in the system's order; returns whether these are all.
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
            let is_hidden =
                self.hidden == HiddenFiles::Excluded && entry.name.as_encoded_bytes().starts_with(b".");
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

    /// Whether it ended early.
    pub(crate) fn is_truncated(&self) -> bool {
        self.is_truncated.load(Relaxed)
    }

    /// Number of ignore files that were not read completely.
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
