//! Finds a text letter by letter, in whichever line endings the file has it.

use std::cmp::Reverse;
use std::ops::Range;

use super::{
    EditOccurrences, EditPlace, EditRefusal, EditRequest, check_places, dominant_ending, max_matches,
};

/// Finds the places of the old text.
pub(super) fn find_places(file: &str, change: EditRequest<'_>) -> Result<Vec<EditPlace>, EditRefusal> {
    let with_lf = change.old.replace("\r\n", "\n");
    let with_crlf = with_lf.replace('\n', "\r\n");
    let mut spellings = vec![change.old, &with_lf, &with_crlf];
    spellings.sort_unstable();
    spellings.dedup();
    let found = spellings.into_iter().flat_map(|spelling| {
        let starts = find_starts(file, spelling, change.occurrences);
        starts.map(move |start| start..start + spelling.len())
    });
    let found = remove_nested(found.collect(), change.occurrences);
    let starts: Vec<usize> = found.iter().map(|range| range.start).collect();
    check_places(file, &starts, change)?;
    let endings = LineEndings::new(file, change);
    Ok(found.into_iter().map(|range| endings.place_new_text(file, range)).collect())
}

/// For one place, places that overlap count: it matters which of them is meant.
pub(super) fn find_starts<'a>(
    file: &'a str,
    spelling: &'a str,
    occurrences: EditOccurrences,
) -> Box<dyn Iterator<Item = usize> + 'a> {
    let first_len = spelling.chars().next().map_or(1, char::len_utf8);
    let next = move |from: usize| file[from..].find(spelling).map(|at| from + at);
    let n_sought = max_matches(occurrences);
    match occurrences {
        EditOccurrences::All => Box::new(file.match_indices(spelling).map(|(start, _)| start).take(n_sought)),
        EditOccurrences::One => {
            let overlapping = std::iter::successors(next(0), move |start| next(start + first_len));
            Box::new(overlapping.take(n_sought))
        }
    }
}

/// Leaves out what lies within another: the LF of a CRLF is no second place.
fn remove_nested(mut found: Vec<Range<usize>>, occurrences: EditOccurrences) -> Vec<Range<usize>> {
    found.sort_by_key(|found| (found.start, Reverse(found.end)));
    let mut end = 0;
    found.retain(|found| {
        let is_new = match occurrences {
            EditOccurrences::One => found.end > end,
            EditOccurrences::All => found.start >= end,
        };
        if is_new {
            end = found.end;
        }
        is_new
    });
    found
}

/// The new text in the line endings of a place.
struct LineEndings<'a> {
    old: &'a str,
    new: &'a str,
    with_lf: String,
    /// What most lines of the file end in; `None` when it has a single one.
    file: Option<&'static str>,
}

impl<'a> LineEndings<'a> {
    fn new(file: &str, change: EditRequest<'a>) -> Self {
        let with_lf = change.new.replace("\r\n", "\n");
        Self { old: change.old, new: change.new, with_lf, file: dominant_ending(file) }
    }

    fn place_new_text(&self, file: &str, range: Range<usize>) -> EditPlace {
        let found = &file[range.clone()];
        // Who changes nothing but the endings means them.
        let is_meant =
            found == self.old && found.contains('\r') && found.replace("\r\n", "\n") == self.with_lf;
        let text = match dominant_ending(found).or(self.file) {
            Some(ending) if !is_meant => self.with_lf.replace('\n', ending),
            Some(_) | None => self.new.to_owned(),
        };
        EditPlace { range, text }
    }
}
