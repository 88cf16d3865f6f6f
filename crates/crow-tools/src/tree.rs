//! A project's folders for a system prompt: how they look, and which of them hold a file of some name. Bounded whatever
//! is in them. Blocks; knows no prompt.

use std::{
    collections::{BTreeSet, VecDeque},
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use crow_core::{escape_hidden, escape_hidden_start};
use tokio_util::sync::CancellationToken;

use crate::walk::{DirectoryLister, HiddenFiles, WalkBounds, WalkDirectory, WalkEntry};

/// Levels that are drawn; deeper ones cost tokens in every request and are found by searching.
const DEPTH: usize = 3;

/// Lines that are drawn, for the same reason.
const LINES_MAX: usize = 200;

/// Entries of one folder: no folder hides the others.
const FOLDER_ENTRIES_MAX: usize = 50;

/// Entries of the root: what is in it is what a project is.
const ROOT_ENTRIES_MAX: usize = 100;

/// A folder of which fewer lines could be drawn is only named.
const FOLDER_LINES_MIN: usize = 3;

/// Characters of one name.
const NAME_CHARS_MAX: usize = 100;

/// Nobody waits longer for a first answer.
const WITHIN: Duration = Duration::from_secs(2);

/// Entries that are looked at to draw the folders.
const DRAWN_ENTRIES_MAX: usize = 2_000_000;

/// Entries that are looked at in one folder below the first: what was generated leaves room for the others.
const FOLDER_ENTRIES_SEEN_MAX: usize = 10_000;

/// Entries that are looked at for files of a name.
const FOUND_ENTRIES_MAX: usize = 50_000;

/// Folders that wait to be looked through for them.
const WAITING_MAX: usize = FOUND_ENTRIES_MAX;

/// Draws a folder, two spaces a level, folders with a slash, without what the project leaves out. Level by level, so that
/// a folder of thousands of files hides no other.
pub fn draw_tree(cwd: &Path) -> String {
    let cut = CancellationToken::new();
    let bounds = WalkBounds { entries_max: DRAWN_ENTRIES_MAX, within: WITHIN };
    let cwd = crate::resolve_links(cwd);
    let lister = DirectoryLister::new(&cwd, HiddenFiles::LeftOut, bounds, &cut);
    let mut drawing = TreeDrawing { nodes: Vec::new(), n_lines: 0 };
    let root = TreeNode::new(OsString::new(), Some(lister.start_directory()));
    drawing.nodes.push(root);
    let mut level = vec![0];
    for _ in 0..DEPTH {
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

/// Finds files of a name below a folder, not in it, at most `n_max`, by their paths from there, as one line each.
pub fn find_files_below(cwd: &Path, name: &str, n_max: usize) -> Vec<String> {
    let cut = CancellationToken::new();
    let bounds = WalkBounds { entries_max: FOUND_ENTRIES_MAX, within: WITHIN };
    let cwd = crate::resolve_links(cwd);
    let lister = DirectoryLister::new(&cwd, HiddenFiles::LeftOut, bounds, &cut);
    let mut found: BTreeSet<PathBuf> = BTreeSet::new();
    let mut waiting = VecDeque::from([lister.start_directory()]);
    while let Some(folder) = waiting.pop_front() {
        lister.list_first(&folder, FOLDER_ENTRIES_SEEN_MAX, |listed| match listed {
            WalkEntry::Folder(folder) if waiting.len() < WAITING_MAX => waiting.push_back(folder),
            WalkEntry::Folder(_) => {}
            WalkEntry::File(path) if path.ends_with(name) && folder.path() != cwd => {
                found.insert(path);
                if found.len() > n_max {
                    found.pop_last();
                }
            }
            WalkEntry::File(_) => {}
        });
    }
    let below = found.iter().filter_map(|path| path.strip_prefix(&cwd).ok());
    below.map(|path| escape_hidden(&path.to_string_lossy())).collect()
}

/// What will be drawn.
struct TreeDrawing {
    nodes: Vec<TreeNode>,
    n_lines: usize,
}

struct TreeNode {
    name: OsString,
    /// There when it is a folder that was not listed yet.
    folder: Option<WalkDirectory>,
    is_folder: bool,
    children: Vec<usize>,
    /// Children that are not drawn.
    n_more: usize,
    /// Whether these are all of them.
    is_counted: bool,
}

impl TreeNode {
    fn new(name: OsString, folder: Option<WalkDirectory>) -> Self {
        Self { name, is_folder: folder.is_some(), folder, children: Vec::new(), n_more: 0, is_counted: true }
    }
}

impl TreeDrawing {
    /// Lists the folders of a level, each with its share of the lines that are left; gives the folders below them.
    fn expand_level(&mut self, lister: &DirectoryLister<'_>, level: &[usize]) -> Vec<usize> {
        let mut next = Vec::new();
        for (place, &node) in level.iter().enumerate() {
            let share = LINES_MAX.saturating_sub(self.n_lines) / (level.len() - place);
            // One line more says how many are left out.
            let n_entries_max = if node == 0 { ROOT_ENTRIES_MAX } else { FOLDER_ENTRIES_MAX };
            let share = share.min(n_entries_max + 1);
            let Some(folder) = self.nodes[node].folder.take().filter(|_| share >= FOLDER_LINES_MIN) else {
                continue;
            };
            let n_seen_max = if node == 0 { usize::MAX } else { FOLDER_ENTRIES_SEEN_MAX };
            let FirstEntries { children, n_more, is_counted } =
                first_entries(lister, &folder, (share, n_seen_max));
            self.n_lines += children.len() + usize::from(n_more > 0);
            let new = self.nodes.len()..self.nodes.len() + children.len();
            self.nodes.extend(children);
            next.extend(new.clone().filter(|&child| self.nodes[child].is_folder));
            self.nodes[node].children = new.collect();
            self.nodes[node].n_more = n_more;
            self.nodes[node].is_counted = is_counted;
        }
        next
    }

    fn write_node(&self, node: usize, depth: usize, lines: &mut Vec<String>) {
        let indent = "  ".repeat(depth);
        let node = &self.nodes[node];
        for &child in &node.children {
            let slash = if self.nodes[child].is_folder { "/" } else { "" };
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

/// What is drawn of a folder.
struct FirstEntries {
    children: Vec<TreeNode>,
    n_more: usize,
    is_counted: bool,
}

/// The first entries of a folder by their names, folders before files where not all fit.
fn first_entries(
    lister: &DirectoryLister<'_>,
    folder: &WalkDirectory,
    (share, n_seen_max): (usize, usize),
) -> FirstEntries {
    let mut folders: Vec<(OsString, WalkDirectory)> = Vec::new();
    let mut files: BTreeSet<OsString> = BTreeSet::new();
    let mut n_entries = 0;
    let is_counted = lister.list_first(folder, n_seen_max, |listed| {
        n_entries += 1;
        let name = |path: &Path| path.file_name().unwrap_or_default().to_owned();
        match listed {
            WalkEntry::Folder(folder) => {
                folders.push((name(folder.path()), folder));
                if folders.len() >= 2 * share {
                    folders.sort_by(|one, other| one.0.cmp(&other.0));
                    folders.truncate(share);
                }
            }
            WalkEntry::File(path) => {
                files.insert(name(&path));
                if files.len() > share {
                    files.pop_last();
                }
            }
        }
    });
    folders.sort_by(|one, other| one.0.cmp(&other.0));
    let n_shown = if n_entries >= share { share - 1 } else { share };
    folders.truncate(n_shown);
    let n_files = n_shown - folders.len();
    let mut nodes: Vec<TreeNode> =
        folders.into_iter().map(|(name, folder)| TreeNode::new(name, Some(folder))).collect();
    nodes.extend(files.into_iter().take(n_files).map(|name| TreeNode::new(name, None)));
    nodes.sort_by(|one, other| one.name.cmp(&other.name));
    let n_more = n_entries - nodes.len();
    FirstEntries { children: nodes, n_more, is_counted }
}

/// Writes a number with commas between its thousands.
fn group_thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests;
