//! Serves files inside the directory of a session. Blocks. Links are resolved once, and the resolved path is checked and
//! opened.

use std::path::{Component, Path, PathBuf};

use crow_acp::ClientCallError;
use crow_files::{FileReplacement, ReadError, read_file, read_snapshot, replace_file, resolve_links};

/// Larger files are not text that an agent reads as a whole.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The access of an agent to files inside the directory of a session through this process. A program on this machine can
/// open files itself; this is for agents that leave that to their client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAccess {
    None,
    Read,
    /// Everything but the internals of a Git repository, which run commands later.
    ReadWrite,
}

/// Reads lines of a file; `line` counts from 1.
pub(crate) fn read_lines(
    cwd: &Path,
    path: &Path,
    line: Option<u32>,
    limit: Option<u32>,
) -> Result<String, ClientCallError> {
    let resolved = resolve_inside(cwd, path)?;
    let bytes = read_file(&resolved, FILE_BYTES_MAX).map_err(|error| read_error(path, &error))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| ClientCallError::Failed(format!("{} is not UTF-8 text", path.display())))?;
    if line.is_none() && limit.is_none() {
        return Ok(text);
    }
    let n_skipped = line.unwrap_or(1).saturating_sub(1);
    let lines = text.split_inclusive('\n').skip(to_usize(n_skipped));
    Ok(lines.take(limit.map_or(usize::MAX, to_usize)).collect())
}

/// Replaces or creates a file.
pub(crate) fn write_text(cwd: &Path, path: &Path, text: &str) -> Result<(), ClientCallError> {
    let resolved = resolve_inside(cwd, path)?;
    let is_git = |part: Component<'_>| part.as_os_str().eq_ignore_ascii_case(".git");
    if resolved.components().any(is_git) {
        return Err(ClientCallError::Failed(format!("{} is inside of .git", path.display())));
    }
    let snapshot = read_snapshot(&resolved).map_err(|error| read_error(path, &error))?;
    let replacement = FileReplacement { bytes: text.as_bytes(), mode: None, expected: snapshot.fingerprint };
    replace_file(&resolved, replacement)
        .map_err(|error| ClientCallError::Failed(format!("{} was not written: {error}", path.display())))
}

/// Resolves the links of a path, which must be inside the directory.
pub(crate) fn resolve_inside(cwd: &Path, path: &Path) -> Result<PathBuf, ClientCallError> {
    if !path.is_absolute() {
        return Err(ClientCallError::Failed(format!("{} is not an absolute path", path.display())));
    }
    let resolved = resolve_links(path);
    if !resolved.starts_with(resolve_links(cwd)) {
        let reason =
            format!("{} is outside of {}, the directory of the session", path.display(), cwd.display());
        return Err(ClientCallError::Failed(reason));
    }
    Ok(resolved)
}

fn read_error(path: &Path, error: &ReadError) -> ClientCallError {
    let reason = format!("{}: {error}", path.display());
    match error {
        ReadError::Missing => ClientCallError::NotFound(reason),
        ReadError::Directory | ReadError::NotAFile | ReadError::TooLarge { .. } | ReadError::System(_) => {
            ClientCallError::Failed(reason)
        }
    }
}

fn to_usize(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
