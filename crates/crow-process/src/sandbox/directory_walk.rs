//! A bounded, breadth-first walk through directories that looks for repositories. Links are not followed.

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

use super::{
    path_trace::path_exists,
    repository_names::{MarkerNames, is_git_name},
    set_aside,
    temporary_dirs::TemporaryDirs,
};

/// A directory changed less than this before it was read may change again without a new timestamp.
const RECENT_SECONDS: i64 = 2;

/// The limits of a walk.
#[derive(Debug, Clone, Copy)]
pub(super) struct WalkLimits {
    pub(super) n_directories: usize,
    pub(super) time: Duration,
}

/// The last change of a directory's entries, and whether that was just before it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FolderChange {
    inode: (u64, u64),
    time: (i64, i64),
    is_recent: bool,
}

impl FolderChange {
    /// Reads a directory by its path.
    pub(super) fn read(path: &Path, now: i64) -> Option<Self> {
        let stat = fstatat(nix::fcntl::AT_FDCWD, path, AtFlags::AT_SYMLINK_NOFOLLOW).ok()?;
        let is_directory = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR;
        is_directory.then(|| Self::from_stat(&stat, now))
    }

    fn from_stat(stat: &FileStat, now: i64) -> Self {
        // A time in the future says nothing, so it counts as recent too.
        let is_recent = stat.st_ctime.saturating_add(RECENT_SECONDS) >= now;
        Self { inode: (stat.st_dev, stat.st_ino), time: (stat.st_ctime, stat.st_ctime_nsec), is_recent }
    }

    /// Whether nothing can have been added to the directory between two reads.
    pub(super) fn is_same(self, later: Self) -> bool {
        !self.is_recent && (self.inode, self.time) == (later.inode, later.time)
    }
}

/// The current time as files have it.
pub(super) fn now_seconds() -> i64 {
    #[expect(clippy::disallowed_methods, reason = "the times of files are compared with it")]
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}

/// The directories that were examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FolderState {
    pub(super) change: FolderChange,
    pub(super) markers: MarkerNames,
}

/// One directory as it was read.
pub(super) struct WalkedFolder {
    pub(super) path: PathBuf,
    pub(super) state: FolderState,
    /// The names by which Git would accept something in it as a repository.
    pub(super) git_names: Vec<OsString>,
    /// Entries that other programs execute.
    pub(super) autorun_names: Vec<OsString>,
}

/// The handling of a directory that may not be listed. Git can read inside it anyway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnlistablePolicy {
    Skip,
    /// Its owner gets the right to list it.
    GrantAccess,
}

/// Directories that are not walked.
pub(super) struct KnownFolders<'a> {
    pub(super) directories: &'a HashMap<PathBuf, FolderState>,
    pub(super) unvisited: &'a HashSet<PathBuf>,
    /// The directories in which other programs work as well.
    pub(super) temporary: &'a TemporaryDirs,
}

impl KnownFolders<'_> {
    fn excludes(&self, path: &Path) -> bool {
        self.directories.contains_key(path)
            || self.unvisited.contains(path)
            || self.temporary.has_beside_session(path)
    }
}

pub(super) struct FolderWalk {
    /// The places where files that other programs execute are looked for.
    pub(super) guarded_roots: Vec<PathBuf>,
    pub(super) pending: VecDeque<PathBuf>,
    n_directories_left: usize,
    deadline: Instant,
    now: i64,
    unlistable_policy: UnlistablePolicy,
    /// Directories that were skipped.
    pub(super) unlistable: Vec<PathBuf>,
    /// A directory that should have been examined.
    failed: Option<PathBuf>,
}

impl FolderWalk {
    pub(super) fn start(limits: WalkLimits, unlistable_policy: UnlistablePolicy) -> Self {
        Self {
            guarded_roots: Vec::new(),
            unlistable_policy,
            unlistable: Vec::new(),
            failed: None,
            pending: VecDeque::new(),
            n_directories_left: limits.n_directories,
            deadline: Instant::now() + limits.time,
            now: now_seconds(),
        }
    }

    /// The first directory that was not examined because of the limits or an error.
    pub(super) fn first_missed(&self) -> Option<&Path> {
        self.pending.front().or(self.failed.as_ref()).map(PathBuf::as_path)
    }

    /// Reads one more directory and queues its unknown subdirectories. `None` at the end and at the limits.
    pub(super) fn next_folder(&mut self, known: Option<&KnownFolders<'_>>) -> Option<WalkedFolder> {
        while self.n_directories_left > 0 && Instant::now() < self.deadline {
            self.n_directories_left -= 1;
            let path = self.pending.pop_front()?;
            match self.read_folder(&path, known) {
                Ok(Some(directory)) => return Some(directory),
                Ok(None) => {}
                // A vanished directory contains nothing.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => self.failed = Some(path),
            }
        }
        None
    }

    /// Reads a directory; `None` if it no longer is one.
    fn read_folder(
        &mut self,
        path: &Path,
        known: Option<&KnownFolders<'_>>,
    ) -> io::Result<Option<WalkedFolder>> {
        let fd = match self.open_folder(path) {
            Ok(fd) => fd,
            // It can be examined by name.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.unlistable.push(path.to_owned());
                return Ok(FolderChange::read(path, self.now).map(|change| WalkedFolder {
                    path: path.to_owned(),
                    state: FolderState { change, markers: MarkerNames::probe_folder(path) },
                    git_names: [".git"]
                        .into_iter()
                        .filter(|name| path_exists(&path.join(name)))
                        .map(Into::into)
                        .collect(),
                    autorun_names: Vec::new(),
                }));
            }
            // It was a directory, and is something else now.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTDIR | libc::ELOOP)) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        // Before it is read: what is created meanwhile counts as created later.
        let change = FolderChange::from_stat(&fstat(&fd)?, self.now);
        let mut directory = Dir::from_fd(fd)?;
        let (mut markers, mut git_names, mut autorun_names) =
            (MarkerNames::default(), Vec::new(), Vec::new());
        let relative = self.relative_to_guarded(path);
        let mut subdirectories = Vec::new();
        for entry in directory.iter() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            markers.insert_name(name);
            if is_git_name(name) {
                git_names.push(name.to_owned());
            }
            if relative.is_some_and(|directory| is_autorun_entry(directory, name)) {
                autorun_names.push(name.to_owned());
            }
            match entry.file_type() {
                Some(Type::Directory) => subdirectories.push(path.join(name)),
                Some(_) => {}
                // Some file systems do not say.
                None => {
                    subdirectories
                        .extend(Some(path.join(name)).filter(|path| path.is_dir() && !path.is_symlink()));
                }
            }
        }
        if let Some(known) = known {
            subdirectories.retain(|path| !known.excludes(path));
        }
        self.pending.extend(subdirectories);
        Ok(Some(WalkedFolder {
            path: path.to_owned(),
            state: FolderState { change, markers },
            git_names,
            autorun_names,
        }))
    }

    /// A directory relative to the guarded place that contains it.
    fn relative_to_guarded<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        let relative_paths = self.guarded_roots.iter().filter_map(|root| path.strip_prefix(root).ok());
        relative_paths
            .min_by_key(|relative| relative.as_os_str().len())
            .filter(|below| may_hold_autorun(below))
    }

    /// Opens a directory to list it. A running command may replace it by a link meanwhile.
    fn open_folder(&self, path: &Path) -> io::Result<OwnedFd> {
        set_aside::open_for_listing(path).or_else(|error| {
            if error.kind() != io::ErrorKind::PermissionDenied
                || self.unlistable_policy == UnlistablePolicy::Skip
            {
                return Err(error);
            }
            let path_fd = set_aside::open_path_fd(path)?;
            let fd_path = PathBuf::from(format!("/proc/self/fd/{}", path_fd.as_raw_fd()));
            let mode = fs::metadata(&fd_path)?.permissions().mode() & PERMISSION_BITS;
            fs::set_permissions(&fd_path, fs::Permissions::from_mode(mode | OWNER_ALL))?;
            set_aside::open_for_listing(path)
        })
    }
}

const OWNER_ALL: u32 = 0o700;

/// Without set-user-ID, set-group-ID and sticky bits.
const PERMISSION_BITS: u32 = 0o777;
