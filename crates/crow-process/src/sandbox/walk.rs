//! A bounded walk through folders, the upper ones first, that looks for repositories. Links are not followed.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    ffi::{OsStr, OsString},
    fs, io,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::{ffi::OsStrExt as _, fs::PermissionsExt as _},
    },
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use crow_core::{is_autorun_entry, may_hold_autorun};
use nix::{
    dir::{Dir, Type},
    fcntl::AtFlags,
    sys::stat::{FileStat, SFlag, fstat, fstatat},
};

use super::{aside, repositories::PROGRAM_PARTS};

/// A folder changed this shortly before it was looked at may be changed again without a new time.
const RECENT_SECONDS: i64 = 2;

/// How much is looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct WalkLimits {
    pub(super) n_folders: usize,
    pub(super) time: Duration,
}

/// The last change of a folder's entries, and whether that was just before it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FolderChange {
    inode: (u64, u64),
    time: (i64, i64),
    is_recent: bool,
}

impl FolderChange {
    /// Looks at a folder by its path.
    pub(super) fn read(path: &Path, now: i64) -> Option<Self> {
        let found = fstatat(nix::fcntl::AT_FDCWD, path, AtFlags::AT_SYMLINK_NOFOLLOW).ok()?;
        let is_folder = SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR;
        is_folder.then(|| Self::from_stat(&found, now))
    }

    fn from_stat(found: &FileStat, now: i64) -> Self {
        // A time in the future says nothing, so it counts as recent too.
        let is_recent = found.st_ctime.saturating_add(RECENT_SECONDS) >= now;
        Self { inode: (found.st_dev, found.st_ino), time: (found.st_ctime, found.st_ctime_nsec), is_recent }
    }

    /// Whether nothing can have been added to the folder between two looks.
    pub(super) fn is_same(self, later: Self) -> bool {
        !self.is_recent && (self.inode, self.time) == (later.inode, later.time)
    }
}

/// The time as files have it.
pub(super) fn now_seconds() -> i64 {
    #[expect(clippy::disallowed_methods, reason = "the times of files are compared with it")]
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}

/// What of a folder was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FolderState {
    pub(super) change: FolderChange,
    pub(super) names: MarkerNames,
}

/// One folder as it was read.
pub(super) struct WalkedFolder {
    pub(super) path: PathBuf,
    pub(super) seen: FolderState,
    /// The names by which Git would take something in it for a repository.
    pub(super) gits: Vec<OsString>,
    /// What in it other programs run by themselves.
    pub(super) autorun: Vec<OsString>,
}

/// What is done with a folder that may not be listed. Git can look into it all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnlistablePolicy {
    PassedBy,
    /// Its owner gets the rights that a folder has.
    Opened,
}

/// What is not walked into.
pub(super) struct KnownFolders<'a> {
    pub(super) folders: &'a HashMap<PathBuf, FolderState>,
    pub(super) unseen: &'a HashSet<PathBuf>,
}

pub(super) struct FolderWalk {
    /// Where files are looked for that other programs run by themselves.
    pub(super) guarded: Vec<PathBuf>,
    pub(super) open: VecDeque<PathBuf>,
    n_folders_left: usize,
    until: Instant,
    now: i64,
    unlisted: UnlistablePolicy,
    /// Folders that were passed by.
    pub(super) unlistable: Vec<PathBuf>,
    /// One that should have been looked at.
    failed: Option<PathBuf>,
}

impl FolderWalk {
    pub(super) fn start(bounds: WalkLimits, unlisted: UnlistablePolicy) -> Self {
        Self {
            guarded: Vec::new(),
            unlisted,
            unlistable: Vec::new(),
            failed: None,
            open: VecDeque::new(),
            n_folders_left: bounds.n_folders,
            until: Instant::now() + bounds.time,
            now: now_seconds(),
        }
    }

    /// Where something was not looked at because of the bounds, or because that failed.
    pub(super) fn first_missed(&self) -> Option<&Path> {
        self.open.front().or(self.failed.as_ref()).map(PathBuf::as_path)
    }

    /// Reads one more folder and queues those in it that are not known. `None` at the end, and at the bounds.
    pub(super) fn next_folder(&mut self, known: Option<&KnownFolders<'_>>) -> Option<WalkedFolder> {
        while self.n_folders_left > 0 && Instant::now() < self.until {
            self.n_folders_left -= 1;
            let path = self.open.pop_front()?;
            match self.read_folder(&path, known) {
                Ok(Some(folder)) => return Some(folder),
                Ok(None) => {}
                // What is gone holds nothing.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => self.failed = Some(path),
            }
        }
        None
    }

    /// Reads a folder; nothing when it is none any more.
    fn read_folder(
        &mut self,
        path: &Path,
        known: Option<&KnownFolders<'_>>,
    ) -> io::Result<Option<WalkedFolder>> {
        let opened = match self.open_folder(path) {
            Ok(opened) => opened,
            // It can be looked into by name.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.unlistable.push(path.to_owned());
                return Ok(FolderChange::read(path, self.now).map(|change| WalkedFolder {
                    path: path.to_owned(),
                    seen: FolderState { change, names: MarkerNames::probe_folder(path) },
                    gits: [".git"]
                        .into_iter()
                        .filter(|name| path_exists(&path.join(name)))
                        .map(Into::into)
                        .collect(),
                    autorun: Vec::new(),
                }));
            }
            // It was one, and is another thing now.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTDIR | libc::ELOOP)) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        // Before it is read: what is made meanwhile counts as made later.
        let change = FolderChange::from_stat(&fstat(&opened)?, self.now);
        let mut folder = Dir::from_fd(opened)?;
        let (mut names, mut gits, mut autorun) = (MarkerNames::default(), Vec::new(), Vec::new());
        let from_root = self.relative_to_guarded(path);
        let mut below = Vec::new();
        for entry in folder.iter() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            names.insert_name(name);
            if is_git_name(name) {
                gits.push(name.to_owned());
            }
            if from_root.is_some_and(|folder| is_autorun_entry(folder, name)) {
                autorun.push(name.to_owned());
            }
            match entry.file_type() {
                Some(Type::Directory) => below.push(path.join(name)),
                Some(_) => {}
                // Some file systems do not say.
                None => {
                    below.extend(Some(path.join(name)).filter(|path| path.is_dir() && !path.is_symlink()));
                }
            }
        }
        if let Some(known) = known {
            below.retain(|path| !known.folders.contains_key(path) && !known.unseen.contains(path));
        }
        self.open.extend(below);
        Ok(Some(WalkedFolder { path: path.to_owned(), seen: FolderState { change, names }, gits, autorun }))
    }

    /// A folder as seen from the guarded one that it is in, where something is looked for in it.
    fn relative_to_guarded<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        let seen = self.guarded.iter().filter_map(|root| path.strip_prefix(root).ok());
        seen.min_by_key(|below| below.as_os_str().len()).filter(|below| may_hold_autorun(below))
    }

    /// Opens a folder to list it. A command that runs on may put a link in its place meanwhile.
    fn open_folder(&self, path: &Path) -> io::Result<OwnedFd> {
        aside::open_for_listing(path).or_else(|error| {
            if error.kind() != io::ErrorKind::PermissionDenied || self.unlisted == UnlistablePolicy::PassedBy
            {
                return Err(error);
            }
            let place = aside::open_path_fd(path)?;
            let by_descriptor = PathBuf::from(format!("/proc/self/fd/{}", place.as_raw_fd()));
            let mode = fs::metadata(&by_descriptor)?.permissions().mode() & ALL_RIGHTS;
            fs::set_permissions(&by_descriptor, fs::Permissions::from_mode(mode | OWNER_ALL))?;
            aside::open_for_listing(path)
        })
    }
}

const OWNER_ALL: u32 = 0o700;

/// Without those that change who a program runs as.
const ALL_RIGHTS: u32 = 0o777;

/// Some file systems do not tell letters of two cases apart.
pub(super) fn is_git_name(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(".git")
}

pub(super) fn path_exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// The names in a folder by which Git recognises a repository, and those of its parts that matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct MarkerNames(u16);

/// Without these a folder is no repository, unless the third is there instead of the first two.
pub(super) const MARKERS: [&str; 4] = ["objects", "refs", "commondir", "HEAD"];

impl MarkerNames {
    fn name_bit(name: &OsStr) -> u16 {
        let all = || MARKERS.iter().chain(&PROGRAM_PARTS);
        all().position(|known| name == *known).map_or(0, |at| 1 << at)
    }

    fn insert_name(&mut self, name: &OsStr) {
        self.0 |= Self::name_bit(name);
    }

    pub(super) fn contains(self, name: &str) -> bool {
        // One of them is in both lists.
        self.0 & Self::name_bit(name.as_ref()) != 0
    }

    /// Looks for each by its name, where a folder cannot be listed or may be huge.
    pub(super) fn probe_folder(folder: &Path) -> Self {
        let mut names = Self::default();
        let all = MARKERS.iter().chain(&PROGRAM_PARTS);
        all.filter(|name| path_exists(&folder.join(name))).for_each(|name| names.insert_name(name.as_ref()));
        names
    }

    /// Whether the folder could be a repository if its `HEAD` is right.
    pub(super) fn has_repository_shape(self) -> bool {
        self.contains("HEAD")
            && (self.contains("commondir") || (self.contains("objects") && self.contains("refs")))
    }
}
