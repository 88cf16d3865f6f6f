//! Reads a project's git directory without git: the branches, and the files excluded on this machine. Starts no process
//! and writes only where the repository is shown to be the project's own.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{SpeckitError, SpeckitProject, project::follow_links};

/// The largest public projects have a few thousand branches.
const REFS_MAX: usize = 50_000;

/// The number of directory entries read for them, including directories without branches.
const ENTRIES_MAX: usize = 4 * REFS_MAX;

/// The number of slashes in a branch name.
const REF_LEVELS_MAX: usize = 16;

/// The git directories of a project.
struct GitDirs {
    /// The directory that contains `.git`.
    work_tree: PathBuf,
    /// The file with the current branch.
    head: PathBuf,
    /// The directory shared by all worktrees; `None` if a `.git` file leads there and the directory does not lead back.
    common: Option<PathBuf>,
}

/// Returns the branch that is checked out.
pub(crate) fn current_branch(root: &Path) -> Option<String> {
    let text = SpeckitProject::read_file(&find_git_dirs(root)?.head).ok()??;
    Some(text.trim().strip_prefix("ref: refs/heads/")?.to_owned())
}

/// Whether a project is in a git repository.
pub fn is_repository(root: &Path) -> bool {
    find_git_dirs(root).is_some()
}

/// Returns the URL of a remote from the repository's configuration.
pub(crate) fn remote_address(root: &Path, remote: &str) -> Option<String> {
    let config = SpeckitProject::read_file(&find_git_dirs(root)?.common?.join("config")).ok()??;
    config_value(&config, "remote", Some(remote), "url")
}

/// Lists local branches and remote branches without the remote's name. Branches that are not stored as files or packed
/// refs are missing, as are those of a git directory that does not lead back to this worktree.
pub fn list_branches(root: &Path) -> Vec<String> {
    let Some(common) = find_git_dirs(root).and_then(|dirs| dirs.common) else { return Vec::new() };
    let mut refs = RefNames { names: Vec::new(), n_entries_left: ENTRIES_MAX };
    for ref_path in ["refs/heads", "refs/remotes"] {
        refs.collect_refs(&common, ref_path, REF_LEVELS_MAX);
    }
    let mut refs = refs.names;
    let packed = SpeckitProject::read_file(&common.join("packed-refs")).ok().flatten().unwrap_or_default();
    let packed_refs = packed.lines().filter_map(|line| line.split_once(' ')).map(|(_, name)| name.to_owned());
    refs.extend(packed_refs.take(REFS_MAX));
    let mut names: Vec<String> = refs
        .iter()
        .filter_map(|name| match name.strip_prefix("refs/heads/") {
            Some(name) => Some(name.to_owned()),
            None => name.strip_prefix("refs/remotes/")?.split_once('/').map(|(_, name)| name.to_owned()),
        })
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Full ref names found so far.
struct RefNames {
    names: Vec<String>,
    n_entries_left: usize,
}

impl RefNames {
    /// Adds the refs below a path.
    fn collect_refs(&mut self, common: &Path, ref_path: &str, n_levels: usize) {
        let Ok(entries) = fs::read_dir(common.join(ref_path)) else { return };
        for git_entry in entries.filter_map(Result::ok) {
            let Some(n_entries_left) = self.n_entries_left.checked_sub(1) else { return };
            self.n_entries_left = n_entries_left;
            let Ok(name) = git_entry.file_name().into_string() else { continue };
            let name = format!("{ref_path}/{name}");
            match git_entry.file_type() {
                Ok(kind) if kind.is_dir() && n_levels > 0 => self.collect_refs(common, &name, n_levels - 1),
                Ok(kind) if kind.is_file() && self.names.len() < REFS_MAX => self.names.push(name),
                Ok(_) | Err(_) => {}
            }
        }
    }
}

/// Excludes a file of the project from git on this machine only; returns whether it was not excluded before.
pub(crate) fn exclude_file(root: &Path, file: &str) -> Result<bool, SpeckitError> {
    let Some(dirs) = find_git_dirs(root) else { return Ok(false) };
    let Some(common) = dirs.common else { return Ok(false) };
    let exclude_path = common.join("info/exclude");
    let is_inside = follow_links(&exclude_path).is_some_and(|canonical| canonical.starts_with(&common));
    let relative = root.strip_prefix(&dirs.work_tree).ok().and_then(Path::to_str);
    let (true, Some(relative)) = (is_inside, relative) else { return Ok(false) };
    let relative = if relative.is_empty() { String::new() } else { format!("/{}", escape_pattern(relative)) };
    let line = format!("{relative}/{file}");
    let mut text = SpeckitProject::read_file(&exclude_path)?.unwrap_or_default();
    if text.lines().any(|existing| existing == line) {
        return Ok(false);
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let info = common.join("info");
    fs::create_dir_all(&info).map_err(|error| SpeckitError::io(&info, error))?;
    SpeckitProject::write_file(&exclude_path, &format!("{text}{line}\n"))?;
    Ok(true)
}

/// Escapes a path for use in an exclude pattern.
fn escape_pattern(path: &str) -> String {
    path.chars().flat_map(|c| "\\*?[ ".contains(c).then_some('\\').into_iter().chain([c])).collect()
}

fn find_git_dirs(root: &Path) -> Option<GitDirs> {
    for work_tree in root.ancestors() {
        let git_entry = work_tree.join(".git");
        let Ok(metadata) = fs::symlink_metadata(&git_entry) else { continue };
        let work_tree = work_tree.to_owned();
        if metadata.is_dir() {
            let common = fs::canonicalize(&git_entry).ok();
            return Some(GitDirs { work_tree, head: git_entry.join("HEAD"), common });
        }
        if metadata.is_file() {
            let text = SpeckitProject::read_file(&git_entry).ok()??;
            let dir = work_tree.join(text.trim().strip_prefix("gitdir:")?.trim_start());
            let common = find_common_dir(&dir, &git_entry);
            return Some(GitDirs { work_tree, head: dir.join("HEAD"), common });
        }
        return None;
    }
    None
}

/// Returns the git directory shared by the worktrees, if it leads back to the `.git` file: a file in an untrusted
/// project cannot forge that.
fn find_common_dir(dir: &Path, git_entry: &Path) -> Option<PathBuf> {
    let Some(back_link) = SpeckitProject::read_file(&dir.join("gitdir")).ok()? else {
        // A submodule's directory is its own shared directory.
        let config = SpeckitProject::read_file(&dir.join("config")).ok()??;
        let checkout = config_value(&config, "core", None, "worktree")?;
        let is_submodule_of_parent = follow_links(&dir.join(checkout))? == follow_links(git_entry.parent()?)?;
        return is_submodule_of_parent.then(|| fs::canonicalize(dir).ok()).flatten();
    };
    if follow_links(&dir.join(back_link.trim()))? != follow_links(git_entry)? {
        return None;
    }
    let common = SpeckitProject::read_file(&dir.join("commondir")).ok()??;
    fs::canonicalize(dir.join(common.trim())).ok()
}

/// Returns the last value of a setting in a git configuration.
fn config_value(config: &str, section: &str, subsection: Option<&str>, name: &str) -> Option<String> {
    let mut is_in_section = false;
    let mut last_value = None;
    for line in config.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[').and_then(|header| header.split_once(']')) {
            let (line_section, rest) = header.0.split_once(char::is_whitespace).unwrap_or((header.0, ""));
            let line_subsection = rest.trim().strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            is_in_section = line_section.eq_ignore_ascii_case(section) && line_subsection == subsection;
        } else if let Some((key, value)) = line.split_once('=')
            && is_in_section
            && key.trim().eq_ignore_ascii_case(name)
        {
            let value = value.trim();
            let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
            last_value = Some(value.replace("\\\"", "\"").replace("\\\\", "\\"));
        }
    }
    last_value
}

#[cfg(test)]
mod tests;
