//! What Git's configuration leads to in the places where a command may write: read by ourselves, for Git run on a hostile configuration is what this is against.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    ffi::OsStr,
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
};

use crow_core::{GitMention, git_mentions, hook_manager_files, is_autorun_folder, script_mentions};
use nix::fcntl::OFlag;

use super::{
    aside,
    marks::{is_script, read_path_after},
    trace::{PathTrace, TraceEnd, trace_path},
    walk::{is_git_name, path_exists},
};

/// The longest configuration that is read.
const CONFIG_BYTES_MAX: u64 = 1024 * 1024;

/// The longest script that is searched for others, and how far.
const SCRIPT_BYTES_MAX: u64 = 64 * 1024;
pub(super) const SCRIPT_DEPTH_MAX: usize = 3;

/// What is read at all, and how deep configurations may include one another, as in Git.
const FILES_MAX: usize = 20_000;
const INCLUDE_DEPTH_MAX: usize = 10;

/// What is looked at in a folder of hooks.
const HOOKS_MAX: usize = 1000;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct GitTargets {
    /// Must not be changed; links must not lead elsewhere.
    pub(super) sealed: BTreeSet<PathBuf>,
    /// What is looked for and not there, with the uppermost folder that is missing.
    pub(super) missing: BTreeMap<PathBuf, PathBuf>,
    /// What is looked for in the work tree of every repository.
    pub(super) of_all: BTreeSet<String>,
}

/// Looks for what may not be changed in these places.
pub(super) struct GitTargetFinder<'a> {
    places: &'a [PathBuf],
    pub(super) home: Option<&'a Path>,
    pub(super) found: GitTargets,
    read: HashSet<(PathBuf, PathBuf)>,
    problem: Option<String>,
}

/// From where the paths of a text are meant.
struct PathBases {
    /// Work trees.
    trees: Vec<PathBuf>,
    /// Of the text itself, as spelled and as found.
    own: Vec<PathBuf>,
}

impl<'a> GitTargetFinder<'a> {
    pub(super) fn new(places: &'a [PathBuf], home: Option<&'a Path>) -> Self {
        Self { places, home, found: GitTargets::default(), read: HashSet::new(), problem: None }
    }

    /// Finds all that these repositories, the person's own configuration and their shells lead to; the other side says
    /// why that is not known.
    pub(super) fn find_targets<'b>(
        mut self,
        repositories: impl Iterator<Item = &'b PathBuf>,
        protected: impl Iterator<Item = &'b Path>,
    ) -> Result<GitTargets, String> {
        protected.for_each(|path| self.protect_path(path));
        let own = self.user_config_mentions();
        for (mention, own) in &own {
            self.add_mention(mention, &PathBases { trees: Vec::new(), own: own.clone() }, 0);
        }
        for path in repositories {
            self.add_repository(path, &own);
        }
        self.add_startup_files();
        match self.problem {
            None => Ok(self.found),
            Some(why) => {
                Err(format!("{why}, so the command did not run: operation not permitted in the sandbox"))
            }
        }
    }

    /// Looks at a `.git`, of whatever kind, or at a folder in the shape of a repository.
    fn add_repository(&mut self, path: &Path, own: &[(GitMention, Vec<PathBuf>)]) {
        let is_git = path.file_name().is_some_and(is_git_name);
        let (Some(place), Some(parent)) = (self.repository_folder(path), path.parent()) else { return };
        let mut trees = vec![if is_git { parent.to_owned() } else { path.to_owned() }];
        let common = read_path_after(&place.join("commondir"), "").map(|path| place.join(path));
        let folders: BTreeSet<PathBuf> = [place].into_iter().chain(common).collect();
        let mut mentions = Vec::new();
        for folder in &folders {
            for name in ["config", "config.worktree"] {
                let path = folder.join(name);
                if path_exists(&path) {
                    self.read_config(&path, 0, &mut mentions);
                }
            }
            for name in ["modules", "worktrees", "commondir"] {
                self.seal_existing(&folder.join(name));
            }
        }
        for (mention, own) in &mentions {
            if let GitMention::WorkTree(tree) = mention {
                trees.extend(own.iter().filter_map(|base| self.resolve_path(tree, base)));
            }
        }
        let hooks: Vec<PathBuf> = folders.iter().map(|folder| folder.join("hooks")).collect();
        let mut has_hooks = false;
        for hooks in hooks {
            self.seal_existing(&hooks);
            has_hooks |= self.add_hooks(&hooks, &trees);
        }
        let n_before = self.found.sealed.len() + self.found.missing.len();
        for (mention, own) in mentions.iter().chain(own) {
            let bases = PathBases { trees: trees.clone(), own: own.clone() };
            self.add_mention(mention, &bases, 0);
        }
        if has_hooks || self.found.sealed.len() + self.found.missing.len() > n_before {
            for (tree, name) in
                trees.iter().flat_map(|tree| hook_manager_files().iter().map(move |name| (tree, name)))
            {
                let _ = self.seal_path(&tree.join(name));
            }
        }
    }

    /// The folder of a repository, where a file or a link names it.
    fn repository_folder(&mut self, path: &Path) -> Option<PathBuf> {
        let found = path.symlink_metadata().ok()?;
        if found.is_dir() {
            return Some(path.to_owned());
        }
        self.seal_existing(path);
        if found.is_symlink() && path.is_dir() {
            return fs::canonicalize(path).ok();
        }
        let named = path.parent()?.join(read_path_after(path, "gitdir:")?);
        let place = fs::canonicalize(named).ok()?;
        for part in super::repositories::PROGRAM_PARTS {
            self.seal_existing(&place.join(part));
        }
        Some(place)
    }

    /// Reads a configuration and those it includes; what they lead to is meant from their folders.
    pub(super) fn read_config(
        &mut self,
        path: &Path,
        depth: usize,
        mentions: &mut Vec<(GitMention, Vec<PathBuf>)>,
    ) {
        let Some(file) = self.seal_path(path) else { return };
        if depth > INCLUDE_DEPTH_MAX {
            self.record_problem(&file, "it is included too deep");
            return;
        }
        let Some(text) = self.read_text(&file, path, CONFIG_BYTES_MAX) else { return };
        let folders = [path.parent(), file.parent()];
        let own: Vec<PathBuf> = folders.into_iter().flatten().map(Path::to_owned).collect();
        match git_mentions(&text) {
            Ok(found) => {
                for mention in found {
                    if let GitMention::Include(path) = &mention {
                        let included: BTreeSet<PathBuf> =
                            own.iter().filter_map(|base| self.resolve_path(path, base)).collect();
                        if included.is_empty() {
                            self.record_problem(&file, "it includes what cannot be found");
                        }
                        for path in included {
                            self.read_config(&path, depth + 1, mentions);
                        }
                    }
                    mentions.push((mention, own.clone()));
                }
            }
            Err(bad) => self.record_problem(&file, &bad.to_string()),
        }
    }

    fn add_mention(&mut self, mention: &GitMention, bases: &PathBases, depth: usize) {
        let (path, is_folder, is_sure) = match mention {
            GitMention::Include(_) | GitMention::WorkTree(_) => return,
            GitMention::Folder(path) => (path, true, true),
            GitMention::Program(path) | GitMention::Script(path) => (path, false, true),
            GitMention::Perhaps(path) => (path, false, false),
        };
        if path.contains(char::REPLACEMENT_CHARACTER) && is_sure {
            self.record_problem(Path::new(path), "its name is no text");
        }
        let all: BTreeSet<PathBuf> =
            bases.trees.iter().chain(&bases.own).filter_map(|base| self.resolve_path(path, base)).collect();
        for path in all {
            let PathTrace { links, end } = trace_path(&path);
            let end = match end {
                TraceEnd::There(end) => end,
                TraceEnd::Missing { .. } if is_sure => {
                    let _ = self.seal_path(&path);
                    continue;
                }
                TraceEnd::Missing { .. } => continue,
            };
            if is_folder {
                let _ = self.seal_path(&path);
                self.add_hooks(&end, &bases.trees);
            } else if end.is_file()
                && (is_sure || is_script(&end))
                && (self.is_inside(&end) || links.iter().any(|link| self.is_inside(link)))
            {
                let _ = self.seal_path(&path);
                self.read_script(&path, &end, &bases.trees, depth);
            }
        }
    }

    /// Looks at what lies in a folder of hooks, and where its links lead; tells whether there is anything.
    fn add_hooks(&mut self, folder: &Path, trees: &[PathBuf]) -> bool {
        let mut open = vec![folder.to_owned()];
        let (mut has_hooks, mut n_left) = (false, HOOKS_MAX);
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                if n_left == 0 {
                    self.record_problem(&folder, "it has too many hooks");
                    return true;
                }
                n_left -= 1;
                let path = entry.path();
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => open.push(path),
                    Ok(_) if path.extension() == Some(OsStr::new("sample")) => {}
                    Ok(_) | Err(_) => {
                        has_hooks = true;
                        if let Some(end) = self.seal_path(&path) {
                            self.read_script(&path, &end, trees, 0);
                        }
                    }
                }
            }
        }
        has_hooks
    }

    /// Looks for other programs in one; it may look for them where it is.
    pub(super) fn read_script(&mut self, path: &Path, end: &Path, trees: &[PathBuf], depth: usize) {
        let is_text = end.is_file() && end.metadata().is_ok_and(|found| found.len() <= SCRIPT_BYTES_MAX);
        if depth >= SCRIPT_DEPTH_MAX || !is_text {
            return;
        }
        let base = trees.first().map_or(path, PathBuf::as_path);
        let Some(text) = self.read_text(end, base, SCRIPT_BYTES_MAX) else { return };
        let own = [path.parent(), end.parent()].into_iter().flatten().map(Path::to_owned).collect();
        let bases = PathBases { trees: trees.to_owned(), own };
        for mention in script_mentions(&text) {
            self.add_mention(&mention, &bases, depth + 1);
        }
    }

    /// What a path in a text means from a folder.
    fn resolve_path(&mut self, path: &str, base: &Path) -> Option<PathBuf> {
        if let Some((user, below)) = path.strip_prefix('~').and_then(|path| path.split_once('/'))
            && (user.is_empty() || self.home.is_some_and(|home| home.ends_with(user)))
        {
            return self.home.map(|home| home.join(below));
        }
        // Of somebody else, or where Git itself was installed.
        if path.starts_with('~') || path.starts_with("%(") {
            return Some(PathBuf::from("/"));
        }
        Some(base.join(path))
    }

    /// Has a path held, even if a root lies in it.
    fn protect_path(&mut self, path: &Path) {
        let PathTrace { links, end } = trace_path(path);
        self.found.sealed.extend(links);
        match end {
            TraceEnd::There(end) => drop(self.found.sealed.insert(end)),
            TraceEnd::Missing { first, wanted } if self.is_inside(&wanted) => {
                self.found.missing.insert(wanted, first);
            }
            TraceEnd::Missing { .. } => {}
        }
    }

    /// The same where it is only of interest when it is there.
    fn seal_existing(&mut self, path: &Path) {
        if path_exists(path) {
            let _ = self.seal_path(path);
        }
    }

    /// Has a path and all links on the way to it held; returns where it ends, when something is there.
    pub(super) fn seal_path(&mut self, path: &Path) -> Option<PathBuf> {
        let PathTrace { links, end } = trace_path(path);
        let links: Vec<PathBuf> = links.into_iter().filter(|link| self.is_inside(link)).collect();
        self.found.sealed.extend(links);
        match end {
            TraceEnd::There(end) => {
                if self.places.iter().any(|place| place.starts_with(&end)) {
                    self.record_problem(&end, "programs are looked for in all of it");
                } else if self.is_inside(&end) {
                    let end = self.uppermost_hook_folder(&end);
                    self.found.sealed.insert(end);
                }
                Some(end)
            }
            TraceEnd::Missing { first, wanted } => {
                if self.is_inside(&wanted) {
                    self.found.missing.insert(wanted, first);
                }
                None
            }
        }
    }

    /// Of a folder that a program keeps its hooks in, all of it: they run one another.
    fn uppermost_hook_folder(&self, path: &Path) -> PathBuf {
        let is_theirs = |above: &&Path| {
            let name = above.file_name().and_then(OsStr::to_str);
            name.is_some_and(is_autorun_folder) && self.is_inside(above)
        };
        path.ancestors().filter(is_theirs).last().unwrap_or(path).to_owned()
    }

    fn is_inside(&self, path: &Path) -> bool {
        self.places.iter().any(|place| path != place && path.starts_with(place))
    }

    /// Reads a file, once for each folder that its paths are meant from.
    fn read_text(&mut self, file: &Path, base: &Path, bytes_max: u64) -> Option<String> {
        if !self.read.insert((file.to_owned(), base.to_owned())) {
            return None;
        }
        if self.read.len() > FILES_MAX {
            self.record_problem(file, "too many files lead to it");
            return None;
        }
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        let opened = File::from(aside::open_no_symlinks(nix::fcntl::AT_FDCWD, file, flags).ok()?);
        let mut bytes = Vec::new();
        if !opened.metadata().is_ok_and(|found| found.is_file()) {
            return None;
        }
        if opened.take(bytes_max + 1).read_to_end(&mut bytes).is_err() || bytes.len() as u64 > bytes_max {
            self.record_problem(file, "it cannot be read whole");
        }
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn record_problem(&mut self, path: &Path, why: &str) {
        let problem = || format!("what Git would run is not known from {} ({why})", path.display());
        self.problem.get_or_insert_with(problem);
    }
}
