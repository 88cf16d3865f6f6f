//! Properties of short files and names: a repository by its `HEAD`, its location by a file, a script by its looks.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use nix::fcntl::OFlag;

use super::set_aside;

/// Endings of files that are no scripts.
const SCRIPT_EXTENSIONS: [&str; 12] =
    ["sh", "bash", "zsh", "py", "js", "mjs", "cjs", "ts", "rb", "pl", "lua", "php"];

/// Whether a file looks like a program.
pub(super) fn is_script(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    let is_executable =
        || fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0);
    SCRIPT_EXTENSIONS.contains(&extension) || is_executable()
}

/// Returns the path in a short file, after a keyword.
pub(super) fn read_path_after(file: &Path, prefix: &str) -> Option<PathBuf> {
    let text = read_file_start(file)?;
    let path = text.trim_end_matches(['\n', '\r']).strip_prefix(prefix)?.trim_start_matches(' ');
    (!path.is_empty()).then(|| PathBuf::from(path))
}

/// Whether Git would accept a directory's `HEAD`.
pub(super) fn has_git_head(directory: &Path) -> bool {
    let path = directory.join("HEAD");
    if let Ok(target) = fs::read_link(&path) {
        return target.starts_with("refs");
    }
    let Some(text) = read_file_start(&path) else { return false };
    let is_ref = text.strip_prefix("ref:").is_some_and(|name| name.trim_start().starts_with("refs/"));
    let digits = text.bytes().take_while(u8::is_ascii_hexdigit).count();
    is_ref || digits >= OBJECT_DIGITS
}

/// The minimum length of an object name.
const OBJECT_DIGITS: usize = 40;

/// Reads the beginning of a regular file.
fn read_file_start(path: &Path) -> Option<String> {
    const BYTES_MAX: u64 = 4096;
    let directory = fs::canonicalize(path.parent()?).ok()?;
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
    let file = File::from(
        set_aside::open_no_symlinks(nix::fcntl::AT_FDCWD, &directory.join(path.file_name()?), flags).ok()?,
    );
    let mut bytes = Vec::new();
    let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
    let read = if is_file { file.take(BYTES_MAX).read_to_end(&mut bytes).ok() } else { None };
    read.map(|_| String::from_utf8_lossy(&bytes).into_owned())
}
