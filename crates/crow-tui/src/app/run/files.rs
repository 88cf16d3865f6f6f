//! The project's files for completion after `@`: listed with the rules of `.gitignore`, matched off the loop.

use std::{path::Path, sync::Arc};

use ignore::WalkBuilder;
use nucleo_matcher::{
    Config, Matcher,
    pattern::{CaseMatching, Normalization, Pattern},
};

use crate::app::completion::ITEMS_MAX;

/// Files that are listed; a larger tree is listed in part.
const FILES_MAX: usize = 200_000;

/// Files with rules that the walk reads by itself.
const RULE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// A larger file with rules is not read.
const RULE_BYTES_MAX: u64 = 1024 * 1024;

/// The files of a project, by their path from its root.
pub(super) type FileIndex = Arc<Vec<String>>;

/// Lists the files of a project.
pub(super) fn list_files(root: &Path) -> FileIndex {
    let uses_rules = root.ancestors().all(has_readable_rules);
    let walk = WalkBuilder::new(root)
        .hidden(false)
        .git_exclude(false)
        // The rules apply outside of a repository too.
        .require_git(false)
        .git_ignore(uses_rules)
        .ignore(uses_rules)
        .parents(uses_rules)
        .filter_entry(move |entry| {
            let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
            entry.file_name() != ".git" && (!uses_rules || !is_directory || has_readable_rules(entry.path()))
        })
        .build();
    let files =
        walk.filter_map(Result::ok).filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let paths = files
        .take(FILES_MAX)
        .filter_map(|entry| entry.path().strip_prefix(root).ok()?.to_str().map(str::to_owned));
    let mut paths: Vec<String> = paths.collect();
    // Without a query, the files nearest to the root are first.
    paths.sort_by_cached_key(|path| (path.matches('/').count(), path.clone()));
    Arc::new(paths)
}

/// Whether the rules of a directory are in small files. A repository can contain a link to a file without an end, or a
/// pipe.
fn has_readable_rules(directory: &Path) -> bool {
    RULE_FILES.iter().all(|name| match directory.join(name).symlink_metadata() {
        Ok(metadata) => metadata.is_file() && metadata.len() <= RULE_BYTES_MAX,
        Err(_) => true,
    })
}

/// Returns the best matches of a query.
pub(super) fn match_files(files: &[String], query: &str) -> Vec<String> {
    if query.is_empty() {
        return files.iter().take(ITEMS_MAX).cloned().collect();
    }
    let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
    let pattern = Pattern::parse(query, CaseMatching::Smart, Normalization::Smart);
    let matches = pattern.match_list(files.iter().map(String::as_str), &mut matcher);
    matches.into_iter().take(ITEMS_MAX).map(|(path, _)| path.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_files_are_not_listed_and_the_best_match_is_first() {
        let dir = tempfile::tempdir().unwrap();
        for path in [".git/config", "target/out.rs", "src/main.rs", "src/manifest.rs", "docs/a b.md"] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        std::fs::write(dir.path().join(".gitignore"), "target\n").unwrap();
        let files = list_files(dir.path());
        assert_eq!(**files, [".gitignore", "docs/a b.md", "src/main.rs", "src/manifest.rs"]);
        assert_eq!(match_files(&files, "main"), ["src/main.rs"]);
        assert_eq!(match_files(&files, "srcmain").first().map(String::as_str), Some("src/main.rs"));
        assert!(match_files(&files, "zzz").is_empty());
    }

    #[test]
    fn rules_apply_outside_of_a_repository() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("target")).unwrap();
        for path in ["target/out.rs", "main.rs"] {
            std::fs::write(dir.path().join(path), "").unwrap();
        }
        std::fs::write(dir.path().join(".gitignore"), "target\n").unwrap();
        assert_eq!(**list_files(dir.path()), [".gitignore", "main.rs"]);
    }

    #[test]
    fn rules_behind_a_link_are_not_read() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("hostile")).unwrap();
        for path in ["main.rs", "hostile/other.rs"] {
            std::fs::write(dir.path().join(path), "").unwrap();
        }
        std::os::unix::fs::symlink("/dev/zero", dir.path().join("hostile/.gitignore")).unwrap();
        assert_eq!(**list_files(dir.path()), ["main.rs"]);
        std::os::unix::fs::symlink("/dev/zero", dir.path().join(".ignore")).unwrap();
        assert_eq!(**list_files(dir.path()), ["main.rs", "hostile/other.rs"]);
    }
}
