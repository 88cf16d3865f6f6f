//! Which paths are inside, and which are protected wherever they are.

use std::path::{Component, Path, PathBuf};

use super::SessionRoots;
use crate::shell::{KnownExtent, ShellWord};

/// Where a command writes or reads through a word of its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WordTarget {
    /// A device that keeps nothing.
    Nowhere,
    /// A place, resolved through links.
    At(String),
    /// Somewhere; the text is what is known of it.
    Unknown(String),
}

/// Where a command line begins, and how paths are resolved from there.
#[derive(Clone, Copy)]
pub(super) struct PathResolver<'a> {
    /// `None` when the line goes somewhere else first.
    pub(super) cwd: Option<&'a str>,
    pub(super) resolve: &'a dyn Fn(&Path) -> PathBuf,
}

impl PathResolver<'_> {
    /// Finds what a word names.
    pub(super) fn resolve_word(&self, word: &ShellWord) -> WordTarget {
        let text = word.text.as_str();
        let unknown = || WordTarget::Unknown(text.to_owned());
        match word.extent {
            KnownExtent::Whole => {}
            KnownExtent::Home | KnownExtent::Begins | KnownExtent::Splits => return unknown(),
        }
        if ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero"].contains(&text) {
            return WordTarget::Nowhere;
        }
        let path = match self.cwd {
            _ if Path::new(text).is_absolute() => PathBuf::from(text),
            Some(cwd) if !text.is_empty() => Path::new(cwd).join(text),
            _ => return unknown(),
        };
        WordTarget::At((self.resolve)(&path).display().to_string())
    }
}

/// Tells whether reading a path is free.
pub(super) fn is_readable(path: &str, roots: &SessionRoots) -> bool {
    let is_work = is_inside(path, &roots.work) && !is_secret(path, roots) && !holds_protected(path, roots);
    // What is laid out to be read lies in the configuration; a key there is nothing that it speaks of.
    is_work || (is_inside(path, &roots.readable) && !is_key_path(path))
}

/// Whether a search that begins here would look into what is protected.
pub(super) fn holds_protected(path: &str, roots: &SessionRoots) -> bool {
    let folded = fold_path(path);
    roots.protected.iter().any(|protected| self::fold_path(protected).starts_with(&folded))
}

/// Compares whole path components, so that `/a/bc` is not inside `/a/b`.
pub(super) fn is_inside(path: &str, roots: &[String]) -> bool {
    let path = Path::new(path);
    roots.iter().any(|root| path.starts_with(root))
}

/// The same where a name that only looks different may be the same name: more than is meant is inside then.
fn is_inside_folded(path: &str, roots: &[String]) -> bool {
    let path = fold_path(path);
    roots.iter().any(|root| path.starts_with(fold_path(root)))
}

/// Tells what asks whenever it would be changed: what is secret, and what runs later on someone else's command.
pub(super) fn is_protected(path: &str, roots: &SessionRoots) -> bool {
    is_secret(path, roots) || is_git(path) || is_inside_folded(path, &roots.repository)
}

/// `.git` holds hooks that run later, on someone else's command.
pub(super) fn is_git(path: &str) -> bool {
    // The second is the short name that Windows gives to the first.
    folded_names(path).any(|part| part == ".git" || part == "git~1")
}

/// Tells what asks even to be read: keys, and the configuration that holds some.
pub(super) fn is_secret(path: &str, roots: &SessionRoots) -> bool {
    is_inside_folded(path, &roots.protected) || is_below_home(path, roots) || is_key_path(path)
}

/// Finds a protected folder in a path whose home folder is written `~`.
fn is_below_home(path: &str, roots: &SessionRoots) -> bool {
    let Some(below) = path.strip_prefix("~/") else { return false };
    let below = normalize_path(&fold_path(below));
    let ends_in = |protected: &String, above: &Path| {
        !above.as_os_str().is_empty() && fold_path(protected).ends_with(above)
    };
    below.ancestors().any(|above| roots.protected.iter().any(|protected| ends_in(protected, above)))
}

/// Takes `..` back by the names alone, as a shell does.
pub(super) fn normalize_path(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => plain.push(part),
        }
    }
    plain
}

/// Whether the known beginning of a word is how the path of a protected folder begins.
pub(super) fn may_begin_protected(word: &ShellWord, place: &PathResolver<'_>, roots: &SessionRoots) -> bool {
    let last = word.text.rsplit('/').next().unwrap_or_default();
    let start = place.cwd.map_or_else(
        || word.text.clone(),
        |cwd| normalize_path(&Path::new(cwd).join(&word.text)).display().to_string(),
    );
    !last.is_empty() && roots.protected.iter().any(|protected| protected.starts_with(&start))
}

/// Recognises files that hold keys by their usual names.
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

/// Lists the names in a path, folded.
pub(super) fn folded_names(path: &str) -> impl Iterator<Item = String> {
    let names = Path::new(path).components().filter(|part| matches!(part, Component::Normal(_)));
    names.map(|part| fold_name(&part.as_os_str().to_string_lossy()))
}

/// A path with its names folded.
fn fold_path(path: &str) -> PathBuf {
    let parts = Path::new(path).components().map(|part| match part {
        Component::Normal(name) => fold_name(&name.to_string_lossy()).into(),
        Component::RootDir | Component::Prefix(_) | Component::CurDir | Component::ParentDir => {
            part.as_os_str().to_owned()
        }
    });
    parts.collect()
}

/// Makes one of all names that some file system takes for the same: a disk from Windows or a Mac does not tell upper
/// from lower case, leaves out dots and spaces at the end and marks that nobody sees, and opens streams behind a colon.
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

/// Marks that the file system of a Mac leaves out when it compares names.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}
