//! The results of a search, ordered by path, limited to what is shown. Must not know how files are searched.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Files that are named in a note; enough to correct the call.
pub(crate) const NAMES_MAX: usize = 10;

/// A row of the results, below its file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MatchRow {
    /// A matching line, with its number.
    Match(u64, String),
    /// A line before or after a match.
    Context(u64, String),
    /// A gap between lines.
    Gap,
    /// The file itself.
    File,
    /// The number of matching lines.
    Count(u64),
}

impl MatchRow {
    fn write_to(&self, display_path: &str, text: &mut String) {
        // Writing to a string cannot fail.
        let _ = match self {
            Self::Match(number, line) => writeln!(text, "{display_path}:{number}: {line}"),
            Self::Context(number, line) => writeln!(text, "{display_path}-{number}- {line}"),
            Self::Gap => writeln!(text, "--"),
            Self::File => writeln!(text, "{display_path}"),
            Self::Count(n_lines) => writeln!(text, "{display_path}: {n_lines}"),
        };
    }

    /// Whether it counts toward the limit.
    fn counts_toward_limit(&self) -> bool {
        match self {
            Self::Match(..) | Self::Context(..) | Self::File | Self::Count(_) => true,
            Self::Gap => false,
        }
    }
}

/// Stores the first rows, ordered by path.
pub(crate) struct SearchHits {
    n_rows_max: usize,
    state: Mutex<HitState>,
}

#[derive(Default)]
struct HitState {
    files: BTreeMap<PathBuf, Vec<MatchRow>>,
    n_rows: usize,
    /// The first files whose names match, and the number of all.
    names: BTreeSet<PathBuf>,
    n_names: usize,
    /// The first files that were searched only in part, and the number of all.
    partial: BTreeSet<PathBuf>,
    n_partial: usize,
    n_unread: usize,
    n_key_files: usize,
}

impl SearchHits {
    pub(crate) fn new(n_rows_max: usize) -> Self {
        Self { n_rows_max, state: Mutex::default() }
    }

    /// Whether results at a path, or below it, could still be among the first rows.
    pub(crate) fn may_show(&self, path: &Path) -> bool {
        let state = self.lock_state();
        let last = state.files.last_key_value().map(|(last, _)| last);
        // Results after the last stored one are not shown, whatever else is found.
        state.n_rows <= self.n_rows_max || last.is_none_or(|last| path.cmp(last) == Ordering::Less)
    }

    /// Adds the results of a file, and drops those after the first rows.
    pub(crate) fn add_rows(&self, path: &Path, rows: Vec<MatchRow>) {
        if rows.is_empty() {
            return;
        }
        let mut state = self.lock_state();
        state.n_rows += count_rows(&rows);
        state.files.insert(path.to_owned(), rows);
        while let Some(last) = state.files.last_entry() {
            let n_last = count_rows(last.get());
            // One row more is stored, to know that there are more.
            if state.n_rows - n_last <= self.n_rows_max {
                break;
            }
            state.files.pop_last();
            state.n_rows -= n_last;
        }
    }

    /// Adds a file whose name matches.
    pub(crate) fn add_name(&self, path: &Path) {
        let mut state = self.lock_state();
        state.n_names += 1;
        insert_first(&mut state.names, path);
    }

    /// Adds a file that was searched only up to a zero byte.
    pub(crate) fn add_partial(&self, path: &Path) {
        let mut state = self.lock_state();
        state.n_partial += 1;
        insert_first(&mut state.partial, path);
    }

    /// Counts a file that could not be searched.
    pub(crate) fn add_unread(&self) {
        self.lock_state().n_unread += 1;
    }

    /// Counts a file that was left out because it contains keys.
    pub(crate) fn add_skipped_key(&self) {
        self.lock_state().n_key_files += 1;
    }

    /// Renders the rows; `display_path` renders a path.
    pub(crate) fn into_summary(self, display_path: impl Fn(&Path) -> String) -> SearchSummary {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        let mut n_remaining = self.n_rows_max;
        for (path, rows) in &state.files {
            let display_path = display_path(path);
            for row in rows {
                if n_remaining == 0 {
                    break;
                }
                n_remaining -= usize::from(row.counts_toward_limit());
                row.write_to(&display_path, &mut text);
            }
        }
        SearchSummary {
            text,
            n_rows: state.n_rows,
            names: state.names.iter().map(|path| display_path(path)).collect(),
            n_names: state.n_names,
            partial: state.partial.iter().map(|path| display_path(path)).collect(),
            n_partial: state.n_partial,
            n_unread: state.n_unread,
            n_key_files: state.n_key_files,
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, HitState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The result of a search.
pub(crate) struct SearchSummary {
    pub(crate) text: String,
    /// More than the limit if not all rows are shown.
    pub(crate) n_rows: usize,
    /// The first files whose names match; only valid if no line does.
    pub(crate) names: Vec<String>,
    /// The number of all files whose names match; only valid if no line does.
    pub(crate) n_names: usize,
    /// The first files that were searched only in part, because of a zero byte; only valid for a complete search.
    pub(crate) partial: Vec<String>,
    /// The number of all such files; only valid for a complete search.
    pub(crate) n_partial: usize,
    /// Number of files that could not be searched; only valid for a complete search.
    pub(crate) n_unread: usize,
    /// Number of files with keys that were left out; only valid for a complete search.
    pub(crate) n_key_files: usize,
}

/// Inserts a path, and drops the last one beyond those that are named.
fn insert_first(names: &mut BTreeSet<PathBuf>, path: &Path) {
    names.insert(path.to_owned());
    if names.len() > NAMES_MAX {
        names.pop_last();
    }
}

fn count_rows(rows: &[MatchRow]) -> usize {
    rows.iter().filter(|row| row.counts_toward_limit()).count()
}

#[cfg(test)]
mod tests;

/// Lists the first of some names, with the number of the others.
pub(crate) fn list_names(names: &[String], n_names: usize) -> String {
    let more = match n_names - names.len() {
        0 => String::new(),
        n_more => format!(" and {n_more} more"),
    };
    names.join(", ") + &more
}
