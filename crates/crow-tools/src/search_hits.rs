//! What a search found, in the order of paths whatever order it came in, and never more than is shown.
//! Knows nothing of searching.

use std::{
    cmp::Ordering,
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// A line of the answer, below the file it is from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MatchRow {
    /// A line that matches, by its number.
    Match(u64, String),
    /// A line near one.
    Context(u64, String),
    /// Lines were left out here.
    Gap,
    /// The file itself.
    File,
    /// How many of its lines match.
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

    /// Tells whether it counts against the limit.
    fn counts_toward_limit(&self) -> bool {
        match self {
            Self::Match(..) | Self::Context(..) | Self::File | Self::Count(_) => true,
            Self::Gap => false,
        }
    }
}

/// Keeps the first rows of all.
pub(crate) struct SearchHits {
    n_rows_max: usize,
    state: Mutex<HitState>,
}

#[derive(Default)]
struct HitState {
    files: BTreeMap<PathBuf, Vec<MatchRow>>,
    n_rows: usize,
    n_unread: usize,
    n_key_files: usize,
}

impl SearchHits {
    pub(crate) fn new(n_rows_max: usize) -> Self {
        Self { n_rows_max, state: Mutex::default() }
    }

    /// Tells whether what is found at a path, or in a folder there, could still be among the first rows.
    pub(crate) fn may_show(&self, path: &Path) -> bool {
        let state = self.lock_state();
        let last = state.files.last_key_value().map(|(last, _)| last);
        // What is behind the last one is not shown, whatever is found before it.
        state.n_rows <= self.n_rows_max || last.is_none_or(|last| path.cmp(last) == Ordering::Less)
    }

    /// Adds what was found in a file, and forgets what lies behind the first rows.
    pub(crate) fn add_rows(&self, path: &Path, rows: Vec<MatchRow>) {
        if rows.is_empty() {
            return;
        }
        let mut state = self.lock_state();
        state.n_rows += count_rows(&rows);
        state.files.insert(path.to_owned(), rows);
        while let Some(last) = state.files.last_entry() {
            let n_last = count_rows(last.get());
            // One row more is kept, to know that there are more.
            if state.n_rows - n_last <= self.n_rows_max {
                break;
            }
            state.files.pop_last();
            state.n_rows -= n_last;
        }
    }

    /// Notes that a file could not be searched.
    pub(crate) fn add_unread(&self) {
        self.lock_state().n_unread += 1;
    }

    /// Notes that a file was left out because it holds keys.
    pub(crate) fn add_skipped_key(&self) {
        self.lock_state().n_key_files += 1;
    }

    /// Spells the rows; `shown` spells a path.
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
        SearchSummary { text, n_rows: state.n_rows, n_unread: state.n_unread, n_key_files: state.n_key_files }
    }

    fn lock_state(&self) -> MutexGuard<'_, HitState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What came of a search.
pub(crate) struct SearchSummary {
    pub(crate) text: String,
    /// More than the limit when there is more than is shown.
    pub(crate) n_rows: usize,
    /// Says how many files could not be searched, as long as all of them were wanted.
    pub(crate) n_unread: usize,
    /// Says how many files that hold keys were left out, as long as all of them were wanted.
    pub(crate) n_key_files: usize,
}

fn count_rows(rows: &[MatchRow]) -> usize {
    rows.iter().filter(|row| row.counts_toward_limit()).count()
}

#[cfg(test)]
mod tests;
