//! A session's roots, path resolution, the versions of files that it has read, and its jobs. Must not know tools.

mod directories;

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use crow_core::escape_hidden;
use crow_files::{PATH_BYTES_MAX, resolve_links};
use tokio::sync::{Semaphore, watch};

pub use self::directories::check_directories;
use crate::{terminal::JobTable, text_encoding::BOM};

/// Concurrent reads of one session; further ones wait.
pub(crate) const READERS_MAX: usize = 32;

/// A forgotten file only has to be read again before it is edited.
const SEEN_FILES_MAX: usize = 10_000;

/// The working environment of a session.
#[derive(Debug)]
pub struct Workspace {
    cwd: PathBuf,
    roots: Vec<PathBuf>,
    secret_variables: Vec<String>,
    /// Variables added to the inherited environment of commands.
    variables: watch::Sender<Vec<(String, String)>>,
    seen: Mutex<HashMap<PathBuf, ContentStamp>>,
    jobs: Arc<JobTable>,
    readers: Arc<Semaphore>,
    /// Reason why commands cannot be confined in the client's terminals, once that is known.
    no_client_sandbox: Arc<OnceLock<String>>,
}

/// The version of a file, by its content: a new time alone is no change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContentStamp {
    n_bytes: usize,
    hash: u64,
}

impl ContentStamp {
    /// Stamps a text regardless of its line endings, which an editor shows all alike, and of a byte order mark, which
    /// belongs to the encoding.
    pub(crate) fn from_text(text: &str) -> Self {
        let text = text.strip_prefix(BOM).unwrap_or(text);
        let mut hasher = DefaultHasher::new();
        let mut n_bytes = 0;
        for line in text.split('\n') {
            let line = line.strip_suffix('\r').unwrap_or(line);
            line.hash(&mut hasher);
            n_bytes += line.len() + 1;
        }
        Self { n_bytes, hash: hasher.finish() }
    }
}

/// Entries that Git needs in a directory with `HEAD`, and those that make it run programs there.
const BARE_PARTS: [&str; 8] =
    ["commondir", "config", "config.worktree", "hooks", "modules", "objects", "refs", "worktrees"];

impl Workspace {
    /// Opens a workspace with `cwd` and further `roots`; commands do not get `secret_variables`.
    pub fn new(cwd: PathBuf, roots: &[PathBuf], secret_variables: Vec<String>) -> Self {
        let mut resolved = vec![resolve_links(&cwd)];
        for root in roots.iter().map(|root| resolve_links(root)) {
            if !resolved.contains(&root) {
                resolved.push(root);
            }
        }
        Self {
            cwd,
            roots: resolved,
            secret_variables,
            variables: watch::Sender::default(),
            seen: Mutex::default(),
            jobs: Arc::default(),
            readers: Arc::new(Semaphore::new(READERS_MAX)),
            no_client_sandbox: Arc::default(),
        }
    }

    /// Shares the jobs of another workspace of the same session, and the variables of its commands. Dropping
    /// the last one ends the jobs.
    #[must_use]
    pub fn with_state_of(self, other: &Self) -> Self {
        Self {
            jobs: other.jobs.clone(),
            no_client_sandbox: other.no_client_sandbox.clone(),
            variables: other.variables.clone(),
            ..self
        }
    }

    /// Reason why commands cannot be confined in the client's terminals; `None` until one failed.
    pub fn no_client_sandbox(&self) -> Option<&str> {
        self.no_client_sandbox.get().map(String::as_str)
    }

    /// Records that a command could not be confined in the client's terminals. The first reason is kept.
    pub(crate) fn record_no_client_sandbox(&self, reason: String) {
        // Two commands may set it at the same time.
        let _ = self.no_client_sandbox.set(reason);
    }

    /// The session's jobs.
    pub(crate) fn jobs(&self) -> &JobTable {
        &self.jobs
    }

    /// Permits for the session's reader threads.
    pub(crate) fn read_permits(&self) -> Arc<Semaphore> {
        self.readers.clone()
    }

    /// Whether a job is running.
    pub fn has_running_jobs(&self) -> bool {
        self.jobs.has_running()
    }

    /// The directory for relative paths, as given by the client.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The roots, with links resolved like the paths of [`crow_core::ToolAccess`]; the first is `cwd`.
    pub fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// The Git directories of the roots that are not simply their `.git`: a worktree's `.git` is a file with a path,
    /// and any `.git` may be a link.
    pub fn external_git_dirs(&self) -> Vec<PathBuf> {
        let mut git_dirs: Vec<PathBuf> =
            self.roots.iter().flat_map(|root| root.ancestors()).filter_map(git_dir_target).collect();
        // The file gives the directory that a worktree shares with others, including hooks.
        let shared: Vec<PathBuf> =
            git_dirs.iter().filter_map(|git_dir| read_named_path(&git_dir.join("commondir"), "")).collect();
        git_dirs.extend(shared);
        git_dirs.sort();
        git_dirs.dedup();
        git_dirs
    }

    /// The parts of repositories without a working tree around the roots, and what would make a directory with `HEAD`
    /// one.
    pub fn bare_repository_parts(&self) -> Vec<PathBuf> {
        // Git looks for `.git` first, and stops there.
        let is_unclaimed = |directory: &&Path| fs::symlink_metadata(directory.join(".git")).is_err();
        let around_roots = self.roots.iter().flat_map(|root| root.ancestors().take_while(is_unclaimed));
        let directories: BTreeSet<&Path> = around_roots.collect();
        let with_head = directories.into_iter().filter(|directory| has_head(directory));
        with_head.flat_map(|directory| BARE_PARTS.iter().map(|part| directory.join(part))).collect()
    }

    /// Variables that commands do not get.
    pub(crate) fn secret_variables(&self) -> &[String] {
        &self.secret_variables
    }

    /// Replaces the variables that are added to the environment of commands.
    pub fn set_variables(&self, variables: Vec<(String, String)>) {
        self.variables.send_if_modified(|current| {
            let is_changed = *current != variables;
            *current = variables;
            is_changed
        });
    }

    /// The variables that are added to the environment of commands.
    pub fn variables(&self) -> Vec<(String, String)> {
        self.variables.borrow().clone()
    }

    /// A receiver of the same, for long-running programs.
    pub fn subscribe_variables(&self) -> watch::Receiver<Vec<(String, String)>> {
        self.variables.subscribe()
    }

    /// Records that a file, by its resolved path, was written for the model, which may edit that version.
    pub fn record_write(&self, path: PathBuf, text: &str) {
        self.record_seen(path, ContentStamp::from_text(text));
    }

    /// Returns an absolute path as the client would give it, with links.
    pub(crate) fn to_absolute(&self, path: &str) -> PathBuf {
        let joined = self.cwd.join(path);
        // `..` behind a link leads elsewhere than it looks.
        if joined.components().any(|part| part == Component::ParentDir) {
            return resolve_links(&joined);
        }
        joined.components().collect()
    }

    /// The path with links resolved, whether or not a file exists there.
    pub(crate) fn resolve_path(&self, path: &str) -> PathBuf {
        resolve_links(&self.cwd.join(path))
    }

    /// Whether a path leads into one of the roots.
    pub(crate) fn contains(&self, path: &str) -> bool {
        let path = self.resolve_path(path);
        self.roots.iter().any(|root| path.starts_with(root))
    }

    /// Renders a path for users, on one line: relative if it is inside `cwd`.
    pub(crate) fn display_path(&self, path: &str) -> String {
        let absolute = self.to_absolute(path);
        let relative = absolute.strip_prefix(&self.cwd).or_else(|_| absolute.strip_prefix(&self.roots[0]));
        match relative {
            Ok(relative) if relative.as_os_str().is_empty() => ".".into(),
            Ok(relative) => escape_hidden(&relative.to_string_lossy()),
            Err(_) => escape_hidden(&absolute.to_string_lossy()),
        }
    }

    /// Records the version of a file that the model has read or written.
    pub(crate) fn record_seen(&self, path: PathBuf, stamp: ContentStamp) {
        let mut seen = self.lock_seen();
        if seen.len() >= SEEN_FILES_MAX && !seen.contains_key(&path) {
            seen.clear();
        }
        seen.insert(path, stamp);
    }

    /// The version of a file that the model knows.
    pub(crate) fn seen_stamp(&self, path: &Path) -> Option<ContentStamp> {
        self.lock_seen().get(path).copied()
    }

    /// Forgets a file, which has to be read again before it is edited.
    pub(crate) fn forget_file(&self, path: &Path) {
        self.lock_seen().remove(path);
    }

    /// Returns a resolved path as the client gives it.
    pub(crate) fn client_path(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.roots[0]).map_or_else(|_| path.to_owned(), |relative| self.cwd.join(relative))
    }

    fn lock_seen(&self) -> MutexGuard<'_, HashMap<PathBuf, ContentStamp>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The target of a directory's `.git`, if that is not a directory.
fn git_dir_target(dir: &Path) -> Option<PathBuf> {
    let git = dir.join(".git");
    let metadata = fs::symlink_metadata(&git).ok()?;
    if metadata.is_dir() {
        return None;
    }
    let resolved = resolve_links(&git);
    read_named_path(&resolved, "gitdir:").or(Some(resolved))
}

fn has_head(directory: &Path) -> bool {
    fs::symlink_metadata(directory.join("HEAD")).is_ok_and(|metadata| !metadata.is_dir())
}

/// Reads a path after `key` from a small file of one line, relative to that file.
fn read_named_path(file: &Path, key: &str) -> Option<PathBuf> {
    let bytes = crow_files::read_file(file, PATH_BYTES_MAX as u64).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let path = text.trim_end().strip_prefix(key)?.trim_start();
    Some(resolve_links(&file.parent()?.join(path)))
}

#[cfg(test)]
mod tests;
