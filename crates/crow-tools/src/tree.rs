//! A project's directories for the system prompt: a drawing, and the paths of files with a given name. Limited for any
//! content. Blocks; must not know the prompt.

use std::{
    collections::{BTreeSet, VecDeque},
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use crow_core::{escape_hidden, escape_hidden_start};
use tokio_util::sync::CancellationToken;

use crate::walk::{DirectoryLister, HiddenFiles, WalkBounds, WalkDirectory, WalkEntry};

/// Levels that are drawn; deeper ones cost tokens in every request and can be searched.
const DEPTH_MAX: usize = 3;

/// Lines that are drawn, for the same reason.
const LINES_MAX: usize = 200;

/// Entries of one directory, so that none hides the others.
const DIR_ENTRIES_MAX: usize = 50;

/// Entries of the root, which show the kind of project.
const ROOT_ENTRIES_MAX: usize = 100;

/// A directory with room for fewer lines is only named.
const DIR_LINES_MIN: usize = 3;

/// Characters of one name.
const NAME_CHARS_MAX: usize = 100;

/// The first response must not wait longer.
const WALK_TIMEOUT: Duration = Duration::from_secs(2);

/// Entries that are read to draw the directories.
const DRAW_ENTRIES_MAX: usize = 2_000_000;

/// Entries that are read in one directory below the root: generated files leave room for the others.
const DIR_ENTRIES_SCANNED_MAX: usize = 10_000;

/// Entries that are read to find files with a name.
const FIND_ENTRIES_MAX: usize = 50_000;

/// Directories that wait to be searched.
const PENDING_MAX: usize = FIND_ENTRIES_MAX;

/// Draws a directory, two spaces per level, directories with a slash, without ignored files. Level by level, so that a
/// directory of thousands of files hides no other.
pub fn draw_tree(cwd: &Path) -> String {
    let cancel = CancellationToken::new();
    let limits = WalkBounds { entries_max: DRAW_ENTRIES_MAX, timeout: WALK_TIMEOUT };
    let cwd = crow_files::resolve_links(cwd);
    let lister = DirectoryLister::new(&cwd, HiddenFiles::Excluded, limits, &cancel);
    let mut drawing = TreeDrawing { nodes: Vec::new(), n_lines: 0 };
    let root = TreeNode::new(OsString::new(), Some(lister.start_directory()));
    drawing.nodes.push(root);
    let mut level = vec![0];
    for _ in 0..DEPTH_MAX {
        level = drawing.expand_level(&lister, &level);
    }
    let mut lines = Vec::new();
    drawing.write_node(0, 0, &mut lines);
    if lister.is_truncated() {
        lines.push("… (too much, or too slow, to look at all of it)".to_owned());
    }
    if lister.n_unread_rules() > 0 {
        lines.push(
            "… (an ignore file could not be read to its end, so what it names may be among this)".to_owned(),
        );
    }
    lines.join("\n")
}

/// Lists the entries of a directory by name, directories with a slash, without ignored files; at most `n_max` names.
pub fn list_top_level(cwd: &Path, n_max: usize) -> Vec<String> {
    let cancel = CancellationToken::new();
    let limits = WalkBounds { entries_max: FIND_ENTRIES_MAX, timeout: WALK_TIMEOUT };
    let cwd = crow_files::resolve_links(cwd);
    let lister = DirectoryLister::new(&cwd, HiddenFiles::Excluded, limits, &cancel);
    let limits = EntryLimits { n_lines_max: n_max, n_scanned_max: DIR_ENTRIES_SCANNED_MAX };
    let root = TreeNode::new(OsString::new(), None);
    let FirstEntries { children, n_more, is_counted } =
        first_entries(&lister, &lister.start_directory(), limits);
    let mut lines = Vec::new();
    let nodes = [TreeNode { children: (1..=children.len()).collect(), n_more, is_counted, ..root }];
    TreeDrawing { nodes: nodes.into_iter().chain(children).collect(), n_lines: 0 }
        .write_node(0, 0, &mut lines);
    lines
}

/// Finds files with a name below a directory, not in it; returns at most `n_max` relative paths, each on one line.
pub fn find_files_below(cwd: &Path, name: &str, n_max: usize) -> Vec<String> {
    let cancel = CancellationToken::new();
    let limits = WalkBounds { entries_max: FIND_ENTRIES_MAX, timeout: WALK_TIMEOUT };
    let cwd = crow_files::resolve_links(cwd);
    let lister = DirectoryLister::new(&cwd, HiddenFiles::Excluded, limits, &cancel);
    let mut found: BTreeSet<PathBuf> = BTreeSet::new();
    let mut pending = VecDeque::from([lister.start_directory()]);
    while let Some(dir) = pending.pop_front() {
        lister.list_first(&dir, DIR_ENTRIES_SCANNED_MAX, |entry| match entry {
            WalkEntry::Directory(dir) if pending.len() < PENDING_MAX => pending.push_back(dir),
            WalkEntry::Directory(_) => {}
            WalkEntry::File(path) if path.ends_with(name) && dir.path() != cwd => {
                found.insert(path);
                if found.len() > n_max {
                    found.pop_last();
                }
            }
            WalkEntry::File(_) => {}
        });
    }
    let relative = found.iter().filter_map(|path| path.strip_prefix(&cwd).ok());
    relative.map(|path| escape_hidden(&path.to_string_lossy())).collect()
}

/// The entries to draw.
struct TreeDrawing {
    nodes: Vec<TreeNode>,
    n_lines: usize,
}

struct TreeNode {
    name: OsString,
    /// Set for a directory that was not listed yet.
    dir: Option<WalkDirectory>,
    is_dir: bool,
    children: Vec<usize>,
    /// Number of children that are not drawn.
    n_more: usize,
    /// Whether that number is exact.
    is_counted: bool,
}

impl TreeNode {
    fn new(name: OsString, dir: Option<WalkDirectory>) -> Self {
        Self { name, is_dir: dir.is_some(), dir, children: Vec::new(), n_more: 0, is_counted: true }
    }
}

impl TreeDrawing {
    /// Lists the directories of a level, each with its share of the remaining lines; returns the directories below
    /// them.
    fn expand_level(&mut self, lister: &DirectoryLister<'_>, level: &[usize]) -> Vec<usize> {
        let mut next = Vec::new();
        for (position, &node) in level.iter().enumerate() {
            let n_lines_max = LINES_MAX.saturating_sub(self.n_lines) / (level.len() - position);
            // One more line gives the number of the omitted entries.
            let n_entries_max = if node == 0 { ROOT_ENTRIES_MAX } else { DIR_ENTRIES_MAX };
            let n_lines_max = n_lines_max.min(n_entries_max + 1);
            let Some(dir) = self.nodes[node].dir.take().filter(|_| n_lines_max >= DIR_LINES_MIN) else {
                continue;
            };
            let n_scanned_max = if node == 0 { usize::MAX } else { DIR_ENTRIES_SCANNED_MAX };
            let limits = EntryLimits { n_lines_max, n_scanned_max };
            let FirstEntries { children, n_more, is_counted } = first_entries(lister, &dir, limits);
            self.n_lines += children.len() + usize::from(n_more > 0);
            let new_nodes = self.nodes.len()..self.nodes.len() + children.len();
            self.nodes.extend(children);
            next.extend(new_nodes.clone().filter(|&child| self.nodes[child].is_dir));
            self.nodes[node].children = new_nodes.collect();
            self.nodes[node].n_more = n_more;
            self.nodes[node].is_counted = is_counted;
        }
        next
    }

    fn write_node(&self, node: usize, depth: usize, lines: &mut Vec<String>) {
        let indent = "  ".repeat(depth);
        let node = &self.nodes[node];
        for &child in &node.children {
            let slash = if self.nodes[child].is_dir { "/" } else { "" };
            let name = escape_hidden_start(&self.nodes[child].name.to_string_lossy(), NAME_CHARS_MAX);
            lines.push(format!("{indent}{name}{slash}"));
            self.write_node(child, depth + 1, lines);
        }
        if node.n_more > 0 {
            let more_than = if node.is_counted { "" } else { "more than " };
            lines.push(format!("{indent}… {more_than}{} more", group_thousands(node.n_more)));
        }
    }
}

/// The entries of a directory to draw.
struct FirstEntries {
    children: Vec<TreeNode>,
    n_more: usize,
    is_counted: bool,
}

/// Limits on the entries of one directory.
#[derive(Clone, Copy)]
struct EntryLimits {
    n_lines_max: usize,
    n_scanned_max: usize,
}

/// Returns the first entries of a directory by name, directories before files if not all fit.
fn first_entries(lister: &DirectoryLister<'_>, dir: &WalkDirectory, limits: EntryLimits) -> FirstEntries {
    let EntryLimits { n_lines_max, n_scanned_max } = limits;
    let mut dirs: Vec<(OsString, WalkDirectory)> = Vec::new();
    let mut files: BTreeSet<OsString> = BTreeSet::new();
    let mut n_entries = 0;
    let is_counted = lister.list_first(dir, n_scanned_max, |entry| {
        n_entries += 1;
        let name = |path: &Path| path.file_name().unwrap_or_default().to_owned();
        match entry {
            WalkEntry::Directory(dir) => {
                dirs.push((name(dir.path()), dir));
                if dirs.len() >= 2 * n_lines_max {
                    dirs.sort_by(|one, other| one.0.cmp(&other.0));
                    dirs.truncate(n_lines_max);
                }
            }
            WalkEntry::File(path) => {
                files.insert(name(&path));
                if files.len() > n_lines_max {
                    files.pop_last();
                }
            }
        }
    });
    dirs.sort_by(|one, other| one.0.cmp(&other.0));
    let n_shown = if n_entries >= n_lines_max { n_lines_max - 1 } else { n_lines_max };
    dirs.truncate(n_shown);
    let n_files = n_shown - dirs.len();
    let mut nodes: Vec<TreeNode> =
        dirs.into_iter().map(|(name, dir)| TreeNode::new(name, Some(dir))).collect();
    nodes.extend(files.into_iter().take(n_files).map(|name| TreeNode::new(name, None)));
    nodes.sort_by(|one, other| one.name.cmp(&other.name));
    let n_more = n_entries - nodes.len();
    FirstEntries { children: nodes, n_more, is_counted }
}

/// Formats a number with commas between its thousands.
fn group_thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests;
