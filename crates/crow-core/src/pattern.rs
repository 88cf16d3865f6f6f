//! Globs from users, models and repositories: a single way to compile them, with limits on their cost. Knows no files
//! or rules.

use std::path::Path;

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

/// A longer pattern lists files, and makes every comparison slow.
const BYTES_MAX: usize = 4096;

/// Levels of braces. The engine recurses for each of them.
const NESTING_MAX: usize = 8;

/// Wildcards and classes: each may match from every character of a path.
const WILDCARDS_MAX: usize = 128;

/// A compiled glob for paths. `*` and `?` stop at slashes, `**` does not, a backslash escapes.
#[derive(Debug, Clone)]
pub struct PathGlob(GlobSet);

/// Whether upper and lower case are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LetterCase {
    /// Case-sensitive.
    Sensitive,
    /// Case-insensitive, as on some file systems.
    Insensitive,
}

/// The reason why a glob is invalid. Fits after "the pattern".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GlobError {
    /// It is longer than any pattern for paths.
    #[error("is too long ({n_bytes} bytes, the limit is {BYTES_MAX})")]
    TooLong {
        /// The length in bytes.
        n_bytes: usize,
    },
    /// Nested braces.
    #[error("has more than {NESTING_MAX} levels of nested braces")]
    TooNested,
    /// Too many wildcards.
    #[error("has more than {WILDCARDS_MAX} wildcards")]
    TooManyWildcards,
    /// A syntax error, with its reason.
    #[error("is not a glob: {0}")]
    Syntax(String),
}

impl PathGlob {
    /// Checks a pattern without compiling it, in time and memory linear in its length.
    pub fn check_pattern(pattern: &str) -> Result<(), GlobError> {
        parse_glob(pattern, LetterCase::Sensitive).map(drop)
    }

    /// Checks only the cost of a pattern. Characters in a class count as outside of it.
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
                return Err(GlobError::TooNested);
            }
        }
        if n_wildcards > WILDCARDS_MAX { Err(GlobError::TooManyWildcards) } else { Ok(()) }
    }

    /// Compiles a pattern.
    pub fn compile(pattern: &str, case: LetterCase) -> Result<Self, GlobError> {
        let glob = parse_glob(pattern, case)?;
        // A set reports errors on which a single matcher panics.
        let set = GlobSetBuilder::new().add(glob).build();
        set.map(Self).map_err(|error| GlobError::Syntax(error.kind().to_string()))
    }

    /// Whether a path matches.
    pub fn is_match(&self, path: impl AsRef<Path>) -> bool {
        self.0.is_match(path)
    }
}

fn parse_glob(pattern: &str, case: LetterCase) -> Result<Glob, GlobError> {
    PathGlob::check_cost(pattern)?;
    let mut builder = GlobBuilder::new(pattern);
    builder.literal_separator(true).backslash_escape(true).case_insensitive(case == LetterCase::Insensitive);
    builder.build().map_err(|error| GlobError::Syntax(error.kind().to_string()))
}

#[cfg(test)]
mod tests;
