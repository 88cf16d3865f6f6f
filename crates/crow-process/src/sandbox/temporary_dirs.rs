//! The temporary directories, in which other programs work as well.

use std::path::{Path, PathBuf};

/// The writable directories that a command shares with other programs.
#[derive(Debug, Default)]
pub(super) struct TemporaryDirs {
    directories: Vec<PathBuf>,
    /// The session's directories and repositories, which may be among them.
    session_paths: Vec<PathBuf>,
}

impl TemporaryDirs {
    /// Creates the set from resolved paths.
    pub(super) fn new(directories: Vec<PathBuf>, session_paths: Vec<PathBuf>) -> Self {
        Self { directories, session_paths }
    }

    /// Whether a directory is below a temporary one and apart from the session: what is new in it may be the work of
    /// another program, such as the tests of another project. A temporary directory itself is not, because a
    /// repository there would be that of every directory below, and no program creates one.
    pub(super) fn has_beside_session(&self, directory: &Path) -> bool {
        let is_temporary = self.directories.iter().any(|temporary| directory == temporary);
        let is_below = self.directories.iter().any(|temporary| directory.starts_with(temporary));
        let is_of_session =
            self.session_paths.iter().any(|path| directory.starts_with(path) || path.starts_with(directory));
        is_below && !is_temporary && !is_of_session
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(directory: &str, is_beside: bool) {
        let temporary = TemporaryDirs::new(
            ["/tmp", "/tmp/me", "/var/tmp"].map(PathBuf::from).to_vec(),
            ["/home/p", "/tmp/a/project"].map(PathBuf::from).to_vec(),
        );
        assert_eq!(temporary.has_beside_session(Path::new(directory)), is_beside, "{directory}");
    }

    #[test]
    fn directories_beside_the_session_may_be_of_others() {
        for directory in ["/tmp/b", "/tmp/b/c", "/tmp/me/b", "/var/tmp/b", "/tmp/a/other"] {
            check(directory, true);
        }
        for directory in
            ["/tmp", "/tmp/me", "/tmp/a", "/tmp/a/project", "/tmp/a/project/b", "/home/p", "/home/q"]
        {
            check(directory, false);
        }
    }
}
