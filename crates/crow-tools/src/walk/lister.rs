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

use super::rules::{Rules, RulesReader};
use crate::nofollow::{self, EntryKind};

/// How much is looked at before a walk gives up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Entries of all folders together.
    pub(crate) entries_max: usize,
    /// Time from the start of the walk; looked at between two calls of the system.
    pub(crate) within: Duration,
}

/// What becomes of names that begin with a dot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hidden {
    Listed,
    LeftOut,
}

/// Lists folders of one project.
pub(crate) struct Lister<'a> {
    start: PathBuf,
    hidden: Hidden,
    rules: RulesReader,
    entries_max: usize,
    n_entries: AtomicUsize,
    is_over: AtomicBool,
    until: Instant,
    cut: &'a CancellationToken,
}

/// A folder with what its project wants left out in it.
pub(crate) struct Folder {
    path: PathBuf,
    /// Of the folders above it.
    rules: Option<Arc<Rules>>,
}

/// What is in a folder and is not left out.
pub(crate) enum Listed {
    Folder(Folder),
    /// The path of a file.
    File(PathBuf),
}

impl Folder {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl<'a> Lister<'a> {
    /// Begins a walk. `start` is resolved.
    pub(crate) fn new(start: &Path, hidden: Hidden, bounds: Bounds, cut: &'a CancellationToken) -> Self {
        Self {
            start: start.to_owned(),
            hidden,
            rules: RulesReader::new(start),
            entries_max: bounds.entries_max,
            n_entries: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
            until: Instant::now() + bounds.within,
            cut,
        }
    }

    /// The folder where it begins, with what the folders above it leave out.
    pub(crate) fn start(&self) -> Folder {
        let above: Vec<&Path> = self.start.ancestors().skip(1).collect();
        let mut rules = None;
        for path in above.into_iter().rev() {
            if let Ok(folder) = nofollow::Folder::open(path) {
                rules = self.rules.read(&folder, path, rules);
            }
        }
        Folder { path: self.start.clone(), rules }
    }

    /// Lists a folder. One that may not be read is passed by, as a search by hand would.
    pub(crate) fn list(&self, folder: &Folder, each: impl FnMut(Listed)) {
        self.list_some(folder, usize::MAX, each);
    }

    /// Lists a folder as far as its first entries, in the order of the system; says whether that is all of it.
    pub(crate) fn list_some(&self, folder: &Folder, n_max: usize, mut each: impl FnMut(Listed)) -> bool {
        if self.is_over() || self.cut.is_cancelled() {
            return false;
        }
        let Ok(opened) = nofollow::Folder::open_to_list(&folder.path) else { return true };
        let rules = self.rules.read(&opened, &folder.path, folder.rules.clone());
        let Ok(entries) = opened.into_entries() else { return true };
        for (place, entry) in entries.enumerate() {
            let Ok(entry) = entry else { return true };
            if self.cut.is_cancelled() || place >= n_max || !self.may_go_on() {
                return false;
            }
            let is_hidden = self.hidden == Hidden::LeftOut && entry.name.as_bytes().starts_with(b".");
            if is_hidden || entry.name == ".git" || entry.kind == EntryKind::Other {
                continue;
            }
            let path = folder.path.join(&entry.name);
            let is_folder = entry.kind == EntryKind::Folder;
            if self.rules.leaves_out(rules.as_deref(), &path, is_folder) {
                continue;
            }
            each(match is_folder {
                true => Listed::Folder(Folder { path, rules: rules.clone() }),
                false => Listed::File(path),
            });
        }
        true
    }

    /// Whether it gave up before the end.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }

    /// Ignore files that were not read to their end.
    pub(crate) fn n_unread_rules(&self) -> usize {
        self.rules.n_unread()
    }

    fn may_go_on(&self) -> bool {
        let is_within =
            self.n_entries.fetch_add(1, Relaxed) < self.entries_max && Instant::now() < self.until;
        if !is_within {
            self.is_over.store(true, Relaxed);
        }
        is_within
    }
}
