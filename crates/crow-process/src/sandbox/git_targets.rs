//! The files that Git's configuration leads to in the places where a command may write. Parsed here, because running
//! Git on a hostile configuration is what this protects against.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    ffi::OsStr,
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
};

use crow_core::{GitMention, git_mentions, hook_manager_files, is_autorun_dir, script_mentions};
use nix::fcntl::OFlag;

use super::{
    file_kinds::{is_script, read_path_after},
    path_trace::{PathTrace, TraceEnd, path_exists, trace_path},
    repository_names::{PROGRAM_PARTS, is_git_name},
    set_aside,
};

/// The longest configuration that is read.
const CONFIG_BYTES_MAX: u64 = 1024 * 1024;

/// The longest script that is searched for others, and the depth.
const SCRIPT_BYTES_MAX: u64 = 64 * 1024;
pub(super) const SCRIPT_DEPTH_MAX: usize = 3;

/// The number of files read, and the include depth, as in Git.
const FILES_MAX: usize = 20_000;
const INCLUDE_DEPTH_MAX: usize = 10;

/// Entries examined of a hooks directory.
const HOOKS_MAX: usize = 1000;

/// The result.
#[derive(Debug, Default)]
pub(super) struct GitTargets {
    /// Must not be changed; links must not change their target.
    pub(super) sealed: BTreeSet<PathBuf>,
    /// Paths that are looked for and missing, with the uppermost missing directory.
    pub(super) missing: BTreeMap<PathBuf, PathBuf>,
    /// Paths that are looked for in the work tree of every repository.
    pub(super) in_every_work_tree: BTreeSet<String>,
}

/// Finds what must not be changed in these places.
pub(super) struct GitTargetFinder<'a> {
    writable_dirs: &'a [PathBuf],
    pub(super) home: Option<&'a Path>,
    pub(super) targets: GitTargets,
    read_files: HashSet<(PathBuf, PathBuf)>,
    problem: Option<String>,
}

/// The directories that the paths of a text are relative to.
struct PathBases {
    /// Work trees.
    work_trees: Vec<PathBuf>,
    /// The directory of the text itself, as written and as resolved.
    own_dirs: Vec<PathBuf>,
}

impl<'a> GitTargetFinder<'a> {
    pub(super) fn new(writable_dirs: &'a [PathBuf], home: Option<&'a Path>) -> Self {
        Self {
            writable_dirs,
            home,
            targets: GitTargets::default(),
            read_files: HashSet::new(),
            problem: None,
        }
    }

    /// Finds everything that these repositories, the user's own configuration and shells lead to; the error says why
    /// that is unknown. Of repositories apart from the session, anyone could leave one behind that keeps all commands
    /// from running, so they give no error.
    pub(super) fn find_targets<'b>(
        mut self,
        repositories: impl Iterator<Item = &'b PathBuf>,
        is_apart: impl Fn(&Path) -> bool,
        protected: impl Iterator<Item = &'b Path>,
    ) -> Result<GitTargets, String> {
        protected.for_each(|path| self.protect_path(path));
        let own_dirs = self.user_config_mentions();
        for (mention, own_dirs) in &own_dirs {
            self.add_mention(mention, &PathBases { work_trees: Vec::new(), own_dirs: own_dirs.clone() }, 0);
        }
        for path in repositories {
            let problem = self.problem.clone();
            self.add_repository(path, &own_dirs);
            if is_apart(path) {
                self.problem = problem;
            }
        }
        self.add_startup_files();
        match self.problem {
            None => Ok(self.targets),
            Some(reason) => {
                Err(format!("{reason}, so the command did not run: operation not permitted in the sandbox"))
            }
        }
    }

    /// Examines a `.git` of any kind, or a directory with the shape of a repository.
    fn add_repository(&mut self, path: &Path, user_mentions: &[(GitMention, Vec<PathBuf>)]) {
        let is_git = path.file_name().is_some_and(is_git_name);
        let (Some(git_dir), Some(parent)) = (self.repository_folder(path), path.parent()) else { return };
        let mut work_trees = vec![if is_git { parent.to_owned() } else { path.to_owned() }];
        let common_dir = read_path_after(&git_dir.join("commondir"), "").map(|path| git_dir.join(path));
        let directories: BTreeSet<PathBuf> = [git_dir].into_iter().chain(common_dir).collect();
        let mut mentions = Vec::new();
        for directory in &directories {
            for name in ["config", "config.worktree"] {
                let path = directory.join(name);
                if path_exists(&path) {
                    self.read_config(&path, 0, &mut mentions);
                }
            }
            for name in ["modules", "worktrees", "commondir"] {
                self.seal_existing(&directory.join(name));
            }
        }
        for (mention, own_dirs) in &mentions {
            if let GitMention::WorkTree(tree) = mention {
                work_trees.extend(own_dirs.iter().filter_map(|base| self.resolve_path(tree, base)));
            }
        }
        let hooks_dirs: Vec<PathBuf> = directories.iter().map(|directory| directory.join("hooks")).collect();
        let mut has_hooks = false;
        for hooks_dirs in hooks_dirs {
            self.seal_existing(&hooks_dirs);
            has_hooks |= self.add_hooks(&hooks_dirs, &work_trees);
        }
        let n_before = self.targets.sealed.len() + self.targets.missing.len();
        for (mention, own_dirs) in mentions.iter().chain(user_mentions) {
            let bases = PathBases { work_trees: work_trees.clone(), own_dirs: own_dirs.clone() };
            self.add_mention(mention, &bases, 0);
        }
        if has_hooks || self.targets.sealed.len() + self.targets.missing.len() > n_before {
            for (tree, name) in
                work_trees.iter().flat_map(|tree| hook_manager_files().iter().map(move |name| (tree, name)))
            {
                let _ = self.seal_path(&tree.join(name));
            }
        }
    }

    /// The directory of a repository, if a file or a link refers to one.
    fn repository_folder(&mut self, path: &Path) -> Option<PathBuf> {
        let metadata = path.symlink_metadata().ok()?;
        if metadata.is_dir() {
            return Some(path.to_owned());
        }
        self.seal_existing(path);
        if metadata.is_symlink() && path.is_dir() {
            return fs::canonicalize(path).ok();
        }
        let target = path.parent()?.join(read_path_after(path, "gitdir:")?);
        let git_dir = fs::canonicalize(target).ok()?;
        for part in PROGRAM_PARTS {
            self.seal_existing(&git_dir.join(part));
        }
        Some(git_dir)
    }

    /// Reads a configuration and those it includes; paths are relative to their directories.
    pub(super) fn read_config(
        &mut self,
        path: &Path,
        depth: usize,
        mentions: &mut Vec<(GitMention, Vec<PathBuf>)>,
    ) {
        let Some(file) = self.seal_path(path) else { return };
        if depth > INCLUDE_DEPTH_MAX {
            self.record_problem(&file, "it is included too deeply");
            return;
        }
        let Some(text) = self.read_text(&file, path, CONFIG_BYTES_MAX) else { return };
        let directories = [path.parent(), file.parent()];
        let own_dirs: Vec<PathBuf> = directories.into_iter().flatten().map(Path::to_owned).collect();
        match git_mentions(&text) {
            Ok(found) => {
                for mention in found {
                    if let GitMention::Include(path) = &mention {
                        let included: BTreeSet<PathBuf> =
                            own_dirs.iter().filter_map(|base| self.resolve_path(path, base)).collect();
                        if included.is_empty() {
                            self.record_problem(&file, "it includes a file that cannot be found");
                        }
                        for path in included {
                            self.read_config(&path, depth + 1, mentions);
                        }
                    }
                    mentions.push((mention, own_dirs.clone()));
                }
            }
            Err(error) => self.record_problem(&file, &error.to_string()),
        }
    }

    fn add_mention(&mut self, mention: &GitMention, bases: &PathBases, depth: usize) {
        let (path, is_directory, is_certain) = match mention {
            GitMention::Include(_) | GitMention::WorkTree(_) => return,
            GitMention::Directory(path) => (path, true, true),
            GitMention::Program(path) | GitMention::Script(path) => (path, false, true),
            GitMention::PossiblePath(path) => (path, false, false),
        };
        if path.contains(char::REPLACEMENT_CHARACTER) && is_certain {
            self.record_problem(Path::new(path), "its name is not text");
        }
        let paths: BTreeSet<PathBuf> = bases
            .work_trees
            .iter()
            .chain(&bases.own_dirs)
            .filter_map(|base| self.resolve_path(path, base))
            .collect();
        for path in paths {
            let PathTrace { links, end: target } = trace_path(&path);
            let target = match target {
                TraceEnd::Found(target) => target,
                TraceEnd::Missing { .. } if is_certain => {
                    let _ = self.seal_path(&path);
                    continue;
                }
                TraceEnd::Missing { .. } => continue,
            };
            if is_directory {
                let _ = self.seal_path(&path);
                self.add_hooks(&target, &bases.work_trees);
            } else if target.is_file()
                && (is_certain || is_script(&target))
                && (self.is_inside(&target) || links.iter().any(|link| self.is_inside(link)))
            {
                let _ = self.seal_path(&path);
                self.read_script(&path, &target, &bases.work_trees, depth);
            }
        }
    }

    /// Examines the entries of a hooks directory and the targets of its links; returns whether there are any.
    fn add_hooks(&mut self, directory: &Path, work_trees: &[PathBuf]) -> bool {
        let mut pending = vec![directory.to_owned()];
        let (mut has_hooks, mut n_hooks_left) = (false, HOOKS_MAX);
        while let Some(directory) = pending.pop() {
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                if n_hooks_left == 0 {
                    self.record_problem(&directory, "it has too many hooks");
                    return true;
                }
                n_hooks_left -= 1;
                let path = entry.path();
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => pending.push(path),
                    Ok(_) if path.extension() == Some(OsStr::new("sample")) => {}
                    Ok(_) | Err(_) => {
                        has_hooks = true;
                        if let Some(target) = self.seal_path(&path) {
                            self.read_script(&path, &target, work_trees, 0);
                        }
                    }
                }
            }
        }
        has_hooks
    }

    /// Searches a script for other programs, which it may look for next to itself.
    pub(super) fn read_script(&mut self, path: &Path, target: &Path, work_trees: &[PathBuf], depth: usize) {
        let is_text =
            target.is_file() && target.metadata().is_ok_and(|metadata| metadata.len() <= SCRIPT_BYTES_MAX);
        if depth >= SCRIPT_DEPTH_MAX || !is_text {
            return;
        }
        let base = work_trees.first().map_or(path, PathBuf::as_path);
        let Some(text) = self.read_text(target, base, SCRIPT_BYTES_MAX) else { return };
        let own_dirs = [path.parent(), target.parent()].into_iter().flatten().map(Path::to_owned).collect();
        let bases = PathBases { work_trees: work_trees.to_owned(), own_dirs };
        for mention in script_mentions(&text) {
            self.add_mention(&mention, &bases, depth + 1);
        }
    }

    /// Resolves a path in a text relative to a directory.
    fn resolve_path(&mut self, path: &str, base: &Path) -> Option<PathBuf> {
        if let Some((user, rest)) = path.strip_prefix('~').and_then(|path| path.split_once('/'))
            && (user.is_empty() || self.home.is_some_and(|home| home.ends_with(user)))
        {
            return self.home.map(|home| home.join(rest));
        }
        // Belongs to another user, or is where Git itself is installed.
        if path.starts_with('~') || path.starts_with("%(") {
            return Some(PathBuf::from("/"));
        }
        Some(base.join(path))
    }

    /// Protects a path, even if a root is inside it.
    fn protect_path(&mut self, path: &Path) {
        let PathTrace { links, end: target } = trace_path(path);
        self.targets.sealed.extend(links);
        match target {
            TraceEnd::Found(target) => drop(self.targets.sealed.insert(target)),
            TraceEnd::Missing { first_missing, full_path } if self.is_inside(&full_path) => {
                self.targets.missing.insert(full_path, first_missing);
            }
            TraceEnd::Missing { .. } => {}
        }
    }

    /// Does the same for a path that matters only if it exists.
    fn seal_existing(&mut self, path: &Path) {
        if path_exists(path) {
            let _ = self.seal_path(path);
        }
    }

    /// Protects a path and all links on the way to it; returns its end, if it exists.
    pub(super) fn seal_path(&mut self, path: &Path) -> Option<PathBuf> {
        let PathTrace { links, end: target } = trace_path(path);
        let links: Vec<PathBuf> = links.into_iter().filter(|link| self.is_inside(link)).collect();
        self.targets.sealed.extend(links);
        match target {
            TraceEnd::Found(target) => {
                if self.writable_dirs.iter().any(|directory| directory.starts_with(&target)) {
                    self.record_problem(&target, "programs are searched for in all of it");
                } else if self.is_inside(&target) {
                    let target = self.uppermost_hook_folder(&target);
                    self.targets.sealed.insert(target);
                }
                Some(target)
            }
            TraceEnd::Missing { first_missing, full_path } => {
                if self.is_inside(&full_path) {
                    self.targets.missing.insert(full_path, first_missing);
                }
                None
            }
        }
    }

    /// For a directory of a hook manager, the whole directory: its hooks execute one another.
    fn uppermost_hook_folder(&self, path: &Path) -> PathBuf {
        let is_autorun = |above: &&Path| {
            let name = above.file_name().and_then(OsStr::to_str);
            name.is_some_and(is_autorun_dir) && self.is_inside(above)
        };
        path.ancestors().filter(is_autorun).last().unwrap_or(path).to_owned()
    }

    fn is_inside(&self, path: &Path) -> bool {
        self.writable_dirs.iter().any(|directory| path != directory && path.starts_with(directory))
    }

    /// Reads a file, once for each directory that its paths are relative to.
    fn read_text(&mut self, file: &Path, base: &Path, bytes_max: u64) -> Option<String> {
        if !self.read_files.insert((file.to_owned(), base.to_owned())) {
            return None;
        }
        if self.read_files.len() > FILES_MAX {
            self.record_problem(file, "too many files lead to it");
            return None;
        }
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        let reader = File::from(set_aside::open_no_symlinks(nix::fcntl::AT_FDCWD, file, flags).ok()?);
        let mut bytes = Vec::new();
        if !reader.metadata().is_ok_and(|metadata| metadata.is_file()) {
            return None;
        }
        if reader.take(bytes_max + 1).read_to_end(&mut bytes).is_err() || bytes.len() as u64 > bytes_max {
            self.record_problem(file, "it cannot be read completely");
        }
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn record_problem(&mut self, path: &Path, reason: &str) {
        let problem = || {
            format!("the programs that Git would run cannot be determined from {} ({reason})", path.display())
        };
        self.problem.get_or_insert_with(problem);
    }
}
