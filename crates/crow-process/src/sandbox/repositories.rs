//! Repositories in and around the places where a command may write: parts of them make Git execute programs later,
//! outside the sandbox. Existing ones are found so that they can be protected; new ones are set aside when the
//! command has ended, except where another program may have created them.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    directory_walk::{
        FolderChange, FolderState, FolderWalk, KnownFolders, UnlistablePolicy, WalkLimits, now_seconds,
    },
    file_kinds::has_git_head,
    git_targets::{GitTargetFinder, GitTargets},
    path_trace::{PathTrace, TraceEnd, path_exists, trace_path},
    repository_names::{MARKERS, MarkerNames, PROGRAM_PARTS, is_git_name},
    set_aside::{self, AutorunOwner},
    temporary_dirs::TemporaryDirs,
};
use crate::launch_spec::LaunchSpec;

/// Parts that can be created in advance: a missing path cannot be protected, and Git accepts these empty.
const DIRECTORY_PARTS: [&str; 3] = ["hooks", "modules", "worktrees"];

/// Files that Git creates while it changes a configuration. Left behind, they prevent any change.
const LOCK_FILES: [&str; 2] = ["config.lock", "config.worktree.lock"];

/// The limits of the walk before a command. A command that may write where there is more does not start.
const WALK_BEFORE: WalkLimits = WalkLimits { n_directories: 1_000_000, time: Duration::from_secs(10) };

/// The limits of the walk over changed directories after a command.
const WALK_AFTER: WalkLimits = WalkLimits { n_directories: 10_000_000, time: Duration::from_secs(60) };

/// The limits of the walk over caches, upper directories first. In caches where tools keep repositories, their places
/// are known.
const WALK_OF_CACHES: WalkLimits = WalkLimits { n_directories: 2000, time: Duration::from_millis(50) };

/// Entries of a part that are examined one by one.
const ENTRIES_MAX: usize = 10_000;

/// The parts of a repository with its commits and references.
const DATA_PARTS: [&str; 4] = ["HEAD", "objects", "packed-refs", "refs"];

/// The repositories before a command starts.
#[derive(Debug, Default)]
pub(crate) struct RepositorySurvey {
    /// Each directory that Git would accept as a repository, or file that refers to one, as it was.
    repositories: BTreeMap<PathBuf, RepositoryIdentity>,
    /// Directories that would be one with another `HEAD`.
    candidates: Vec<PathBuf>,
    directories: HashMap<PathBuf, FolderState>,
    /// Directories that were not examined: deep in a cache, or not listable.
    unvisited: HashSet<PathBuf>,
    targets: GitTargets,
    temporary_dirs: TemporaryDirs,
    /// Whether all of a repository is kept, and not only the parts that make Git run programs.
    keeps_repositories: bool,
    /// The places where files that other programs execute must stay as they are, and the existing ones.
    guarded_roots: Vec<PathBuf>,
    autorun_files: BTreeSet<PathBuf>,
    /// The start of this survey, in seconds.
    began_at: i64,
}

/// The identity of a repository, and which of its parts exist.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RepositoryIdentity {
    inode: (u64, u64),
    /// The last change, of a file or link that refers to a repository.
    ctime: Option<(i64, i64)>,
    parts: Vec<&'static str>,
}

impl RepositorySurvey {
    /// Examines all places where a command may write, and the repositories that its roots belong to. The error is a
    /// sentence: what was not found cannot be protected.
    pub(crate) fn scan_repositories(spec: &LaunchSpec) -> Result<Self, String> {
        let resolved = |paths: &[String]| -> Vec<PathBuf> {
            let existing = paths.iter().filter_map(|path| fs::canonicalize(path).ok());
            existing.collect::<BTreeSet<_>>().into_iter().collect()
        };
        let roots = resolved(&spec.roots);
        let temporary_dirs = resolved(&spec.writable);
        let full_dirs = outermost_paths(&[roots.as_slice(), &temporary_dirs].concat());
        let caches = resolved(&spec.caches);
        let caches = caches
            .into_iter()
            .filter(|cache| !full_dirs.iter().any(|directory| cache.starts_with(directory)));
        let caches = outermost_paths(&caches.collect::<Vec<_>>());
        let guarded_roots = if spec.guards_autorun { roots.clone() } else { Vec::new() };
        let session_paths = [roots.as_slice(), &resolved(&spec.repositories)].concat();
        let mut survey = Self {
            began_at: now_seconds(),
            guarded_roots,
            temporary_dirs: TemporaryDirs::new(temporary_dirs, session_paths),
            keeps_repositories: spec.keeps_repositories,
            ..Self::default()
        };
        survey.scan_folders(WALK_BEFORE, full_dirs.iter()).map_err(|unvisited| {
            format!(
                "not all directories could be searched for Git repositories (such as {}), so the command did not run: \
                 operation not permitted in the sandbox",
                unvisited.display()
            )
        })?;
        // There may be more below.
        let _ = survey.scan_folders(WALK_OF_CACHES, caches.iter());
        let ancestors: BTreeSet<PathBuf> =
            roots.iter().flat_map(|root| root.ancestors().skip(1)).map(Path::to_owned).collect();
        let writable_dirs = [full_dirs, caches].concat();
        let git_path = |directory: &PathBuf| Some(directory.join(".git")).filter(|git| path_exists(git));
        let nearby = ancestors.iter().filter_map(git_path).chain(spec.repositories.iter().map(PathBuf::from));
        let (inside, outside): (Vec<_>, Vec<_>) =
            nearby.partition(|path| writable_dirs.iter().any(|directory| path.starts_with(directory)));
        inside.into_iter().for_each(|path| survey.add_repository(path));
        ancestors.iter().for_each(|directory| {
            survey.note_folder(directory, MarkerNames::probe_folder(directory), Vec::new());
        });
        let repositories = survey.repositories.keys().chain(&outside);
        let protected =
            spec.protected.iter().map(Path::new).chain(survey.autorun_files.iter().map(PathBuf::as_path));
        let targets = GitTargetFinder::new(&writable_dirs, spec.home.as_deref().map(Path::new)).find_targets(
            repositories,
            |path| survey.is_beside_session(path),
            protected,
        );
        survey.targets = targets?;
        survey
            .repositories
            .retain(|path, _| writable_dirs.iter().any(|directory| path.starts_with(directory)));
        Ok(survey)
    }

    /// Adds everything below these directories; the error is one that was not examined.
    fn scan_folders<'a>(
        &mut self,
        limits: WalkLimits,
        from: impl Iterator<Item = &'a PathBuf>,
    ) -> Result<(), PathBuf> {
        let mut walk = FolderWalk::start(limits, UnlistablePolicy::Skip);
        walk.guarded_roots.clone_from(&self.guarded_roots);
        walk.pending.extend(from.cloned());
        while let Some(directory) = walk.next_folder(None) {
            let git_paths = directory.git_names.iter().map(|name| directory.path.join(name)).collect();
            self.note_folder(&directory.path, directory.state.markers, git_paths);
            self.autorun_files.extend(directory.autorun_names.iter().map(|name| directory.path.join(name)));
            self.directories.insert(directory.path, directory.state);
        }
        let unvisited = walk.first_missed().map(Path::to_owned);
        self.unvisited.extend(walk.pending.into_iter().chain(walk.unlistable));
        unvisited.map_or(Ok(()), Err)
    }

    fn note_folder(&mut self, directory: &Path, names: MarkerNames, git_paths: Vec<PathBuf>) {
        git_paths.into_iter().for_each(|git| self.add_repository(git));
        if names.has_repository_shape() {
            match has_git_head(directory) {
                true => self.add_repository(directory.to_owned()),
                false => self.candidates.push(directory.to_owned()),
            }
        }
    }

    fn add_repository(&mut self, path: PathBuf) {
        create_git_folders(&path);
        if let Some(identity) = RepositoryIdentity::read(&path) {
            self.repositories.insert(path, identity);
        }
    }

    /// Returns what must stay read-only while the command runs. A link among it must not change its target either.
    pub(crate) fn sealed_paths(&self) -> BTreeSet<PathBuf> {
        let of_repositories = self.repositories.iter().flat_map(|(path, identity)| {
            let parts: Vec<PathBuf> = identity.parts.iter().map(|part| path.join(part)).collect();
            let is_git = path.file_name().is_some_and(is_git_name);
            match self.keeps_repositories {
                // A file refers to the real one; where nothing exists, something could be created.
                _ if identity.ctime.is_some() || parts.is_empty() => vec![path.clone()],
                true if is_git => vec![path.clone()],
                // Working trees may be in a repository of another name.
                true => parts.into_iter().chain(DATA_PARTS.map(|part| path.join(part))).collect(),
                false => parts,
            }
        });
        self.targets.sealed.iter().cloned().chain(of_repositories).collect()
    }

    /// Returns what does not exist and must not appear, where that can be prevented.
    pub(crate) fn missing_paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.targets.missing.values()
    }

    /// Sets aside what appeared since; returns a message for each, also if that failed.
    pub(crate) fn set_aside_new(&self) -> Vec<String> {
        let mut walk = FolderWalk::start(WALK_AFTER, UnlistablePolicy::GrantAccess);
        walk.guarded_roots.clone_from(&self.guarded_roots);
        let now = now_seconds();
        let in_session = |path: &Path| !self.temporary_dirs.has_beside_session(path);
        for (path, previous) in self.directories.iter().filter(|(path, _)| in_session(path)) {
            if !FolderChange::read(path, now).is_some_and(|now| previous.change.is_same(now)) {
                walk.pending.push_back(path.clone());
            }
        }
        let mut found: BTreeSet<PathBuf> = self.repositories.keys().cloned().collect();
        found.extend(self.candidates.iter().filter(|path| has_git_head(path)).cloned());
        found.retain(|path| self.is_attributable(path));
        let mut autorun_files = BTreeSet::new();
        let known = KnownFolders {
            directories: &self.directories,
            unvisited: &self.unvisited,
            temporary: &self.temporary_dirs,
        };
        while let Some(directory) = walk.next_folder(Some(&known)) {
            found.extend(directory.git_names.iter().map(|name| directory.path.join(name)));
            autorun_files.extend(directory.autorun_names.iter().map(|name| directory.path.join(name)));
            if directory.state.markers.has_repository_shape() && has_git_head(&directory.path) {
                found.insert(directory.path);
            }
        }
        let mut messages = self.set_autorun_aside(&autorun_files);
        messages.extend(found.iter().flat_map(|path| self.set_aside_new_parts(path)));
        messages.extend(self.set_aside_targets(&found));
        messages.extend(walk.first_missed().map(|path| {
            format!(
                "not all changed directories could be searched for Git repositories (such as {}): do not run Git below it, \
                 and remove what the command left there",
                path.display()
            )
        }));
        messages
    }

    /// Whether what changed at a repository is the command's work: not if another program may have created it in a
    /// temporary directory.
    fn is_attributable(&self, path: &Path) -> bool {
        let is_same_directory = |previous: &RepositoryIdentity| {
            previous.ctime.is_none()
                && RepositoryIdentity::read(path).is_some_and(|current| current.inode == previous.inode)
        };
        !self.is_beside_session(path) || self.repositories.get(path).is_some_and(is_same_directory)
    }

    fn is_beside_session(&self, repository: &Path) -> bool {
        work_tree(repository).is_some_and(|directory| self.temporary_dirs.has_beside_session(directory))
    }

    /// Sets aside what other programs would execute, the outermost of it.
    fn set_autorun_aside(&self, found: &BTreeSet<PathBuf>) -> Vec<String> {
        let is_outermost =
            |path: &&PathBuf| !path.ancestors().skip(1).any(|ancestor| found.contains(ancestor));
        let is_new = |path: &&PathBuf| {
            let was_unvisited = path.ancestors().any(|ancestor| self.unvisited.contains(ancestor));
            !self.autorun_files.contains(*path) && (!was_unvisited || is_changed_since(path, self.began_at))
        };
        let new = found.iter().filter(is_outermost).filter(is_new);
        new.map(|path| set_aside::set_file_aside(path, AutorunOwner::OtherProgram)).collect()
    }

    fn set_aside_targets(&self, found: &BTreeSet<PathBuf>) -> Vec<String> {
        let new_paths = found.iter().filter(|path| !self.repositories.contains_key(*path)).flat_map(|path| {
            let in_work_tree = |work_tree| {
                self.targets
                    .in_every_work_tree
                    .iter()
                    .map(move |below: &String| Path::new(work_tree).join(below))
            };
            work_tree(path).into_iter().flat_map(in_work_tree).collect::<Vec<_>>()
        });
        let known_paths = self.targets.missing.iter();
        let missing_path = known_paths.map(|(wanted, first_missing)| (wanted.clone(), first_missing.clone()));
        let missing_path = missing_path.chain(new_paths.map(|path| (path.clone(), path)));
        let set_aside = |(missing_path, first_missing): (PathBuf, PathBuf)| {
            let PathTrace { links, end: trace_end } = trace_path(&missing_path);
            // The target of such a link may appear later.
            let link_on_path = links.into_iter().find(|link| link.starts_with(&first_missing));
            match (link_on_path, trace_end) {
                (Some(link), _) => Some(set_aside::set_file_aside(&link, AutorunOwner::Git)),
                (None, TraceEnd::Found(path)) => Some(set_aside::set_file_aside(&path, AutorunOwner::Git)),
                (None, TraceEnd::Missing { .. }) => None,
            }
        };
        missing_path.filter_map(set_aside).collect()
    }

    fn set_aside_new_parts(&self, path: &Path) -> Vec<String> {
        let Some(current) = RepositoryIdentity::read(path) else { return Vec::new() };
        let previous = self.repositories.get(path);
        // What was not examined before may have existed.
        let was_unvisited =
            previous.is_none() && path.ancestors().any(|ancestor| self.unvisited.contains(ancestor));
        let may_be_new = |path: &Path| !was_unvisited || is_changed_since(path, self.began_at);
        if current.ctime.is_some() {
            let is_same = previous
                .is_some_and(|previous| previous.inode == current.inode && previous.ctime == current.ctime);
            return if is_same || !may_be_new(path) {
                Vec::new()
            } else {
                vec![set_aside::set_file_aside(path, AutorunOwner::Git)]
            };
        }
        let known = previous.filter(|previous| previous.ctime.is_none() && previous.inode == current.inode);
        let is_new = |part: &&&str| {
            known.is_none_or(|previous| !previous.parts.contains(*part)) && may_be_new(&path.join(part))
        };
        let new: Vec<&str> = current.parts.iter().filter(is_new).copied().collect();
        let mut messages = self.set_parts_aside(path, &new);
        let locks = LOCK_FILES.iter().map(|lock| path.join(lock));
        let is_stale = |lock: &PathBuf| path_exists(lock) && is_changed_since(lock, self.began_at);
        // A lock in a temporary directory may be in use.
        let stale_locks = locks.filter(|lock| !self.is_beside_session(path) && is_stale(lock));
        messages.extend(stale_locks.map(|lock| set_aside::set_file_aside(&lock, AutorunOwner::Git)));
        messages
    }

    /// Sets aside parts of a new repository. If the parts existed before, something else made it a repository, and
    /// that is set aside.
    fn set_parts_aside(&self, path: &Path, parts: &[&str]) -> Vec<String> {
        let former_markers = self.directories.get(path).map(|state| state.markers).unwrap_or_default();
        let was_plain_directory =
            !self.repositories.contains_key(path) && !path.file_name().is_some_and(is_git_name);
        let was_there = |part: &&&str| was_plain_directory && former_markers.contains(part);
        let (old, new): (Vec<&str>, Vec<&str>) = parts.iter().copied().partition(|part| was_there(&part));
        let mut messages: Vec<String> =
            new.iter().filter_map(|part| set_aside::set_part_aside(path, part)).collect();
        if old.iter().any(|part| !set_aside::is_harmless_part(path, part)) {
            let appeared = |marker: &&&str| {
                let path = path.join(marker);
                path_exists(&path)
                    && (!former_markers.contains(marker) || is_changed_since(&path, self.began_at))
            };
            // `HEAD` is the last of them, and the one that is changed in place.
            let marker = MARKERS.iter().rev().find(appeared).unwrap_or(&"HEAD");
            messages.push(set_aside::set_file_aside(&path.join(marker), AutorunOwner::Git));
        }
        messages
    }
}

/// Returns the directory in which Git finds a repository: that of a `.git`, or a bare repository itself.
fn work_tree(repository: &Path) -> Option<&Path> {
    let is_git = repository.file_name().is_some_and(is_git_name);
    if is_git { repository.parent() } else { Some(repository) }
}

/// Drops places that are inside another one.
fn outermost_paths(directories: &[PathBuf]) -> Vec<PathBuf> {
    let is_inner =
        |inner: &PathBuf| directories.iter().any(|outer| outer != inner && inner.starts_with(outer));
    let outer: BTreeSet<&PathBuf> = directories.iter().filter(|directory| !is_inner(directory)).collect();
    outer.into_iter().cloned().collect()
}

/// Whether a file or directory, or an entry of it, was changed since then.
fn is_changed_since(path: &Path, since: i64) -> bool {
    let is_changed = |path: &Path| path.symlink_metadata().is_ok_and(|metadata| metadata.ctime() >= since);
    let mut entries = fs::read_dir(path).into_iter().flatten().flatten().take(ENTRIES_MAX);
    is_changed(path) || entries.any(|entry| is_changed(&entry.path()))
}

impl RepositoryIdentity {
    fn read(path: &Path) -> Option<Self> {
        let metadata = path.symlink_metadata().ok()?;
        let inode = (metadata.dev(), metadata.ino());
        if !metadata.is_dir() {
            return Some(Self {
                inode,
                ctime: Some((metadata.ctime(), metadata.ctime_nsec())),
                parts: Vec::new(),
            });
        }
        let is_part = |part: &&str| path_exists(&path.join(part));
        Some(Self { inode, ctime: None, parts: PROGRAM_PARTS.into_iter().filter(is_part).collect() })
    }
}

/// Creates the directories of a `.git` that a command could otherwise create.
fn create_git_folders(repository: &Path) {
    let is_git = repository.file_name().is_some_and(is_git_name);
    if is_git && repository.join("HEAD").symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
        for part in DIRECTORY_PARTS {
            // It may exist, which is as good, or not be permitted, which is better.
            let _ = fs::create_dir(repository.join(part));
        }
    }
}
