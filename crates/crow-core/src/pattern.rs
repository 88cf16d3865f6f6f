//! Globs that come from people, models and repositories: one way to compile them, with bounds on what they cost.
//! Knows no file and no rule.

use std::path::Path;

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

/// A longer pattern lists files, and costs that much in every comparison.
const BYTES_MAX: usize = 4096;

/// Levels of braces. The engine calls itself for each of them.
const NESTING_MAX: usize = 8;

/// Wildcards and classes: each may begin anew at every character of a path.
const WILDCARDS_MAX: usize = 128;

/// A compiled glob for paths. `*` and `?` stop at slashes, `**` does not, a backslash escapes.
#[derive(Debug, Clone)]
pub struct PathGlob(GlobSet);

/// Whether upper and lower case are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LetterCase {
    /// They differ.
    Exact,
    /// They are the same, as on some file systems.
    Either,
}

/// Why a glob is not compiled. Fits after "the pattern".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GlobError {
    /// It is longer than any pattern for paths.
    #[error("is too long ({n_bytes} bytes, the limit is {BYTES_MAX})")]
    TooLong {
        /// Its length.
        n_bytes: usize,
    },
    /// Braces within braces.
    #[error("has braces within braces beyond {NESTING_MAX} levels")]
    TooDeep,
    /// Too much of it may stand for anything.
    #[error("has more than {WILDCARDS_MAX} wildcards")]
    TooWild,
    /// It cannot be read; why.
    #[error("is not a glob: {0}")]
    Syntax(String),
}

impl PathGlob {
    /// Checks a pattern without compiling it, which takes no more time and memory than the pattern is long.
    pub fn check_pattern(pattern: &str) -> Result<(), GlobError> {
        parse_glob(pattern, LetterCase::Exact).map(drop)
    }

    /// Checks only what a pattern can cost at most. Characters in a class count as if they stood outside.
    pub fn check_cost(pattern: &str) -> Result<(), GlobError> {
        if pattern.len() > BYTES_MAX {
            return Err(GlobError::TooLong { n_bytes: pattern.len() });
        }
        let (mut nesting, mut n_wildcards) = (0_usize, 0);
        let mut bytes = pattern.bytes();
        while let Some(byte) = bytes.next() {
            match byte {
                b'\\' => drop(bytes.next()),
                b'{' => nesting += 1,
                b'}' => nesting = nesting.saturating_sub(1),
                b'*' | b'?' | b'[' => n_wildcards += 1,
                _ => {}
            }
            if nesting > NESTING_MAX {
                return Err(GlobError::TooDeep);
            }
        }
        if n_wildcards > WILDCARDS_MAX { Err(GlobError::TooWild) } else { Ok(()) }
    }

    /// Compiles a pattern.
    pub fn compile(pattern: &str, case: LetterCase) -> Result<Self, GlobError> {
        let glob = parse_glob(pattern, case)?;
        // The set reports what a single matcher panics about.
        let set = GlobSetBuilder::new().add(glob).build();
        set.map(Self).map_err(|error| GlobError::Syntax(error.kind().to_string()))
    }

    /// Whether a path fits.
    pub fn is_match(&self, path: impl AsRef<Path>) -> bool {
        self.0.is_match(path)
    }
}

fn parse_glob(pattern: &str, case: LetterCase) -> Result<Glob, GlobError> {
    PathGlob::check_cost(pattern)?;
    let mut builder = GlobBuilder::new(pattern);
    builder.literal_separator(true).backslash_escape(true).case_insensitive(case == LetterCase::Either);
    builder.build().map_err(|error| GlobError::Syntax(error.kind().to_string()))
}

#[cfg(test)]
mod tests;
