//! What short files and names tell: a repository by its `HEAD`, where it is by a file, a program by its looks.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use nix::fcntl::OFlag;

use super::aside;

/// What files with these ends are is told by their names.
const SCRIPT_ENDS: [&str; 12] =
    ["sh", "bash", "zsh", "py", "js", "mjs", "cjs", "ts", "rb", "pl", "lua", "php"];

/// Whether a file looks like a program.
pub(super) fn is_script(path: &Path) -> bool {
    let end = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    let is_executable = || fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o111 != 0);
    SCRIPT_ENDS.contains(&end) || is_executable()
}

/// The path in a short file, behind a word.
pub(super) fn read_path_after(file: &Path, word: &str) -> Option<PathBuf> {
    let text = read_file_start(file)?;
    let path = text.trim_end_matches(['\n', '\r']).strip_prefix(word)?.trim_start_matches(' ');
    (!path.is_empty()).then(|| PathBuf::from(path))
}

/// Whether Git would take a folder's `HEAD` for one.
pub(super) fn has_git_head(folder: &Path) -> bool {
    let path = folder.join("HEAD");
    if let Ok(target) = fs::read_link(&path) {
        return target.starts_with("refs");
    }
    let Some(text) = read_file_start(&path) else { return false };
    let names_ref = text.strip_prefix("ref:").is_some_and(|name| name.trim_start().starts_with("refs/"));
    let digits = text.bytes().take_while(u8::is_ascii_hexdigit).count();
    names_ref || digits >= OBJECT_DIGITS
}

/// As many as the name of an object has at least.
const OBJECT_DIGITS: usize = 40;

/// The beginning of a regular file.
fn read_file_start(path: &Path) -> Option<String> {
    const BYTES_MAX: u64 = 4096;
    let folder = fs::canonicalize(path.parent()?).ok()?;
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
    let opened = File::from(
        aside::open_no_symlinks(nix::fcntl::AT_FDCWD, &folder.join(path.file_name()?), flags).ok()?,
    );
    let mut bytes = Vec::new();
    let is_file = opened.metadata().is_ok_and(|found| found.is_file());
    let read = if is_file { opened.take(BYTES_MAX).read_to_end(&mut bytes).ok() } else { None };
    read.map(|_| String::from_utf8_lossy(&bytes).into_owned())
}
