//! Path checks: inside the roots, protected, and secret.

use std::path::{Component, Path, PathBuf};

use super::policy::{FileLookup, SessionRoots};
use crate::shell::{KnownExtent, ShellWord};

/// The target of a word that is read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WordTarget {
    /// A device that stores nothing.
    Device,
    /// A path, with links resolved.
    Path(String),
    /// Unknown; the text is the known part.
    Unknown(String),
}

/// The working directory of a line, and the resolution of paths.
#[derive(Clone, Copy)]
pub(super) struct PathResolver<'a> {
    /// `None` if the line changes the directory first.
    pub(super) cwd: Option<&'a str>,
    pub(super) files: &'a dyn FileLookup,
}

impl PathResolver<'_> {
    /// Resolves the target of a word.
    pub(super) fn resolve_word(&self, word: &ShellWord) -> WordTarget {
        let text = word.text.as_str();
        let unknown = || WordTarget::Unknown(text.to_owned());
        match word.extent {
            KnownExtent::Full => {}
            KnownExtent::Home | KnownExtent::Prefix | KnownExtent::Unknown => return unknown(),
        }
        if ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero"].contains(&text) {
            return WordTarget::Device;
        }
        if cfg!(windows) && (text.starts_with('/') || text.contains([':', '\\'])) {
            // The shell has other absolute paths than the system: `/c/Users` is `C:\Users`.
            return unknown();
        }
        let path = match self.cwd {
            _ if Path::new(text).is_absolute() => PathBuf::from(text),
            Some(cwd) if !text.is_empty() => Path::new(cwd).join(text),
            _ => return unknown(),
        };
        WordTarget::Path(self.files.resolve_links(&path).display().to_string())
    }
}

/// Whether reading a path is free.
pub(super) fn is_readable(path: &str, roots: &SessionRoots) -> bool {
    let is_work = is_inside(path, &roots.work) && !is_secret(path, roots) && !holds_protected(path, roots);
    // Readable directories may be inside the configuration; keys in them stay secret.
    is_work || (is_inside(path, &roots.readable) && !is_key_path(path))
}

/// Whether a search from this path would include protected paths.
pub(super) fn holds_protected(path: &str, roots: &SessionRoots) -> bool {
    let folded = fold_path(path);
    roots.protected.iter().any(|protected| self::fold_path(protected).starts_with(&folded))
}

/// Whether a path is inside a root, by whole components: `/a/bc` is not inside `/a/b`.
pub(super) fn is_inside(path: &str, roots: &[String]) -> bool {
    let path = Path::new(path);
    roots.iter().any(|root| path.starts_with(root))
}

/// The same with folded names; may include more than intended.
fn is_inside_folded(path: &str, roots: &[String]) -> bool {
    let path = fold_path(path);
    roots.iter().any(|root| path.starts_with(fold_path(root)))
}

/// Whether every change of a path asks: secrets, and files that run later.
pub(super) fn is_protected(path: &str, roots: &SessionRoots, files: &dyn FileLookup) -> bool {
    is_secret(path, roots)
        || is_git(path)
        || is_inside_folded(path, &roots.repository)
        || is_bare_git_internal(path, files)
}

/// Entries of a Git directory that make Git run programs.
pub(super) const GIT_INTERNALS: &[&str] =
    &["config", "config.worktree", "hooks", "modules", "worktrees", "commondir"];

/// Whether a path makes Git run programs in a repository without a working tree.
fn is_bare_git_internal(path: &str, files: &dyn FileLookup) -> bool {
    let path = Path::new(path);
    let is_internal = |entry: &Path| {
        let name = fold_name(&entry.file_name().unwrap_or_default().to_string_lossy());
        GIT_INTERNALS.contains(&name.as_str())
            && entry.parent().is_some_and(|above| files.has_git_head(above))
    };
    path.is_absolute() && path.ancestors().any(is_internal)
}

/// Whether a path is in a Git directory, whose hooks run later.
pub(super) fn is_git(path: &str) -> bool {
    // The second is the short name of the first on Windows.
    folded_names(path).any(|part| part == ".git" || part == "git~1")
}

/// Whether a file may make its directory a Git directory: Git looks for `HEAD` where there is no `.git`. As a word of a
/// command it usually names a commit.
pub(super) fn is_git_head(path: &str) -> bool {
    // Elsewhere, `head` is a usual name.
    let ignores_case = cfg!(any(windows, target_os = "macos"));
    let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
    name == "HEAD" || (ignores_case && fold_name(&name) == "head")
}

/// Whether even reading a path asks: keys, and the configuration with keys.
pub(super) fn is_secret(path: &str, roots: &SessionRoots) -> bool {
    is_inside_folded(path, &roots.protected) || is_below_home(path, roots) || is_key_path(path)
}

/// Whether a path that begins with `~/` is in a protected directory.
fn is_below_home(path: &str, roots: &SessionRoots) -> bool {
    let Some(below) = path.strip_prefix("~/") else { return false };
    let below = normalize_path(&fold_path(below));
    let ends_in = |protected: &String, above: &Path| {
        !above.as_os_str().is_empty() && fold_path(protected).ends_with(above)
    };
    below.ancestors().any(|suffix| roots.protected.iter().any(|protected| ends_in(protected, suffix)))
}

/// Resolves `..` by name alone, as a shell does.
pub(super) fn normalize_path(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(normalized.pop()),
            Component::CurDir => {}
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => normalized.push(part),
        }
    }
    normalized
}

/// Whether the known start of a word is the start of a protected path.
pub(super) fn may_begin_protected(
    word: &ShellWord,
    resolver: &PathResolver<'_>,
    roots: &SessionRoots,
) -> bool {
    let last = word.text.rsplit('/').next().unwrap_or_default();
    let start = resolver.cwd.map_or_else(
        || word.text.clone(),
        |cwd| normalize_path(&Path::new(cwd).join(&word.text)).display().to_string(),
    );
    !last.is_empty() && roots.protected.iter().any(|protected| protected.starts_with(&start))
}

/// Whether a path is a key file, by its usual name.
pub fn is_key_path(path: &str) -> bool {
    let mut parts = folded_names(path).peekable();
    while let Some(part) = parts.next() {
        let next = parts.peek().map(String::as_str);
        if [".ssh", ".gnupg"].contains(&part.as_str()) || (part == ".aws" && next == Some("credentials")) {
            return true;
        }
        if next.is_none() && is_key_name(&part) {
            return true;
        }
    }
    false
}

fn is_key_name(name: &str) -> bool {
    let is_example = [".example", ".sample", ".template", ".dist"].iter().any(|end| name.ends_with(end));
    let is_env = name == ".env" || (name.starts_with(".env.") && !is_example);
    let ssh = name.strip_suffix("_sk").unwrap_or(name);
    let is_ssh = ["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"].contains(&ssh);
    is_env || is_ssh || name == ".netrc" || name == "_netrc" || name.ends_with(".pem")
}

/// Returns the folded components of a path.
pub(super) fn folded_names(path: &str) -> impl Iterator<Item = String> {
    let names = Path::new(path).components().filter(|part| matches!(part, Component::Normal(_)));
    names.map(|part| fold_name(&part.as_os_str().to_string_lossy()))
}

/// Returns a path with folded components.
fn fold_path(path: &str) -> PathBuf {
    let parts = Path::new(path).components().map(|part| match part {
        Component::Normal(name) => fold_name(&name.to_string_lossy()).into(),
        Component::RootDir | Component::Prefix(_) | Component::CurDir | Component::ParentDir => {
            part.as_os_str().to_owned()
        }
    });
    parts.collect()
}

/// Folds names that some file system considers equal: Windows and macOS disks ignore case, trailing dots and spaces
/// and invisible characters, and open streams after a colon.
pub(super) fn fold_name(name: &str) -> String {
    let folded = if name.is_ascii() {
        name.to_ascii_lowercase()
    } else {
        let visible = name.chars().filter(|&c| !is_invisible(c));
        visible.flat_map(char::to_lowercase).map(|c| if c == 'ſ' { 's' } else { c }).collect()
    };
    let stem = folded.find(':').filter(|&at| at > 0).map_or(folded.as_str(), |at| &folded[..at]);
    let trimmed = stem.trim_end_matches(['.', ' ']);
    if trimmed.is_empty() { stem.to_owned() } else { trimmed.to_owned() }
}

/// Characters that macOS file systems ignore in names.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}
