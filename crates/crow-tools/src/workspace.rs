//! A session's folders, where its paths lead, which files it has seen in which state, and the jobs it has.
//! Knows nothing of tools.

use std::{
    collections::{HashMap, VecDeque},
    ffi::OsString,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use crow_core::escape_hidden;
use tokio::sync::{Semaphore, watch};

use crate::{files, terminal::JobTable, tool::READERS_MAX};

/// Forgetting a file only means that it has to be read again before it is edited.
const SEEN_FILES_MAX: usize = 10_000;

/// As many as Linux follows before it says that there is a loop.
const LINKS_MAX: usize = 40;

/// As long as a path may be on Linux, and longer than elsewhere.
pub(crate) const PATH_BYTES_MAX: usize = 4096;

/// The place a session works in; one per session.
#[derive(Debug)]
pub struct Workspace {
    cwd: PathBuf,
    roots: Vec<PathBuf>,
    secret_variables: Vec<String>,
    /// What commands are told beside what they inherit.
    variables: watch::Sender<Vec<(String, String)>>,
    seen: Mutex<HashMap<PathBuf, ContentStamp>>,
    jobs: Arc<JobTable>,
    readers: Arc<Semaphore>,
    /// Why no command can be held in the client's terminals, once one could not.
    no_client_sandbox: Arc<OnceLock<String>>,
}

/// The state of a file, by its content: a new time alone is no change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContentStamp {
    n_bytes: usize,
    hash: u64,
}

impl ContentStamp {
    /// Stamps a text. How its lines end does not count: an editor shows them all alike.
    pub(crate) fn from_text(text: &str) -> Self {
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

impl Workspace {
    /// Opens a workspace. `roots` beside `cwd` may be worked in; `secret_variables` are kept from commands.
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

    /// Goes on with the jobs of another workspace of the same session. The last one that is dropped ends them.
    #[must_use]
    pub fn with_shared_jobs(self, other: &Self) -> Self {
        Self { jobs: other.jobs.clone(), no_client_sandbox: other.no_client_sandbox.clone(), ..self }
    }

    /// Why no command can be held in the client's terminals; `None` as long as none had to be that could not.
    pub fn no_client_sandbox(&self) -> Option<&str> {
        self.no_client_sandbox.get().map(String::as_str)
    }

    /// Notes that a command could not be held in the client's terminals. The first reason stays.
    pub(crate) fn record_no_client_sandbox(&self, reason: String) {
        // Two commands may find it out at the same time.
        let _ = self.no_client_sandbox.set(reason);
    }

    /// The commands that run on behind the session's calls.
    pub(crate) fn jobs(&self) -> &JobTable {
        &self.jobs
    }

    /// Threads that may read for the session at a time.
    pub(crate) fn read_permits(&self) -> Arc<Semaphore> {
        self.readers.clone()
    }

    /// Whether a command runs on behind the session's calls.
    pub fn has_running_jobs(&self) -> bool {
        self.jobs.has_running()
    }

    /// The folder that relative paths start from, as the client spells it.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The folders it may work in, resolved through links as [`crow_core::ToolAccess`] paths are; the first is `cwd`.
    pub fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// Where the repositories around its folders keep themselves, where that is not simply their `.git`: a worktree's
    /// `.git` is a file that names the place, and any `.git` may be a link.
    pub fn external_git_dirs(&self) -> Vec<PathBuf> {
        let mut git_dirs: Vec<PathBuf> =
            self.roots.iter().flat_map(|root| root.ancestors()).filter_map(git_dir_target).collect();
        // What a worktree shares with others, hooks among it, is named there.
        let shared: Vec<PathBuf> =
            git_dirs.iter().filter_map(|git_dir| read_named_path(&git_dir.join("commondir"), "")).collect();
        git_dirs.extend(shared);
        git_dirs.sort();
        git_dirs.dedup();
        git_dirs
    }

    /// Variables that commands do not get.
    pub(crate) fn secret_variables(&self) -> &[String] {
        &self.secret_variables
    }

    /// Has commands from now on find these in their environment, instead of those set before.
    pub fn set_variables(&self, variables: Vec<(String, String)>) {
        self.variables.send_if_modified(|current| {
            let is_changed = *current != variables;
            *current = variables;
            is_changed
        });
    }

    /// What commands find in their environment beside what they inherit.
    pub fn variables(&self) -> Vec<(String, String)> {
        self.variables.borrow().clone()
    }

    /// The same, for programs that run on while they change.
    pub fn subscribe_variables(&self) -> watch::Receiver<Vec<(String, String)>> {
        self.variables.subscribe()
    }

    /// Hears that a file, by its resolved path, was written for the model, which may edit it as it is now.
    pub fn record_write(&self, path: PathBuf, text: &str) {
        self.record_seen(path, ContentStamp::from_text(text));
    }

    /// Makes a path absolute and keeps the client's spelling, links and all.
    pub(crate) fn to_absolute(&self, path: &str) -> PathBuf {
        let joined = self.cwd.join(path);
        // Going up from behind a link leads elsewhere than the spelling says.
        if joined.components().any(|part| part == Component::ParentDir) {
            return resolve_links(&joined);
        }
        joined.components().collect()
    }

    /// The path that the system really arrives at, whether something is there or not.
    pub(crate) fn resolve_path(&self, path: &str) -> PathBuf {
        resolve_links(&self.cwd.join(path))
    }

    /// Tells whether a path leads into one of the folders it may work in.
    pub(crate) fn contains(&self, path: &str) -> bool {
        let path = self.resolve_path(path);
        self.roots.iter().any(|root| path.starts_with(root))
    }

    /// Spells a path for people, as one line: relative when it is inside `cwd`.
    pub(crate) fn display_path(&self, path: &str) -> String {
        let absolute = self.to_absolute(path);
        let relative = absolute.strip_prefix(&self.cwd).or_else(|_| absolute.strip_prefix(&self.roots[0]));
        match relative {
            Ok(relative) if relative.as_os_str().is_empty() => ".".into(),
            Ok(relative) => escape_hidden(&relative.to_string_lossy()),
            Err(_) => escape_hidden(&absolute.to_string_lossy()),
        }
    }

    /// Remembers the state in which a file was shown to the model or left by it.
    pub(crate) fn record_seen(&self, path: PathBuf, stamp: ContentStamp) {
        let mut seen = self.lock_seen();
        if seen.len() >= SEEN_FILES_MAX && !seen.contains_key(&path) {
            seen.clear();
        }
        seen.insert(path, stamp);
    }

    /// The state in which the model knows a file.
    pub(crate) fn seen_stamp(&self, path: &Path) -> Option<ContentStamp> {
        self.lock_seen().get(path).copied()
    }

    /// Forgets a file, which has to be read again before it is edited.
    pub(crate) fn forget_file(&self, path: &Path) {
        self.lock_seen().remove(path);
    }

    /// Spells a resolved path as the client does.
    pub(crate) fn client_path(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.roots[0]).map_or_else(|_| path.to_owned(), |relative| self.cwd.join(relative))
    }

    fn lock_seen(&self) -> MutexGuard<'_, HashMap<PathBuf, ContentStamp>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the `.git` of a folder leads, when it is not a folder there.
fn git_dir_target(dir: &Path) -> Option<PathBuf> {
    let git = dir.join(".git");
    let metadata = fs::symlink_metadata(&git).ok()?;
    if metadata.is_dir() {
        return None;
    }
    let resolved = resolve_links(&git);
    read_named_path(&resolved, "gitdir:").or(Some(resolved))
}

/// The path that a small file of one line names after `key`, relative to where the file is.
fn read_named_path(file: &Path, key: &str) -> Option<PathBuf> {
    let bytes = files::read_file(file, PATH_BYTES_MAX as u64).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let path = text.trim_end().strip_prefix(key)?.trim_start();
    Some(resolve_links(&file.parent()?.join(path)))
}

/// Follows links by hand: unlike `canonicalize` this works for what does not exist yet, and shows where a
/// link to nothing would create something.
pub fn resolve_links(path: &Path) -> PathBuf {
    let mut remaining: VecDeque<OsString> =
        path.components().map(|part| part.as_os_str().to_owned()).collect();
    let mut resolved = PathBuf::new();
    // No system opens a path as long as two of the longest, one behind the other, so nobody has to know where it leads.
    let mut n_links = if path.as_os_str().len() > 2 * PATH_BYTES_MAX { LINKS_MAX } else { 0 };
    while let Some(part) = remaining.pop_front() {
        match Path::new(&part).components().next() {
            Some(Component::ParentDir) => {
                resolved.pop();
            }
            Some(Component::CurDir) | None => {}
            Some(Component::RootDir | Component::Prefix(_)) => resolved.push(part),
            Some(Component::Normal(_)) => {
                resolved.push(part);
                // No system has a longer one, and a very long one would take very long.
                let is_too_long = resolved.as_os_str().len() > PATH_BYTES_MAX;
                let target =
                    if is_too_long || n_links >= LINKS_MAX { None } else { fs::read_link(&resolved).ok() };
                if let Some(target) = target {
                    n_links += 1;
                    resolved.pop();
                    for part in target.components().rev() {
                        remaining.push_front(part.as_os_str().to_owned());
                    }
                }
            }
        }
    }
    resolved
}

#[cfg(test)]
mod tests;
