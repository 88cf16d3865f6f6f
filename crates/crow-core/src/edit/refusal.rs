//! The reasons why an edit is not applied, and its limits.

use super::nearest::{NearestText, nearest_hint};

/// The reason why an edit was not applied, with the next step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditRefusal {
    /// The old text is empty and the file is not.
    #[error(
        "the old text is empty, which creates a file, but this file has content; give the lines to replace, or \
         write the whole file"
    )]
    EmptyOldText,
    /// The new text contains a placeholder for omitted lines.
    #[error(
        "line {line} of the new text is a placeholder for omitted lines (`{text}`); write them out, or replace less"
    )]
    Placeholder {
        /// The line of the new text, from 1.
        line: usize,
        /// The placeholder line.
        text: String,
    },
    /// The old and the new text are equal.
    #[error("the old and the new text are equal; give the text as it shall become")]
    EqualTexts,
    /// The file would not change.
    #[error("the edit changes nothing: the file already contains the new text")]
    NoChange,
    /// The old text does not occur.
    #[error("the old text is not in the file; read the file again and copy the lines exactly{}", nearest_hint(nearest.as_ref()))]
    NotFound {
        /// The most similar place, if it is similar enough to help.
        nearest: Option<NearestText>,
    },
    /// The old text occurs in several places.
    #[error(
        "the old text is in more than one place ({}); add lines around it until it is unique, \
         or replace all of them",
        format_lines(lines)
    )]
    Ambiguous {
        /// The first of the lines where it begins, from 1.
        lines: Vec<u32>,
    },
    /// The old text matches, but the new one cannot be indented accordingly.
    #[error(
        "the old text is at line {line}, but with an indentation that the new text cannot follow; \
         copy the lines with their indentation:\n{text}"
    )]
    IndentMismatch {
        /// The line where it begins, from 1.
        line: u32,
        /// The text there, possibly truncated.
        text: String,
    },
    /// The line to insert after does not exist.
    #[error("there is no line {line}; the file has {n_lines} lines")]
    NoLine {
        /// The line, from 1.
        line: usize,
        n_lines: usize,
    },
    /// Too many places, or too much text to write.
    #[error(
        "the edit is too large: the limits are {PLACES_MAX} places and {} MiB; replace less at a time",
        WRITTEN_BYTES_MAX / (1024 * 1024)
    )]
    TooLarge,
}

pub(super) fn format_lines(lines: &[u32]) -> String {
    let numbers: Vec<String> = lines.iter().map(u32::to_string).collect();
    let noun = if lines.len() == 1 { "line" } else { "lines" };
    format!("{noun} {}", numbers.join(", "))
}

/// More is a task for a program.
pub(super) const PLACES_MAX: usize = 100_000;

/// A short old text can make an edit larger than its arguments; the limit is the size of a file that can be read
/// again.
pub(super) const WRITTEN_BYTES_MAX: usize = 16 * 1024 * 1024;
