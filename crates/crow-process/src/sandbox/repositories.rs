//! The repositories in and around the places where a command may write: what in them has Git run programs later,
//! outside. What is there is found so that it can be sealed, and what appears is set aside when the command has ended.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    aside::{self, AutorunOwner},
    marks::has_git_head,
    targets::{GitTargetFinder, GitTargets},
    trace::{PathTrace, TraceEnd, trace_path},
    walk::{
        FolderChange, FolderState, FolderWalk, KnownFolders, MARKERS, MarkerNames, UnlistablePolicy,
        WalkLimits, is_git_name, now_seconds, path_exists,
    },
};
use crate::warden::orders::LaunchSpec;

/// What of a repository names programs that Git runs, or another place to look for such names.
pub(super) const PROGRAM_PARTS: [&str; 6] =
    ["commondir", "config", "config.worktree", "hooks", "modules", "worktrees"];

/// Parts that can be made before they are missed: nothing can be held that is not there, and Git does not mind them
/// empty.
const FOLDER_PARTS: [&str; 3] = ["hooks", "modules", "worktrees"];

/// What Git makes while it changes a configuration. Left behind, it keeps everybody from doing so.
const LOCKS: [&str; 2] = ["config.lock", "config.worktree.lock"];

/// How much is looked at before a command begins. One that may write where there is more does not begin.
const BEFORE: WalkLimits = WalkLimits { n_folders: 1_000_000, time: Duration::from_secs(10) };

/// How much of what changed is looked at when it has ended.
const AFTER: WalkLimits = WalkLimits { n_folders: 10_000_000, time: Duration::from_secs(60) };

/// How much of the caches is looked at, the upper folders first. Of those in which tools keep repositories it is known
/// where they are.
const OF_CACHES: WalkLimits = WalkLimits { n_folders: 2000, time: Duration::from_millis(50) };

/// Entries of a part that are looked at one by one.
const ENTRIES_MAX: usize = 10_000;

/// What is known of the repositories before a command begins.
#[derive(Debug, Default)]
pub(crate) struct RepositorySurvey {
    /// Each folder that Git would take for a repository, or file that names one, as it was.
    repositories: BTreeMap<PathBuf, RepositoryIdentity>,
    /// Folders that would be one with another `HEAD`.
    shaped: Vec<PathBuf>,
    folders: HashMap<PathBuf, FolderState>,
    /// Folders that were not looked at: they are deep in a cache, or could not be listed.
    unseen: HashSet<PathBuf>,
    targets: GitTargets,
    /// Where what other programs run by themselves must stay as it is, and what of that is there.
    guarded: Vec<PathBuf>,
    autorun: BTreeSet<PathBuf>,
    /// When this was begun, in seconds.
    began: i64,
}

/// What a repository is, and which of its parts are there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RepositoryIdentity {
    inode: (u64, u64),
    /// Of a file or a link that names a repository, its last change.
    changed: Option<(i64, i64)>,
    parts: Vec<&'static str>,
}

impl RepositorySurvey {
    /// Looks at all places where a command may write, and at the repositories that its roots belong to. The other side
    /// is a sentence: what was not found cannot be held.
    pub(crate) fn scan_repositories(orders: &LaunchSpec) -> Result<Self, String> {
        let resolved = |paths: &[String]| -> Vec<PathBuf> {
            let there = paths.iter().filter_map(|path| fs::canonicalize(path).ok());
            there.collect::<BTreeSet<_>>().into_iter().collect()
        };
        let roots = resolved(&orders.roots);
        let whole = outermost_paths(&[roots.as_slice(), &resolved(&orders.writable)].concat());
        let caches = resolved(&orders.caches);
        let caches = caches.into_iter().filter(|cache| !whole.iter().any(|place| cache.starts_with(place)));
        let caches = outermost_paths(&caches.collect::<Vec<_>>());
        let guarded = if orders.guards_autorun { roots.clone() } else { Vec::new() };
        let mut survey = Self { began: now_seconds(), guarded, ..Self::default() };
        survey.scan_folders(BEFORE, whole.iter()).map_err(|missed| {
            format!(
                "not all folders could be searched for Git repositories, {} for one, so the command did not run: \
                 operation not permitted in the sandbox",
                missed.display()
            )
        })?;
        // There may be more below.
        let _ = survey.scan_folders(OF_CACHES, caches.iter());
        let above: BTreeSet<PathBuf> =
            roots.iter().flat_map(|root| root.ancestors().skip(1)).map(Path::to_owned).collect();
        let places = [whole, caches].concat();
        let git = |folder: &PathBuf| Some(folder.join(".git")).filter(|git| path_exists(git));
        let around = above.iter().filter_map(git).chain(orders.repositories.iter().map(PathBuf::from));
        let (inside, outside): (Vec<_>, Vec<_>) =
            around.partition(|path| places.iter().any(|place| path.starts_with(place)));
        inside.into_iter().for_each(|path| survey.add_repository(path));
        above
            .iter()
            .for_each(|folder| survey.note_folder(folder, MarkerNames::probe_folder(folder), Vec::new()));
        let found = survey.repositories.keys().chain(&outside);
        let protected =
            orders.protected.iter().map(Path::new).chain(survey.autorun.iter().map(PathBuf::as_path));
        let targets = GitTargetFinder::new(&places, orders.home.as_deref().map(Path::new))
            .find_targets(found, protected);
        survey.targets = targets?;
        survey.repositories.retain(|path, _| places.iter().any(|place| path.starts_with(place)));
        Ok(survey)
    }

    /// Takes in all below these folders; the other side is one that was not looked at.
    fn scan_folders<'a>(
        &mut self,
        bounds: WalkLimits,
        from: impl Iterator<Item = &'a PathBuf>,
    ) -> Result<(), PathBuf> {
        let mut walk = FolderWalk::start(bounds, UnlistablePolicy::PassedBy);
        walk.guarded.clone_from(&self.guarded);
        walk.open.extend(from.cloned());
        while let Some(folder) = walk.next_folder(None) {
            let gits = folder.gits.iter().map(|name| folder.path.join(name)).collect();
            self.note_folder(&folder.path, folder.seen.names, gits);
            self.autorun.extend(folder.autorun.iter().map(|name| folder.path.join(name)));
            self.folders.insert(folder.path, folder.seen);
        }
        let missed = walk.first_missed().map(Path::to_owned);
        self.unseen.extend(walk.open.into_iter().chain(walk.unlistable));
        missed.map_or(Ok(()), Err)
    }

    fn note_folder(&mut self, folder: &Path, names: MarkerNames, gits: Vec<PathBuf>) {
        gits.into_iter().for_each(|git| self.add_repository(git));
        if names.has_repository_shape() {
            match has_git_head(folder) {
                true => self.add_repository(folder.to_owned()),
                false => self.shaped.push(folder.to_owned()),
            }
        }
    }

    fn add_repository(&mut self, path: PathBuf) {
        create_git_folders(&path);
        if let Some(identity) = RepositoryIdentity::read(&path) {
            self.repositories.insert(path, identity);
        }
    }

    /// Returns what must not be written to while the command runs. A link among it must not lead elsewhere either.
    pub(crate) fn sealed_paths(&self) -> BTreeSet<PathBuf> {
        let of_repositories = self.repositories.iter().flat_map(|(path, identity)| {
            let parts: Vec<PathBuf> = identity.parts.iter().map(|part| path.join(part)).collect();
            // A file names the real one, and where nothing is there something could be made.
            if identity.changed.is_some() || parts.is_empty() { vec![path.clone()] } else { parts }
        });
        self.targets.sealed.iter().cloned().chain(of_repositories).collect()
    }

    /// Returns what is not there and must not come to be, where that can be prevented.
    pub(crate) fn missing_paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.targets.missing.values()
    }

    /// Sets aside what appeared since; returns a sentence for each thing, also when that failed.
    pub(crate) fn set_aside_new(&self) -> Vec<String> {
        let mut walk = FolderWalk::start(AFTER, UnlistablePolicy::Opened);
        walk.guarded.clone_from(&self.guarded);
        let now = now_seconds();
        for (path, before) in &self.folders {
            if !FolderChange::read(path, now).is_some_and(|now| before.change.is_same(now)) {
                walk.open.push_back(path.clone());
            }
        }
        let mut found: BTreeSet<PathBuf> = self.repositories.keys().cloned().collect();
        found.extend(self.shaped.iter().filter(|path| has_git_head(path)).cloned());
        let mut autorun = BTreeSet::new();
        let known = KnownFolders { folders: &self.folders, unseen: &self.unseen };
        while let Some(folder) = walk.next_folder(Some(&known)) {
            found.extend(folder.gits.iter().map(|name| folder.path.join(name)));
            autorun.extend(folder.autorun.iter().map(|name| folder.path.join(name)));
            if folder.seen.names.has_repository_shape() && has_git_head(&folder.path) {
                found.insert(folder.path);
            }
        }
        let mut said = self.set_autorun_aside(&autorun);
        said.extend(found.iter().flat_map(|path| self.set_aside_new_parts(path)));
        said.extend(self.set_aside_targets(&found));
        said.extend(walk.first_missed().map(|path| {
            format!(
                "not all folders that changed could be searched for Git repositories, {} for one: use no Git below it, \
                 and remove what the command left there",
                path.display()
            )
        }));
        said
    }

    /// Sets aside what other programs would run by themselves, the outermost of it.
    fn set_autorun_aside(&self, found: &BTreeSet<PathBuf>) -> Vec<String> {
        let is_outer = |path: &&PathBuf| !path.ancestors().skip(1).any(|above| found.contains(above));
        let is_new = |path: &&PathBuf| {
            let was_unseen = path.ancestors().any(|above| self.unseen.contains(above));
            !self.autorun.contains(*path) && (!was_unseen || is_changed_since(path, self.began))
        };
        let new = found.iter().filter(is_outer).filter(is_new);
        new.map(|path| aside::set_file_aside(path, AutorunOwner::Another)).collect()
    }

    fn set_aside_targets(&self, found: &BTreeSet<PathBuf>) -> Vec<String> {
        let of_new = found.iter().filter(|path| !self.repositories.contains_key(*path)).flat_map(|path| {
            let tree =
                if path.file_name().is_some_and(is_git_name) { path.parent() } else { Some(path.as_path()) };
            let of_all =
                |tree| self.targets.of_all.iter().map(move |below: &String| Path::new(tree).join(below));
            tree.into_iter().flat_map(of_all).collect::<Vec<_>>()
        });
        let of_known = self.targets.missing.iter();
        let wanted = of_known.map(|(wanted, first)| (wanted.clone(), first.clone()));
        let wanted = wanted.chain(of_new.map(|path| (path.clone(), path)));
        let set_aside = |(wanted, first): (PathBuf, PathBuf)| {
            let PathTrace { links, end } = trace_path(&wanted);
            // What such a link leads to may come to be later.
            let way = links.into_iter().find(|link| link.starts_with(&first));
            match (way, end) {
                (Some(link), _) => Some(aside::set_file_aside(&link, AutorunOwner::Git)),
                (None, TraceEnd::There(path)) => Some(aside::set_file_aside(&path, AutorunOwner::Git)),
                (None, TraceEnd::Missing { .. }) => None,
            }
        };
        wanted.filter_map(set_aside).collect()
    }

    fn set_aside_new_parts(&self, path: &Path) -> Vec<String> {
        let Some(now) = RepositoryIdentity::read(path) else { return Vec::new() };
        let before = self.repositories.get(path);
        // What nobody looked at before may have been there.
        let was_unseen = before.is_none() && path.ancestors().any(|above| self.unseen.contains(above));
        let may_be_new = |path: &Path| !was_unseen || is_changed_since(path, self.began);
        if now.changed.is_some() {
            let is_same =
                before.is_some_and(|before| before.inode == now.inode && before.changed == now.changed);
            return if is_same || !may_be_new(path) {
                Vec::new()
            } else {
                vec![aside::set_file_aside(path, AutorunOwner::Git)]
            };
        }
        let known = before.filter(|before| before.changed.is_none() && before.inode == now.inode);
        let is_new = |part: &&&str| {
            known.is_none_or(|before| !before.parts.contains(*part)) && may_be_new(&path.join(part))
        };
        let new: Vec<&str> = now.parts.iter().filter(is_new).copied().collect();
        let mut said = self.set_parts_aside(path, &new);
        let locks = LOCKS.iter().map(|lock| path.join(lock));
        let left = locks.filter(|lock| path_exists(lock) && is_changed_since(lock, self.began));
        said.extend(left.map(|lock| aside::set_file_aside(&lock, AutorunOwner::Git)));
        said
    }

    /// Sets aside parts of what is a repository now. Where they were there before it was one, something else has made
    /// it one, and that goes.
    fn set_parts_aside(&self, path: &Path, parts: &[&str]) -> Vec<String> {
        let former = self.folders.get(path).map(|seen| seen.names).unwrap_or_default();
        let is_folder_of_old =
            !self.repositories.contains_key(path) && !path.file_name().is_some_and(is_git_name);
        let was_there = |part: &&&str| is_folder_of_old && former.contains(part);
        let (old, new): (Vec<&str>, Vec<&str>) = parts.iter().copied().partition(|part| was_there(&part));
        let mut said: Vec<String> = new.iter().filter_map(|part| aside::set_part_aside(path, part)).collect();
        if old.iter().any(|part| !aside::is_harmless_part(path, part)) {
            let appeared = |marker: &&&str| {
                let path = path.join(marker);
                path_exists(&path) && (!former.contains(marker) || is_changed_since(&path, self.began))
            };
            // `HEAD` is the last of them, and the one that is changed in place.
            let marker = MARKERS.iter().rev().find(appeared).unwrap_or(&"HEAD");
            said.push(aside::set_file_aside(&path.join(marker), AutorunOwner::Git));
        }
        said
    }
}

/// Leaves out the places that lie inside another one.
fn outermost_paths(places: &[PathBuf]) -> Vec<PathBuf> {
    let is_inner = |inner: &PathBuf| places.iter().any(|outer| outer != inner && inner.starts_with(outer));
    let outer: BTreeSet<&PathBuf> = places.iter().filter(|place| !is_inner(place)).collect();
    outer.into_iter().cloned().collect()
}

/// Whether a file or folder, or something directly in it, was changed since then.
fn is_changed_since(path: &Path, then: i64) -> bool {
    let is_changed = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.ctime() >= then);
    let mut entries = fs::read_dir(path).into_iter().flatten().flatten().take(ENTRIES_MAX);
    is_changed(path) || entries.any(|entry| is_changed(&entry.path()))
}

impl RepositoryIdentity {
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
        let is_part = |part: &&str| path_exists(&path.join(part));
        Some(Self { inode, changed: None, parts: PROGRAM_PARTS.into_iter().filter(is_part).collect() })
    }
}

/// Makes the folders of a `.git` that could be made by a command instead.
fn create_git_folders(repository: &Path) {
    let is_git = repository.file_name().is_some_and(is_git_name);
    if is_git && repository.join("HEAD").symlink_metadata().is_ok_and(|found| found.is_file()) {
        for part in FOLDER_PARTS {
            // Fails when it is there, which is as good, or when nobody may make it, which is better.
            let _ = fs::create_dir(repository.join(part));
        }
    }
}
