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

use super::rules::{IgnoreRules, IgnoreRulesReader};
use crate::nofollow::{self, EntryKind};

/// How much is looked at before a walk gives up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WalkBounds {
    /// Entries of all folders together.
    pub(crate) entries_max: usize,
    /// Time from the start of the walk; looked at between two calls of the system.
    pub(crate) within: Duration,
}

/// What becomes of names that begin with a dot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HiddenFiles {
    Listed,
    LeftOut,
}

/// Lists folders of one project.
pub(crate) struct DirectoryLister<'a> {
    start: PathBuf,
    hidden: HiddenFiles,
    rules: IgnoreRulesReader,
    entries_max: usize,
    n_entries: AtomicUsize,
    is_over: AtomicBool,
    until: Instant,
    cut: &'a CancellationToken,
}

/// A folder with what its project wants left out in it.
pub(crate) struct WalkDirectory {
    path: PathBuf,
    /// Of the folders above it.
    rules: Option<Arc<IgnoreRules>>,
}

/// What is in a folder and is not left out.
pub(crate) enum WalkEntry {
    Folder(WalkDirectory),
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
        bounds: WalkBounds,
        cut: &'a CancellationToken,
    ) -> Self {
        Self {
            start: start.to_owned(),
            hidden,
            rules: IgnoreRulesReader::new(start),
            entries_max: bounds.entries_max,
            n_entries: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
            until: Instant::now() + bounds.within,
            cut,
        }
    }

    /// The folder where it begins, with what the folders above it leave out.
    pub(crate) fn start_directory(&self) -> WalkDirectory {
        let above: Vec<&Path> = self.start.ancestors().skip(1).collect();
        let mut rules = None;
        for path in above.into_iter().rev() {
            if let Ok(folder) = nofollow::DirHandle::open(path) {
                rules = self.rules.read_rules(&folder, path, rules);
            }
        }
        WalkDirectory { path: self.start.clone(), rules }
    }

    /// Lists a folder. One that may not be read is passed by, as a search by hand would.
    pub(crate) fn list_directory(&self, folder: &WalkDirectory, each: impl FnMut(WalkEntry)) {
        self.list_first(folder, usize::MAX, each);
    }

    /// Lists a folder as far as its first entries, in the order of the system; says whether that is all of it.
    pub(crate) fn list_first(
        &self,
        folder: &WalkDirectory,
        n_max: usize,
        mut each: impl FnMut(WalkEntry),
    ) -> bool {
        if self.is_truncated() || self.cut.is_cancelled() {
            return false;
        }
        let Ok(opened) = nofollow::DirHandle::open_to_list(&folder.path) else { return true };
        let rules = self.rules.read_rules(&opened, &folder.path, folder.rules.clone());
        let Ok(entries) = opened.into_entries() else { return true };
        for (place, entry) in entries.enumerate() {
            let Ok(entry) = entry else { return true };
            if self.cut.is_cancelled() || place >= n_max || !self.count_entry() {
                return false;
            }
            let is_hidden = self.hidden == HiddenFiles::LeftOut && entry.name.as_bytes().starts_with(b".");
            if is_hidden || entry.name == ".git" || entry.kind == EntryKind::Other {
                continue;
            }
            let path = folder.path.join(&entry.name);
            let is_folder = entry.kind == EntryKind::Folder;
            if self.rules.is_ignored(rules.as_deref(), &path, is_folder) {
                continue;
            }
            each(match is_folder {
                true => WalkEntry::Folder(WalkDirectory { path, rules: rules.clone() }),
                false => WalkEntry::File(path),
            });
        }
        true
    }

    /// Whether it gave up before the end.
    pub(crate) fn is_truncated(&self) -> bool {
        self.is_over.load(Relaxed)
    }

    /// Ignore files that were not read to their end.
    pub(crate) fn n_unread_rules(&self) -> usize {
        self.rules.n_unread()
    }

    fn count_entry(&self) -> bool {
        let is_within =
            self.n_entries.fetch_add(1, Relaxed) < self.entries_max && Instant::now() < self.until;
        if !is_within {
            self.is_over.store(true, Relaxed);
        }
        is_within
    }
}
