//! Finds a text exactly, with the line endings of the file.

use std::cmp::Reverse;
use std::ops::Range;

use super::place::{EditOccurrences, EditPlace, EditRequest, check_places, dominant_ending, max_matches};
use super::refusal::EditRefusal;

/// Finds the matches of the old text.
pub(super) fn find_places(file: &str, request: EditRequest<'_>) -> Result<Vec<EditPlace>, EditRefusal> {
    let with_lf = request.old.replace("\r\n", "\n");
    let with_crlf = with_lf.replace('\n', "\r\n");
    let mut variants = vec![request.old, &with_lf, &with_crlf];
    variants.sort_unstable();
    variants.dedup();
    let found = variants.into_iter().flat_map(|variant| {
        let starts = find_starts(file, variant, request.occurrences);
        starts.map(move |start| start..start + variant.len())
    });
    let found = remove_nested(found.collect(), request.occurrences);
    let starts: Vec<usize> = found.iter().map(|range| range.start).collect();
    check_places(file, &starts, request)?;
    let endings = LineEndings::new(file, request);
    Ok(found.into_iter().map(|range| endings.place_new_text(file, range)).collect())
}

/// Finds the starts of a text. For a single edit, overlapping matches count as different places.
pub(super) fn find_starts<'a>(
    file: &'a str,
    needle: &'a str,
    occurrences: EditOccurrences,
) -> Box<dyn Iterator<Item = usize> + 'a> {
    let first_len = needle.chars().next().map_or(1, char::len_utf8);
    let next = move |from: usize| file[from..].find(needle).map(|at| from + at);
    let n_max = max_matches(occurrences);
    match occurrences {
        EditOccurrences::All => Box::new(file.match_indices(needle).map(|(start, _)| start).take(n_max)),
        EditOccurrences::One => {
            let overlapping = std::iter::successors(next(0), move |start| next(start + first_len));
            Box::new(overlapping.take(n_max))
        }
    }
}

/// Removes matches inside another one: the LF of a CRLF is not a second place.
fn remove_nested(mut ranges: Vec<Range<usize>>, occurrences: EditOccurrences) -> Vec<Range<usize>> {
    ranges.sort_by_key(|found| (found.start, Reverse(found.end)));
    let mut end = 0;
    ranges.retain(|found| {
        let is_new = match occurrences {
            EditOccurrences::One => found.end > end,
            EditOccurrences::All => found.start >= end,
        };
        if is_new {
            end = found.end;
        }
        is_new
    });
    ranges
}

/// The new text with the line endings of a place.
struct LineEndings<'a> {
    old: &'a str,
    new: &'a str,
    with_lf: String,
    /// The line ending of most lines of the file; `None` for a single line.
    file_ending: Option<&'static str>,
}

impl<'a> LineEndings<'a> {
    fn new(file: &str, request: EditRequest<'a>) -> Self {
        let with_lf = request.new.replace("\r\n", "\n");
        Self { old: request.old, new: request.new, with_lf, file_ending: dominant_ending(file) }
    }

    fn place_new_text(&self, file: &str, range: Range<usize>) -> EditPlace {
        let found = &file[range.clone()];
        // An edit that changes only the line endings means them.
        let is_meant =
            found == self.old && found.contains('\r') && found.replace("\r\n", "\n") == self.with_lf;
        let text = match dominant_ending(found).or(self.file_ending) {
            Some(ending) if !is_meant => self.with_lf.replace('\n', ending),
            Some(_) | None => self.new.to_owned(),
        };
        EditPlace { range, text }
    }
}
