//! The files of a folder that a project itself would look at, and patterns for their names.
//! Blocks; knows no tool.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use globset::{GlobBuilder, GlobMatcher};
use ignore::{DirEntry, WalkBuilder, WalkState};
use tokio_util::sync::CancellationToken;

use crate::{
    files::{ReadError, is_missing},
    nofollow,
    text::cut_line,
    tool::{CANCELLED, Refusal},
};

/// Whoever writes a longer pattern lists files, and pays for it in every comparison.
pub(crate) const PATTERN_BYTES_MAX: usize = 16 * 1024;

/// Refuses a pattern that is too long to be one.
pub(crate) fn fitting(pattern: &str) -> Result<&str, Refusal> {
    if pattern.len() <= PATTERN_BYTES_MAX {
        return Ok(pattern);
    }
    let n_bytes = pattern.len();
    Err(Refusal(format!("the pattern is too long ({n_bytes} bytes, the limit is {PATTERN_BYTES_MAX})")))
}

/// As much of a line as is needed to see what is wrong with it.
const WRONG_CHARS_MAX: usize = 300;

/// Says what is wrong with a pattern, which such words repeat as a whole.
pub(crate) fn brief(error: &dyn std::fmt::Display) -> String {
    let error = error.to_string();
    let lines: Vec<String> = error.lines().map(|line| cut_line(line, WRONG_CHARS_MAX)).collect();
    lines.join("\n")
}

/// A pattern for paths. One without a slash is about the name alone, in whatever folder.
#[derive(Clone)]
pub(crate) struct NamePattern {
    matcher: GlobMatcher,
    about: About,
}

#[derive(Clone, Copy)]
enum About {
    Name,
    Relative,
    Absolute,
}

impl NamePattern {
    pub(crate) fn new(pattern: &str) -> Result<Self, Refusal> {
        let pattern = fitting(pattern)?;
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let about = match pattern.find('/') {
            None => About::Name,
            Some(0) => About::Absolute,
            Some(_) => About::Relative,
        };
        let glob = GlobBuilder::new(pattern).literal_separator(true).build();
        let glob = glob.map_err(|error| Refusal(format!("the pattern is not a glob: {}", brief(&error))))?;
        Ok(Self { matcher: glob.compile_matcher(), about })
    }

    pub(crate) fn is_match(&self, file: &Found) -> bool {
        match self.about {
            About::Name => file.absolute.file_name().is_some_and(|name| self.matcher.is_match(name)),
            About::Relative => self.matcher.is_match(&file.relative),
            About::Absolute => self.matcher.is_match(&file.absolute),
        }
    }
}

/// Where a search begins when the call does not say.
pub(crate) fn here() -> String {
    ".".into()
}

/// A file on the way.
pub(crate) struct Found {
    pub(crate) absolute: PathBuf,
    /// From where the walk began; empty when it began at the file.
    pub(crate) relative: PathBuf,
}

impl Found {
    pub(crate) fn new(absolute: PathBuf, start: &Path) -> Self {
        let relative = absolute.strip_prefix(start).unwrap_or(&absolute).to_owned();
        Self { absolute, relative }
    }

    /// Spells the file for the model, below the name of where the walk began.
    pub(crate) fn shown(&self, start: &str) -> String {
        match start {
            "." => self.relative.display().to_string(),
            start => {
                Path::new(start).join(&self.relative).display().to_string().trim_end_matches('/').to_owned()
            }
        }
    }
}

/// Looks at what a walk comes by. Each thread has its own.
pub(crate) trait Visitor: Send {
    /// Tells whether to look into a folder.
    fn enters(&mut self, _folder: &Path) -> bool {
        true
    }

    /// Looks at a file. Files come in no order, and a link may stand in a file's place by now.
    fn visit(&mut self, file: Found);
}

/// More threads than this wait for the disk and for each other.
const THREADS_MAX: usize = 8;

/// Files that name what to leave out; the later one counts where two disagree.
const IGNORE_FILES: [&str; 3] = [".gitignore", ".ignore", RIPGREP_IGNORE_FILE];
const RIPGREP_IGNORE_FILE: &str = ".rgignore";

/// A file that names what to leave out is read as a whole, again in every search.
const IGNORE_BYTES_MAX: u64 = 1024 * 1024;

/// Visits the files of a folder, or one file. Ignored files and `.git` are left out, links are not followed.
/// Says how many folders were passed by because what they want ignored cannot be read.
pub(crate) fn walk<'v, V: Visitor + 'v>(
    start: &Path,
    shown: &str,
    cut: &'v CancellationToken,
    visitor: impl Fn() -> V,
) -> Result<usize, Refusal> {
    let refuse = |why: &dyn std::fmt::Display| Refusal(format!("could not search {shown}: {why}"));
    let found = nofollow::look(start)
        .map_err(|error| if is_missing(&error) { refuse(&ReadError::Missing) } else { refuse(&error) })?;
    if !found.is_dir() && !found.is_file() {
        return Err(refuse(&ReadError::NotAFile));
    }
    if let Some(folder) = start.ancestors().find(|folder| !has_fine_ignore_files(folder)) {
        let names = IGNORE_FILES.join(", ");
        return Err(refuse(&format!("one of {names} in {} is no file or too large", folder.display())));
    }
    let n_passed = Arc::new(AtomicUsize::new(0));
    let walker = walker(start, found.is_dir(), Arc::clone(&n_passed));
    walker.build_parallel().run(|| {
        let mut visitor = visitor();
        let start = start.to_owned();
        Box::new(move |entry| match entry {
            _ if cut.is_cancelled() => WalkState::Quit,
            Ok(entry) => step(entry, &start, &mut visitor),
            // A folder that may not be read is passed by, as a search by hand would.
            Err(_) => WalkState::Continue,
        })
    });
    if cut.is_cancelled() { Err(Refusal(CANCELLED.into())) } else { Ok(n_passed.load(Relaxed)) }
}

fn step(entry: DirEntry, start: &Path, visitor: &mut impl Visitor) -> WalkState {
    let Some(kind) = entry.file_type() else { return WalkState::Continue };
    if kind.is_dir() {
        return if visitor.enters(entry.path()) { WalkState::Continue } else { WalkState::Skip };
    }
    if kind.is_file() {
        visitor.visit(Found::new(entry.into_path(), start));
    }
    WalkState::Continue
}

fn walker(start: &Path, is_folder: bool, n_passed: Arc<AtomicUsize>) -> WalkBuilder {
    let mut walker = WalkBuilder::new(start);
    walker.hidden(false).require_git(false).add_custom_ignore_filename(RIPGREP_IGNORE_FILE);
    // Read by us: what `.git` is may lead anywhere.
    walker.git_exclude(false);
    let repository = start.ancestors().find(|folder| folder.join(".git").is_dir());
    let exclude = repository.map(|folder| folder.join(".git/info/exclude"));
    walker.current_dir(repository.unwrap_or(start));
    if let Some(exclude) = exclude.filter(|exclude| is_fine_ignore_file(exclude)) {
        // A line of it that is no pattern is no reason not to search.
        let _ = walker.add_ignore(exclude);
    }
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    walker.threads(if is_folder { n_threads } else { 1 });
    walker.filter_entry(move |entry| {
        if entry.depth() > 0 && entry.file_name() == ".git" {
            return false;
        }
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        let is_fine = !is_folder || has_fine_ignore_files(entry.path());
        n_passed.fetch_add(usize::from(!is_fine), Relaxed);
        is_fine
    });
    walker
}

/// Tells whether a folder's ignore files may be read to their end: a link to a device has none.
fn has_fine_ignore_files(folder: &Path) -> bool {
    IGNORE_FILES.iter().all(|name| is_fine_ignore_file(&folder.join(name)))
}

fn is_fine_ignore_file(path: &Path) -> bool {
    // What is not there is not read.
    let Ok(found) = fs::metadata(path) else { return true };
    // Files of the system that never end say that they are empty.
    let is_endless = found.len() == 0 && path.is_symlink();
    found.is_file() && found.len() <= IGNORE_BYTES_MAX && !is_endless
}
