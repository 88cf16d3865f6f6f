//! Files that git ignores in a worktree: they cannot be on its branch.
//!
//! Builds write such files into ignored directories, and a child may have written one on purpose, such as `.env`. A file
//! outside of ignored directories keeps the worktree; directories are only named.

use std::path::Path;

use super::error::WorktreeError;
use super::git::GitRepository;

/// Files and directories that are named.
const NAMED_MAX: usize = 20;

/// Extensions of files that compilers and tests write beside the sources.
const GENERATED_EXTENSIONS: [&str; 17] = [
    "a",
    "class",
    "d",
    "dll",
    "dylib",
    "exe",
    "gcda",
    "gcno",
    "lib",
    "log",
    "o",
    "obj",
    "pyc",
    "pyd",
    "rlib",
    "so",
    "tsbuildinfo",
];

/// Names of files that tools and systems write by themselves.
const GENERATED_NAMES: [&str; 4] = [".DS_Store", ".coverage", ".eslintcache", "Thumbs.db"];

/// The ignored files and directories of a worktree.
#[derive(Debug, Default)]
pub(super) struct IgnoredFiles {
    /// Their paths in the repository; that of a directory ends with a slash.
    paths: Vec<String>,
}

impl IgnoredFiles {
    pub(super) async fn list(git: &GitRepository<'_>) -> Result<Self, WorktreeError> {
        let list = ["ls-files", "--others", "--ignored", "--exclude-standard", "--directory"];
        Ok(Self::parse(&git.run_checked(&list).await?))
    }

    /// Parses a sorted list. A directory that is not ignored itself is followed by the ignored files in it.
    fn parse(list: &str) -> Self {
        let mut paths: Vec<String> = Vec::new();
        for path in list.lines() {
            // A quoted directory ends with a slash before the quote.
            let is_inside = |directory: &mut String| {
                let directory = directory.trim_end_matches('"');
                directory.ends_with('/') && path.starts_with(directory)
            };
            paths.pop_if(is_inside);
            paths.push(path.to_owned());
        }
        Self { paths }
    }

    /// Whether a file may have been written on purpose.
    pub(super) fn keep_worktree(&self) -> bool {
        self.paths.iter().any(|path| {
            let path = Path::new(path.trim_matches('"'));
            let name = path.file_name().unwrap_or_default();
            let has_generated_extension = path
                .extension()
                .is_some_and(|extension| GENERATED_EXTENSIONS.iter().any(|it| extension == *it));
            let is_generated = has_generated_extension || GENERATED_NAMES.iter().any(|it| name == *it);
            !path.as_os_str().as_encoded_bytes().ends_with(b"/") && !is_generated
        })
    }

    /// Describes them in a sentence; `root` is the worktree if it is kept.
    pub(super) fn describe(&self, root: Option<&Path>) -> Option<String> {
        if self.paths.is_empty() {
            return None;
        }
        let mut names = self.paths.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
        if self.paths.len() > NAMED_MAX {
            names.push_str(&format!(" and {} more", self.paths.len() - NAMED_MAX));
        }
        let place = match root {
            Some(root) => format!("only in {}", root.display()),
            None => "deleted with the worktree".to_owned(),
        };
        Some(format!("Git ignores these, so they are not on a branch but {place}: {names}"))
    }
}
