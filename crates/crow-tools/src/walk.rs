//! Walks the files of a directory as the project would search them, and matches patterns with their names. Blocks; must
//! not know any tool.

mod ignore_rules;
mod lister;
mod queue;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use crow_core::{LetterCase, PathGlob, escape_hidden};
use crow_files::{ReadError, is_missing, nofollow};
use tokio_util::sync::CancellationToken;

pub(crate) use self::lister::{DirectoryLister, HiddenFiles, WalkBounds, WalkDirectory, WalkEntry};
use self::queue::WalkQueue;
use crate::{
    text_encoding::truncate_line,
    tool_error::{CANCELLED, ToolError},
};

/// A longer pattern is a list of files, and slows down every comparison.
pub(crate) const PATTERN_BYTES_MAX: usize = 16 * 1024;

/// Rejects a pattern that is too long.
pub(crate) fn check_pattern_length(pattern: &str) -> Result<&str, ToolError> {
    if pattern.len() <= PATTERN_BYTES_MAX {
        return Ok(pattern);
    }
    let n_bytes = pattern.len();
    Err(ToolError(format!("the pattern is too long ({n_bytes} bytes, the limit is {PATTERN_BYTES_MAX})")))
}

/// Enough of a line to see the error.
const ERROR_LINE_CHARS_MAX: usize = 300;

/// Shortens the lines of an error message that repeats the whole pattern.
pub(crate) fn shorten_error(error: &dyn std::fmt::Display) -> String {
    let error = error.to_string();
    let lines: Vec<String> = error.lines().map(|line| truncate_line(line, ERROR_LINE_CHARS_MAX)).collect();
    lines.join("\n")
}

/// A pattern for paths. Without a slash it matches the name alone, in any directory.
#[derive(Clone)]
pub(crate) struct PathPattern {
    glob: PathGlob,
    scope: PatternScope,
}

#[derive(Clone, Copy)]
enum PatternScope {
    Name,
    Relative,
    Absolute,
}

impl PathPattern {
    pub(crate) fn new(pattern: &str) -> Result<Self, ToolError> {
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let scope = match pattern.find('/') {
            None => PatternScope::Name,
            Some(0) => PatternScope::Absolute,
            Some(_) => PatternScope::Relative,
        };
        let glob = PathGlob::compile(pattern, LetterCase::Sensitive);
        let glob = glob.map_err(|error| ToolError(format!("the pattern {}", shorten_error(&error))))?;
        Ok(Self { glob, scope })
    }

    pub(crate) fn is_match(&self, file: &FoundFile) -> bool {
        match self.scope {
            PatternScope::Name => file.absolute.file_name().is_some_and(|name| self.glob.is_match(name)),
            PatternScope::Relative => self.glob.is_match(&file.relative),
            PatternScope::Absolute => self.glob.is_match(&file.absolute),
        }
    }
}

/// Splits a path at its first part with `*`: the path before, and the pattern from there.
pub(crate) fn split_wildcards(path: &str) -> (&str, Option<&str>) {
    let Some(wildcard) = path.find('*') else { return (path, None) };
    match path[..wildcard].rfind('/') {
        None => (".", Some(path)),
        Some(0) => ("/", Some(&path[1..])),
        Some(slash) => (&path[..slash], Some(&path[slash + 1..])),
    }
}

/// The default directory of a search.
pub(crate) fn default_path() -> String {
    ".".into()
}

/// A file found by a walk.
pub(crate) struct FoundFile {
    pub(crate) absolute: PathBuf,
    /// Path relative to the start of the walk; empty if that is the file.
    pub(crate) relative: PathBuf,
}

impl FoundFile {
    pub(crate) fn new(absolute: PathBuf, start: &Path) -> Self {
        let relative = absolute.strip_prefix(start).unwrap_or(&absolute).to_owned();
        Self { absolute, relative }
    }

    /// Renders the path for the model, below the name of the walk's start.
    pub(crate) fn display_path(&self, start: &str) -> String {
        match start {
            "." => escape_hidden(&self.relative.to_string_lossy()),
            start => {
                let path = Path::new(start).join(&self.relative);
                escape_hidden(&path.to_string_lossy()).trim_end_matches('/').to_owned()
            }
        }
    }
}

/// Visits the entries of a walk. Each thread has its own visitor.
pub(crate) trait FileVisitor: Send {
    /// Whether to walk a directory.
    fn should_enter(&mut self, _dir: &Path) -> bool {
        true
    }

    /// Visits a file. Files come in no order, and a link may have replaced the file by now.
    fn visit_file(&mut self, file: FoundFile);
}

/// More threads only wait for the disk and for each other.
const THREADS_MAX: usize = 8;

/// A longer search is of no use to a model.
pub(crate) const SEARCH_TIMEOUT: Duration = Duration::from_secs(60);

/// Entries that one search reads; the largest projects have a tenth of it.
const ENTRIES_MAX: usize = 5_000_000;

/// The limits that a walk reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WalkSummary {
    /// Number of ignore files that were not read completely.
    pub(crate) n_unread_rules: usize,
    /// Whether it ended early because of time or size.
    pub(crate) is_truncated: bool,
}

impl WalkSummary {
    /// Renders the notes below a result.
    pub(crate) fn render_notes(self) -> String {
        let mut notes = String::new();
        if self.n_unread_rules > 0 {
            let n = self.n_unread_rules;
            notes += &format!(
                "(ignore files that could not be read completely: {n}; ignored files may be included)\n"
            );
        }
        if self.is_truncated {
            notes += "(not everything was searched: there is too much, or it took too long; use a narrower path)\n";
        }
        notes
    }
}

/// Visits the files of a directory, or one file. Ignored files and `.git` are left out, links are not followed.
pub(crate) fn walk_files<'v, V: FileVisitor + 'v>(
    start: &Path,
    display_path: &str,
    cancel: &'v CancellationToken,
    visitor: impl Fn() -> V + Sync,
) -> Result<WalkSummary, ToolError> {
    let refuse =
        |reason: &dyn std::fmt::Display| ToolError(format!("could not search {display_path}: {reason}"));
    let metadata = nofollow::read_metadata(start)
        .map_err(|error| if is_missing(&error) { refuse(&ReadError::Missing) } else { refuse(&error) })?;
    if metadata.is_file() {
        visitor().visit_file(FoundFile::new(start.to_owned(), start));
        return Ok(WalkSummary { n_unread_rules: 0, is_truncated: false });
    }
    if !metadata.is_dir() {
        return Err(refuse(&ReadError::NotAFile));
    }
    let limits = WalkBounds { entries_max: ENTRIES_MAX, timeout: SEARCH_TIMEOUT };
    let lister = DirectoryLister::new(start, HiddenFiles::Included, limits, cancel);
    let queue = WalkQueue::new(lister.start_directory());
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    std::thread::scope(|scope| {
        for _ in 1..n_threads {
            scope.spawn(|| run_worker(&queue, &lister, &mut visitor(), start));
        }
        run_worker(&queue, &lister, &mut visitor(), start);
    });
    if cancel.is_cancelled() {
        return Err(ToolError(CANCELLED.into()));
    }
    Ok(WalkSummary {
        n_unread_rules: lister.n_unread_rules(),
        is_truncated: lister.is_truncated() || queue.is_truncated(),
    })
}

/// Lists directories until none is left.
fn run_worker(queue: &WalkQueue, lister: &DirectoryLister<'_>, visitor: &mut impl FileVisitor, start: &Path) {
    while let Some(claimed) = queue.claim_next() {
        lister.list_directory(claimed.directory(), |entry| match entry {
            WalkEntry::Directory(dir) => {
                if visitor.should_enter(dir.path()) {
                    queue.push(dir);
                }
            }
            WalkEntry::File(path) => visitor.visit_file(FoundFile::new(path, start)),
        });
    }
}

#[cfg(test)]
mod tests;
