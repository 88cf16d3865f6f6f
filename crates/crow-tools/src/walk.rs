//! The files of a folder that a project itself would look at, and patterns for their names.
//! Blocks; knows no tool.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use ignore::WalkBuilder;
use tokio_util::sync::CancellationToken;

use crate::tool::{CANCELLED, Refusal};

/// A pattern for paths. One without a slash is about the name alone, in whatever folder.
pub(crate) struct NamePattern {
    matcher: GlobMatcher,
    about: About,
}

enum About {
    Name,
    Relative,
    Absolute,
}

impl NamePattern {
    pub(crate) fn new(pattern: &str) -> Result<Self, Refusal> {
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let about = match pattern.find('/') {
            None => About::Name,
            Some(0) => About::Absolute,
            Some(_) => About::Relative,
        };
        let glob = GlobBuilder::new(pattern).literal_separator(true).build();
        let glob = glob.map_err(|error| Refusal(format!("the pattern is not a glob: {error}")))?;
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

/// What a visitor wants next.
pub(crate) enum Walk {
    On,
    Stop,
}

/// Visits files in the order of their paths. Ignored files and `.git` are left out, links are not followed.
pub(crate) fn walk(
    start: &Path,
    shown: &str,
    cut: &CancellationToken,
    mut visit: impl FnMut(Found) -> Walk,
) -> Result<(), Refusal> {
    if let Err(error) = std::fs::metadata(start) {
        return Err(Refusal(format!("could not search {shown}: {error}")));
    }
    let mut walker = WalkBuilder::new(start);
    walker.hidden(false).require_git(false).sort_by_file_path(Ord::cmp);
    walker.filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git");
    for entry in walker.build() {
        if cut.is_cancelled() {
            return Err(Refusal(CANCELLED.into()));
        }
        // A folder that may not be read is passed by, as a search by hand would.
        let Ok(entry) = entry else { continue };
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let absolute = entry.into_path();
        let relative = absolute.strip_prefix(start).unwrap_or(&absolute).to_owned();
        if let Walk::Stop = visit(Found { absolute, relative }) {
            break;
        }
    }
    Ok(())
}
