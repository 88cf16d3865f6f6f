//! The places of an edit, as values. Knows no matcher's method.

use std::ops::Range;

use super::matcher::EditMatcher;
use super::refusal::{EditRefusal, PLACES_MAX, WRITTEN_BYTES_MAX};

/// The number of places that an edit may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditOccurrences {
    /// Exactly one; several places are an error.
    One,
    /// All places.
    All,
}

/// The result of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedEdit {
    /// The whole new text.
    pub text: String,
    /// The matcher that found the place.
    pub matcher: EditMatcher,
    /// The number of replaced places.
    pub n_replaced: usize,
    /// The first line that changed, from 1.
    pub line: u32,
}

/// The arguments of an edit, without the file.
#[derive(Clone, Copy)]
pub(super) struct EditRequest<'a> {
    pub(super) old: &'a str,
    pub(super) new: &'a str,
    pub(super) occurrences: EditOccurrences,
}

/// A match of the old text.
pub(super) struct EditPlace {
    /// The range to remove.
    pub(super) range: Range<usize>,
    /// The text to insert.
    pub(super) text: String,
}

/// The places of an edit, and the matcher that found them.
pub(super) struct EditHit {
    pub(super) matcher: EditMatcher,
    /// In file order, without overlaps.
    pub(super) places: Vec<EditPlace>,
}

/// Enough to show that a place is not unique.
const PLACES_SHOWN_MAX: usize = 10;

/// The byte order mark that some editors write.
pub(super) const BOM: char = '\u{feff}';

/// Rejects several places for a single edit, and too many for one edit.
pub(super) fn check_places(
    file: &str,
    starts: &[usize],
    request: EditRequest<'_>,
) -> Result<(), EditRefusal> {
    match request.occurrences {
        EditOccurrences::One if starts.len() > 1 => {
            let starts = starts.iter().take(PLACES_SHOWN_MAX);
            let mut lines: Vec<u32> = starts.map(|start| line_at(file, *start)).collect();
            lines.dedup();
            Err(EditRefusal::Ambiguous { lines })
        }
        EditOccurrences::All if starts.len() > PLACES_MAX => Err(EditRefusal::TooLarge),
        EditOccurrences::All if starts.len() * request.new.len() > WRITTEN_BYTES_MAX => {
            Err(EditRefusal::TooLarge)
        }
        EditOccurrences::One | EditOccurrences::All => Ok(()),
    }
}

/// The number of places to search for: one more than allowed shows that there are too many.
pub(super) fn max_matches(occurrences: EditOccurrences) -> usize {
    match occurrences {
        EditOccurrences::One => PLACES_SHOWN_MAX,
        EditOccurrences::All => PLACES_MAX + 1,
    }
}

/// Returns the line number, from 1, of byte `at`.
pub(super) fn line_at(file: &str, at: usize) -> u32 {
    count_newlines(&file.as_bytes()[..at]).saturating_add(1)
}

pub(super) fn count_newlines(bytes: &[u8]) -> u32 {
    let n_newlines = bytes.iter().filter(|&&byte| byte == b'\n').count();
    u32::try_from(n_newlines).unwrap_or(u32::MAX)
}

/// Returns the line ending of most lines; `None` without line ends.
pub(super) fn dominant_ending(text: &str) -> Option<&'static str> {
    let n_all = text.matches('\n').count();
    let n_crlf = text.matches("\r\n").count();
    match n_all {
        0 => None,
        _ if 2 * n_crlf > n_all => Some("\r\n"),
        _ => Some("\n"),
    }
}
