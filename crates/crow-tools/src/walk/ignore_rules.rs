//! A project's ignore files, read with limits. Such a file may be a link to a device, a pipe, or gigabytes long, so no
//! library opens it.

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
use crow_files::{is_missing, nofollow, resolve_links};
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// Ignore files, in order of precedence. Git's own apply within one repository.
const IGNORE_FILES: [&str; 4] = [".rgignore", ".ignore", ".gitignore", ".git/info/exclude"];

/// Index of the first of Git's own.
const FIRST_GIT_FILE: usize = 2;

/// Size of one file; the longest in use have a quarter of it.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// Rules of one file, each of which takes memory.
const FILE_RULES_MAX: usize = 2000;

/// Total size of a walk's ignore files: compiling them takes far longer than reading them.
const BYTES_MAX: usize = 1024 * 1024;

/// The rules of a directory and of its parents.
pub(super) struct IgnoreRules {
    parent: Option<Arc<IgnoreRules>>,
    rules_by_file: [Option<Gitignore>; IGNORE_FILES.len()],
    /// Whether this is the root of a repository: Git's rules above it do not apply.
    has_git: bool,
}

/// Reads the ignore files of one walk.
pub(super) struct IgnoreRulesReader {
    /// Links out of this directory are not followed.
    repository: PathBuf,
    /// The user's rules for all repositories.
    global_rules: Gitignore,
    n_bytes: AtomicUsize,
    n_unread: AtomicUsize,
}

impl IgnoreRulesReader {
    pub(super) fn new(start: &Path) -> Self {
        let repository = start.ancestors().find(|dir| dir.join(".git").exists()).unwrap_or(start);
        let (global_rules, _) = GitignoreBuilder::new(repository).build_global();
        let repository = repository.to_owned();
        Self { repository, global_rules, n_bytes: AtomicUsize::new(0), n_unread: AtomicUsize::new(0) }
    }

    /// Reads the rules of a directory, which take precedence over its parents'.
    pub(super) fn read_rules(
        &self,
        dir: &nofollow::DirHandle,
        path: &Path,
        parent: Option<Arc<IgnoreRules>>,
    ) -> Option<Arc<IgnoreRules>> {
        let has_git = dir.entry_metadata(".git".as_ref()).is_ok();
        let rules_by_file = IGNORE_FILES.map(|name| {
            let applies = has_git || !name.starts_with(".git/");
            applies.then(|| self.read_ignore_file(dir, path, name)).flatten()
        });
        if !has_git && rules_by_file.iter().all(Option::is_none) {
            return parent;
        }
        Some(Arc::new(IgnoreRules { parent, rules_by_file, has_git }))
    }

    /// Whether a path is ignored by these rules or by the user's own.
    pub(super) fn is_ignored(&self, rules: Option<&IgnoreRules>, path: &Path, is_dir: bool) -> bool {
        for kind in 0..IGNORE_FILES.len() {
            let mut next = rules;
            while let Some(rules) = next {
                let matched = rules.rules_by_file[kind].as_ref().map(|file| file.matched(path, is_dir));
                if let Some(matched) = matched.filter(|found| !found.is_none()) {
                    return matched.is_ignore();
                }
                let is_repository_root = rules.has_git && kind >= FIRST_GIT_FILE;
                next = rules.parent.as_deref().filter(|_| !is_repository_root);
            }
        }
        self.global_rules.matched(path, is_dir).is_ignore()
    }

    pub(super) fn n_unread(&self) -> usize {
        self.n_unread.load(Relaxed)
    }

    fn read_ignore_file(&self, dir: &nofollow::DirHandle, path: &Path, name: &str) -> Option<Gitignore> {
        let content = match self.open_ignore_file(dir, path, name) {
            Ok(file) => read_bounded(file),
            Err(error) if is_missing(&error) => return None,
            Err(error) => Err(error),
        };
        let Ok(BoundedContent { bytes, is_complete }) = content else {
            self.n_unread.fetch_add(1, Relaxed);
            return None;
        };
        if self.n_bytes.fetch_add(bytes.len(), Relaxed) > BYTES_MAX {
            self.n_unread.fetch_add(1, Relaxed);
            return None;
        }
        let compiled = compile_rules(path, &bytes);
        self.n_unread.fetch_add(usize::from(!is_complete || !compiled.is_complete), Relaxed);
        compiled.rules
    }

    /// Opens a file after checking its type: opening a device may have an effect.
    fn open_ignore_file(&self, dir: &nofollow::DirHandle, path: &Path, name: &str) -> io::Result<File> {
        let unsupported = || io::Error::from(io::ErrorKind::Unsupported);
        // `.git` may be a link itself.
        if !name.contains('/') {
            match dir.entry_metadata(name.as_ref()) {
                Ok(metadata) if metadata.is_file() => return dir.open_entry(name.as_ref()),
                Ok(_) => return Err(unsupported()),
                Err(error) if is_missing(&error) => return Err(error),
                // Usually a link.
                Err(_) => {}
            }
        }
        let target = resolve_links(&path.join(name));
        let metadata = nofollow::read_metadata(&target)?;
        if !target.starts_with(&self.repository) {
            // Some tools store `.git` elsewhere and leave a link to it.
            return Err(if name.contains('/') { io::ErrorKind::NotFound.into() } else { unsupported() });
        }
        if !metadata.is_file() {
            return Err(unsupported());
        }
        nofollow::open_file(&target)
    }
}

/// The beginning of a file, or all of it.
struct BoundedContent {
    bytes: Vec<u8>,
    is_complete: bool,
}

/// The rules of one file; not complete if a line was left out.
struct CompiledRules {
    rules: Option<Gitignore>,
    is_complete: bool,
}

/// Reads a file up to the limit, and up to the end of a line.
fn read_bounded(file: File) -> io::Result<BoundedContent> {
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    let is_complete = bytes.len() as u64 <= FILE_BYTES_MAX;
    if !is_complete {
        // A truncated rule is another rule.
        let end = bytes.iter().rposition(|&byte| byte == b'\n').unwrap_or(0);
        bytes.truncate(end);
    }
    Ok(BoundedContent { bytes, is_complete })
}

/// Compiles the rules of a file. Invalid lines are skipped.
fn compile_rules(dir: &Path, bytes: &[u8]) -> CompiledRules {
    let text = String::from_utf8_lossy(bytes);
    let mut builder = GitignoreBuilder::new(dir);
    let (mut n_rules, mut is_complete) = (0, true);
    for line in text.strip_prefix('\u{feff}').unwrap_or(&text).lines() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        n_rules += 1;
        if n_rules > FILE_RULES_MAX || PathGlob::check_cost(line).is_err() {
            is_complete = false;
            continue;
        }
        let _ = builder.add_line(None, line);
    }
    match builder.build() {
        Ok(rules) => CompiledRules { rules: Some(rules).filter(|rules| !rules.is_empty()), is_complete },
        Err(_) => CompiledRules { rules: None, is_complete: false },
    }
}
