//! Recognizes a shell command that applies a patch: some models call `apply_patch` as a program.

use super::parse::{BEGIN, PATH_MARKS};
use super::wrapper::heredoc_word;

/// A shell command that begins with `apply_patch`, which is no program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellPatch {
    /// It does nothing else, and this is its patch, with paths relative to the working directory of the command.
    Patch(String),
    /// It does something else as well, or its patch is not in a here-document.
    Other,
}

/// Returns the patch of a shell command: a here-document of `apply_patch`, alone or after one `cd`. `None` for other
/// commands.
pub fn shell_patch(command: &str) -> Option<ShellPatch> {
    let (first, rest) = command.trim().split_once('\n').unwrap_or((command.trim(), ""));
    let (directory, call) = split_cd(first.trim());
    let redirection = call.strip_prefix("apply_patch").or_else(|| call.strip_prefix("applypatch"))?;
    if !redirection.is_empty() && !redirection.starts_with([' ', '\t', '<']) {
        return None;
    }
    let patch = heredoc_word(redirection).and_then(|word| read_heredoc(rest, word));
    Some(match patch.filter(|patch| patch.contains(BEGIN)) {
        Some(patch) => {
            ShellPatch::Patch(directory.map_or_else(|| patch.to_owned(), |dir| move_paths(patch, dir)))
        }
        None => ShellPatch::Other,
    })
}

/// Splits `cd DIR && …`, if the directory is written out.
fn split_cd(line: &str) -> (Option<&str>, &str) {
    let is_plain = |dir: &str| {
        !dir.is_empty() && dir.chars().all(|c| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-'))
    };
    let split = line.strip_prefix("cd ").and_then(|rest| rest.split_once("&&"));
    match split.map(|(dir, call)| (dir.trim(), call.trim())) {
        Some((dir, call)) if is_plain(dir) => (Some(dir), call),
        Some(_) | None => (None, line),
    }
}

/// Returns a here-document, if nothing follows it.
fn read_heredoc<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let (inner, last) = text.trim_end().rsplit_once('\n')?;
    let is_whole = last.trim() == word && !inner.lines().any(|line| line == word);
    is_whole.then_some(inner)
}

/// Puts a directory before the relative paths of a patch.
fn move_paths(patch: &str, directory: &str) -> String {
    let move_line = |line: &str| {
        let path = PATH_MARKS.iter().find_map(|mark| Some((*mark, line.strip_prefix(mark)?.trim())));
        match path {
            Some((mark, path)) if !path.is_empty() && !path.starts_with('/') => {
                format!("{mark} {}/{path}", directory.trim_end_matches('/'))
            }
            Some(_) | None => line.to_owned(),
        }
    };
    patch.split('\n').map(move_line).collect::<Vec<_>>().join("\n")
}
