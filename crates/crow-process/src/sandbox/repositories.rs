//! The repositories in and around the places where a command may write: what in them has Git run programs later,
//! outside. What is there is found so that it can be sealed, and what appears is set aside when the command has ended.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs, io,
    os::{
        fd::AsRawFd as _,
        unix::fs::{MetadataExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use super::aside;

/// What of a repository names programs that Git runs, or another place to look for such names.
pub(super) const PROGRAM_PARTS: [&str; 6] =
    ["commondir", "config", "config.worktree", "hooks", "modules", "worktrees"];

/// Parts that can be made before they are missed: nothing can be held that is not there, and Git does not mind them
/// empty.
const FOLDER_PARTS: [&str; 3] = ["hooks", "modules", "worktrees"];

/// How much of the session's folders is looked at, the upper folders first.
const FOLDERS_MAX: usize = 50_000;
const ENTRIES_MAX: usize = 500_000;
const TIME_MAX: Duration = Duration::from_millis(250);

/// A folder changed this shortly before it was looked at may be changed again without a new time.
const RECENT_SECONDS: i64 = 2;

/// What is known of the repositories before a command begins.
#[derive(Debug, Default)]
pub(crate) struct RepositorySurvey {
    /// Each folder that Git would take for a repository, or file that names one, as it was.
    repositories: BTreeMap<PathBuf, Identity>,
    /// Each folder of the session's folders, by its last change.
    folders: BTreeMap<PathBuf, Change>,
    /// Folders that are looked at by themselves, without those below.
    single: Vec<PathBuf>,
    /// Folders that were not looked at: there were too many, or they could not be listed.
    unseen: BTreeSet<PathBuf>,
    /// When this was begun, in seconds.
    began: i64,
}

/// The last change of a folder's entries, and whether that was just before it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Change {
    inode: (u64, u64),
    time: (i64, i64),
    is_recent: bool,
}

/// What a repository is, and which of its parts are there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Identity {
    inode: (u64, u64),
    /// Of a file or a link that names a repository, its last change.
    changed: Option<(i64, i64)>,
    parts: Vec<&'static str>,
}

impl RepositorySurvey {
    /// Looks at all in `roots`, at the folders `beside` by themselves, and at those above the roots in them; `named`
    /// are repositories that the roots belong to.
    pub(crate) fn take(roots: &[String], beside: &[String], named: &[String]) -> Self {
        let mut survey = Self { began: now_seconds(), ..Self::default() };
        let writable = || roots.iter().chain(beside).map(Path::new);
        survey.single = beside.iter().map(PathBuf::from).collect();
        for root in roots.iter().map(Path::new) {
            let above = root.ancestors().skip(1);
            survey.single.extend(
                above.filter(|path| writable().any(|place| path.starts_with(place))).map(Path::to_owned),
            );
        }
        survey.single.sort();
        survey.single.dedup();
        let mut walk = Walk::begin(Unlisted::PassedBy);
        let outermost =
            |root: &&String| !roots.iter().any(|other| other != *root && Path::new(root).starts_with(other));
        roots.iter().filter(outermost).for_each(|root| walk.open.push_back(PathBuf::from(root)));
        while let Some(seen) = walk.next_folder() {
            survey.folders.insert(seen.path, seen.change);
            seen.repositories.into_iter().for_each(|path| survey.add(path));
        }
        survey.unseen.extend(walk.open.into_iter().chain(walk.unlistable));
        for folder in survey.single.clone() {
            repositories_at(&folder).into_iter().for_each(|path| survey.add(path));
        }
        named
            .iter()
            .filter(|path| writable().any(|place| Path::new(path).starts_with(place)))
            .for_each(|path| survey.add(path.into()));
        survey
    }

    fn add(&mut self, path: PathBuf) {
        make_parts(&path);
        if let Some(identity) = Identity::read(&path) {
            self.repositories.insert(path, identity);
        }
    }

    /// Returns what must not be written to while the command runs.
    pub(crate) fn sealed(&self) -> Vec<PathBuf> {
        let sealed = self.repositories.iter().flat_map(|(path, identity)| {
            let parts: Vec<PathBuf> = identity.parts.iter().map(|part| path.join(part)).collect();
            let is_link = |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| found.is_symlink());
            // A file names the real one, a link can be replaced whatever it leads to, and where nothing is there
            // something could be made.
            let is_whole = identity.changed.is_some() || parts.is_empty() || parts.iter().any(is_link);
            if is_whole { vec![path.clone()] } else { parts }
        });
        sealed.collect()
    }

    /// Sets aside what appeared since; returns a sentence for each thing, also when that failed.
    pub(crate) fn set_aside_new(&self) -> Vec<String> {
        let mut walk = Walk::begin(Unlisted::Opened);
        for (path, before) in &self.folders {
            if !Change::read(path).is_some_and(|now| before.is_same(now)) {
                walk.open.push_back(path.clone());
            }
        }
        let mut found: Vec<PathBuf> = self.repositories.keys().cloned().collect();
        while let Some(seen) = walk.next_new_folder(&self.folders) {
            found.extend(seen.repositories);
        }
        self.single.iter().for_each(|folder| found.extend(repositories_at(folder)));
        found.sort();
        found.dedup();
        found.iter().flat_map(|path| self.set_aside_in(path)).collect()
    }

    fn set_aside_in(&self, path: &Path) -> Vec<String> {
        let Some(now) = Identity::read(path) else { return Vec::new() };
        let before = self.repositories.get(path);
        // What nobody looked at before may have been there.
        let was_unseen = before.is_none() && path.ancestors().any(|above| self.unseen.contains(above));
        let may_be_new = |path: &Path| !was_unseen || is_changed_since(path, self.began);
        if now.changed.is_some() {
            let is_same =
                before.is_some_and(|before| before.inode == now.inode && before.changed == now.changed);
            return if is_same || !may_be_new(path) { Vec::new() } else { vec![aside::set_file_aside(path)] };
        }
        let known = before.filter(|before| before.changed.is_none() && before.inode == now.inode);
        let is_new = |part: &&&str| {
            known.is_none_or(|before| !before.parts.contains(*part)) && may_be_new(&path.join(part))
        };
        now.parts.iter().filter(is_new).filter_map(|part| aside::set_part_aside(path, part)).collect()
    }
}

impl Change {
    fn read(path: &Path) -> Option<Self> {
        let found = path.symlink_metadata().ok().filter(fs::Metadata::is_dir)?;
        // A time in the future says nothing, so it counts as recent too.
        let is_recent = found.ctime().saturating_add(RECENT_SECONDS) >= now_seconds();
        Some(Self { inode: (found.dev(), found.ino()), time: (found.ctime(), found.ctime_nsec()), is_recent })
    }

    /// Whether nothing can have been added to the folder between two looks.
    fn is_same(self, later: Self) -> bool {
        !self.is_recent && (self.inode, self.time) == (later.inode, later.time)
    }
}

/// The time as files have it.
fn now_seconds() -> i64 {
    #[expect(clippy::disallowed_methods, reason = "the times of files are compared with it")]
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}

/// Whether a file or folder, or something directly in it, was changed since then.
fn is_changed_since(path: &Path, then: i64) -> bool {
    let is_changed = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.ctime() >= then);
    let mut entries = fs::read_dir(path).into_iter().flatten().flatten().take(ENTRIES_MAX);
    is_changed(path) || entries.any(|entry| is_changed(&entry.path()))
}

impl Identity {
    fn read(path: &Path) -> Option<Self> {
        let found = path.symlink_metadata().ok()?;
        let inode = (found.dev(), found.ino());
        if !found.is_dir() {
            return Some(Self {
                inode,
                changed: Some((found.ctime(), found.ctime_nsec())),
                parts: Vec::new(),
            });
        }
        let is_there = |part: &&str| path.join(part).symlink_metadata().is_ok();
        Some(Self { inode, changed: None, parts: PROGRAM_PARTS.into_iter().filter(is_there).collect() })
    }
}

/// Makes the folders of a `.git` that could be made by a command instead.
fn make_parts(repository: &Path) {
    let is_git = repository.file_name().is_some_and(is_git_name);
    if is_git && repository.join("HEAD").symlink_metadata().is_ok_and(|found| found.is_file()) {
        for part in FOLDER_PARTS {
            // Fails when it is there, which is as good, or when nobody may make it, which is better.
            let _ = fs::create_dir(repository.join(part));
        }
    }
}

/// One folder as it was read.
struct SeenFolder {
    path: PathBuf,
    change: Change,
    repositories: Vec<PathBuf>,
}

/// A bounded walk, the upper folders first. Links are not followed.
struct Walk {
    open: VecDeque<PathBuf>,
    n_folders_left: usize,
    n_entries_left: usize,
    until: Instant,
    unlisted: Unlisted,
    /// Folders that were passed by.
    unlistable: Vec<PathBuf>,
}

/// What is done with a folder that may not be listed. Git can look into it all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unlisted {
    PassedBy,
    /// Its owner gets the rights that a folder has.
    Opened,
}

impl Walk {
    fn begin(unlisted: Unlisted) -> Self {
        let until = Instant::now() + TIME_MAX;
        Self {
            unlisted,
            unlistable: Vec::new(),
            open: VecDeque::new(),
            n_folders_left: FOLDERS_MAX,
            n_entries_left: ENTRIES_MAX,
            until,
        }
    }

    fn next_folder(&mut self) -> Option<SeenFolder> {
        self.next_new_folder(&BTreeMap::new())
    }

    /// Reads one more folder and queues those in it that are not known.
    fn next_new_folder(&mut self, known: &BTreeMap<PathBuf, Change>) -> Option<SeenFolder> {
        loop {
            if self.n_folders_left == 0 || self.n_entries_left == 0 || Instant::now() >= self.until {
                return None;
            }
            self.n_folders_left -= 1;
            let path = self.open.pop_front()?;
            // Before it is read: what is made meanwhile counts as made later.
            let Some(change) = Change::read(&path) else { continue };
            let mut names = RepositoryNames::default();
            for (name, is_dir) in self.entries(&path) {
                names.note(&name);
                if is_dir && !is_git_name(&name) {
                    let path = path.join(&name);
                    if !known.contains_key(&path) {
                        self.open.push_back(path);
                    }
                }
            }
            let repositories = names.repositories(&path);
            return Some(SeenFolder { path, change, repositories });
        }
    }

    fn entries(&mut self, folder: &Path) -> Vec<(std::ffi::OsString, bool)> {
        // A command that runs on may put a link in the place of a folder meanwhile.
        let place = aside::open_place(folder);
        let read = place.and_then(|place| {
            let folder = PathBuf::from(format!("/proc/self/fd/{}", place.as_raw_fd()));
            fs::read_dir(&folder).or_else(|error| {
                if error.kind() != io::ErrorKind::PermissionDenied || self.unlisted == Unlisted::PassedBy {
                    return Err(error);
                }
                let mode = fs::metadata(&folder)?.permissions().mode() & ALL_RIGHTS;
                fs::set_permissions(&folder, fs::Permissions::from_mode(mode | OWNER_ALL))?;
                fs::read_dir(&folder)
            })
        });
        if read.is_err() {
            self.unlistable.push(folder.to_owned());
        }
        let entries = read.into_iter().flatten().flatten().take(self.n_entries_left);
        let entries: Vec<_> = entries
            .map(|entry| (entry.file_name(), entry.file_type().is_ok_and(|kind| kind.is_dir())))
            .collect();
        self.n_entries_left -= entries.len();
        if self.n_entries_left == 0 {
            self.unlistable.push(folder.to_owned());
        }
        entries
    }
}

const OWNER_ALL: u32 = 0o700;

/// Without those that change who a program runs as.
const ALL_RIGHTS: u32 = 0o777;

fn is_git_name(name: &std::ffi::OsStr) -> bool {
    name.eq_ignore_ascii_case(".git")
}

/// The names in a folder by which Git recognises a repository.
#[derive(Default)]
struct RepositoryNames {
    git: Option<std::ffi::OsString>,
    head: bool,
    objects: bool,
    refs: bool,
    commondir: bool,
}

impl RepositoryNames {
    fn note(&mut self, name: &std::ffi::OsStr) {
        if is_git_name(name) {
            self.git = Some(name.to_owned());
        }
        self.head |= name == "HEAD";
        self.objects |= name == "objects";
        self.refs |= name == "refs";
        self.commondir |= name == "commondir";
    }

    /// Returns the folder's `.git`, and the folder itself when it has the shape of a repository.
    fn repositories(self, folder: &Path) -> Vec<PathBuf> {
        let is_bare = self.head && (self.commondir || (self.objects && self.refs));
        let git = self.git.map(|name| folder.join(name));
        git.into_iter().chain(is_bare.then(|| folder.to_owned())).collect()
    }
}

/// The same without reading the folder, which may be huge.
fn repositories_at(folder: &Path) -> Vec<PathBuf> {
    let mut names = RepositoryNames::default();
    for name in [".git", "HEAD", "objects", "refs", "commondir"] {
        if folder.join(name).symlink_metadata().is_ok() {
            names.note(name.as_ref());
        }
    }
    names.repositories(folder)
}
