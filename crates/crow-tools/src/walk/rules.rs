//! What a project wants left out of searches: its ignore files, read within bounds. A file there may be a link to a
//! device, a pipe, or many gigabytes, so no library opens one.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use crow_core::PathGlob;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::{files::is_missing, nofollow, workspace::resolve_links};

/// Files that name what to leave out, the one that counts most first. Those of Git count within one repository.
const FILES: [&str; 4] = [".rgignore", ".ignore", ".gitignore", ".git/info/exclude"];

/// Where those of Git begin.
const FIRST_OF_GIT: usize = 2;

/// Bytes of one file; the longest that people use have a quarter of it.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// Rules of one file, each of which takes memory.
const FILE_RULES_MAX: usize = 2000;

/// Bytes of all files of a walk: to compile them takes far longer than to read them.
const BYTES_MAX: usize = 1024 * 1024;

/// What the ignore files of a folder say, and those of the folders above it.
pub(super) struct IgnoreRules {
    above: Option<Arc<IgnoreRules>>,
    by_file: [Option<Gitignore>; FILES.len()],
    /// Whether a repository begins here: what its own files do not say, those above it do not say either.
    has_git: bool,
}

/// Reads the ignore files of one walk.
pub(super) struct IgnoreRulesReader {
    /// Links lead nowhere out of this folder.
    repository: PathBuf,
    /// The person's own, for all repositories.
    global: Gitignore,
    n_bytes: AtomicUsize,
    n_unread: AtomicUsize,
}

impl IgnoreRulesReader {
    pub(super) fn new(start: &Path) -> Self {
        let repository = start.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(start);
        let (global, _) = GitignoreBuilder::new(repository).build_global();
        let repository = repository.to_owned();
        Self { repository, global, n_bytes: AtomicUsize::new(0), n_unread: AtomicUsize::new(0) }
    }

    /// Reads what a folder wants left out, below what those above it do.
    pub(super) fn read_rules(
        &self,
        folder: &nofollow::DirHandle,
        path: &Path,
        above: Option<Arc<IgnoreRules>>,
    ) -> Option<Arc<IgnoreRules>> {
        let has_git = folder.entry_metadata(".git".as_ref()).is_ok();
        let by_file = FILES.map(|name| {
            let is_there = has_git || !name.starts_with(".git/");
            is_there.then(|| self.read_ignore_file(folder, path, name)).flatten()
        });
        if !has_git && by_file.iter().all(Option::is_none) {
            return above;
        }
        Some(Arc::new(IgnoreRules { above, by_file, has_git }))
    }

    /// Whether a path is left out by these rules or by the person's own.
    pub(super) fn is_ignored(&self, rules: Option<&IgnoreRules>, path: &Path, is_folder: bool) -> bool {
        for kind in 0..FILES.len() {
            let mut next = rules;
            while let Some(rules) = next {
                let found = rules.by_file[kind].as_ref().map(|file| file.matched(path, is_folder));
                if let Some(found) = found.filter(|found| !found.is_none()) {
                    return found.is_ignore();
                }
                let is_end = rules.has_git && kind >= FIRST_OF_GIT;
                next = rules.above.as_deref().filter(|_| !is_end);
            }
        }
        self.global.matched(path, is_folder).is_ignore()
    }

    pub(super) fn n_unread(&self) -> usize {
        self.n_unread.load(Relaxed)
    }

    fn read_ignore_file(&self, folder: &nofollow::DirHandle, path: &Path, name: &str) -> Option<Gitignore> {
        let whole = match self.open_ignore_file(folder, path, name) {
            Ok(file) => read_bounded(file),
            Err(error) if is_missing(&error) => return None,
            Err(error) => Err(error),
        };
        let Ok((bytes, is_whole)) = whole else {
            self.n_unread.fetch_add(1, Relaxed);
            return None;
        };
        if self.n_bytes.fetch_add(bytes.len(), Relaxed) > BYTES_MAX {
            self.n_unread.fetch_add(1, Relaxed);
            return None;
        }
        let (compiled, is_compiled) = compile_rules(path, &bytes);
        self.n_unread.fetch_add(usize::from(!is_whole || !is_compiled), Relaxed);
        compiled
    }

    /// Opens a file: looked at before, because opening a device may do something.
    fn open_ignore_file(&self, folder: &nofollow::DirHandle, path: &Path, name: &str) -> io::Result<File> {
        let refused = || io::Error::from(io::ErrorKind::Unsupported);
        // `.git` may be a link itself.
        if !name.contains('/') {
            match folder.entry_metadata(name.as_ref()) {
                Ok(found) if found.is_file() => return folder.open_entry(name.as_ref()),
                Ok(_) => return Err(refused()),
                Err(error) if is_missing(&error) => return Err(error),
                // A link, most of the time.
                Err(_) => {}
            }
        }
        let target = resolve_links(&path.join(name));
        let found = nofollow::read_metadata(&target)?;
        if !target.starts_with(&self.repository) {
            // Some tools put `.git` elsewhere and a link in its place.
            return Err(if name.contains('/') { io::ErrorKind::NotFound.into() } else { refused() });
        }
        if !found.is_file() {
            return Err(refused());
        }
        nofollow::open_file(&target)
    }
}

/// Reads as much of a file as counts, and says whether that is all of it.
fn read_bounded(file: File) -> io::Result<(Vec<u8>, bool)> {
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    let is_whole = bytes.len() as u64 <= FILE_BYTES_MAX;
    if !is_whole {
        // Half a rule is another rule.
        let end = bytes.iter().rposition(|&byte| byte == b'\n').unwrap_or(0);
        bytes.truncate(end);
    }
    Ok((bytes, is_whole))
}

/// Compiles the rules of a file, and says whether all of them. A line that is no pattern is no reason not to search.
fn compile_rules(folder: &Path, bytes: &[u8]) -> (Option<Gitignore>, bool) {
    let text = String::from_utf8_lossy(bytes);
    let mut builder = GitignoreBuilder::new(folder);
    let (mut n_rules, mut is_whole) = (0, true);
    for line in text.strip_prefix('\u{feff}').unwrap_or(&text).lines() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        n_rules += 1;
        if n_rules > FILE_RULES_MAX || PathGlob::check_cost(line).is_err() {
            is_whole = false;
            continue;
        }
        let _ = builder.add_line(None, line);
    }
    match builder.build() {
        Ok(rules) => (Some(rules).filter(|rules| !rules.is_empty()), is_whole),
        Err(_) => (None, false),
    }
}
