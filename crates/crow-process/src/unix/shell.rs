//! Locations of shells and other programs.

use std::path::{Path, PathBuf};

/// Exists on every system with a shell.
const POSIX_SHELL: &str = "/bin/sh";

/// The text that a shell expands to its working directory, as the system writes it.
pub const SHELL_DIRECTORY: &str = "$PWD";

/// Directories searched after `PATH`.
const FALLBACK_DIRECTORIES: [&str; 3] = ["/usr/bin", "/bin", "/usr/local/bin"];

/// Returns the path of `sh`.
pub fn posix_shell() -> String {
    POSIX_SHELL.to_owned()
}

/// Finds a program by name in a list of directories as `PATH` has it, and in those of the system. Relative directories
/// are skipped: they may belong to a repository.
pub fn find_program(name: &str, search_path: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return None;
    }
    let directories = search_path.split(':').chain(FALLBACK_DIRECTORIES).map(Path::new);
    let absolute = directories.filter(|directory| directory.is_absolute());
    absolute.map(|directory| directory.join(name)).find(|path| crow_files::is_program(path))
}
