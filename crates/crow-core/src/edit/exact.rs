//! Finds a text letter by letter, in whichever line endings the file has it.

use std::cmp::Reverse;
use std::ops::Range;

use super::{Change, Occurrences, PLACES_SHOWN_MAX, Place, ending_for};

/// Finds the places of the old text.
pub(super) fn places(file: &str, change: Change<'_>) -> Vec<Place> {
    let with_lf = change.old.replace("\r\n", "\n");
    let with_crlf = with_lf.replace('\n', "\r\n");
    let mut spellings = vec![change.old, &with_lf, &with_crlf];
    spellings.sort_unstable();
    spellings.dedup();
    let mut found: Vec<Found> = Vec::new();
    for spelling in spellings {
        // Who writes CR meant it, and may want to change just that.
        let is_verbatim = spelling == change.old && spelling.contains('\r');
        let starts = starts(file, spelling, change.occurrences);
        found.extend(starts.map(|start| Found { range: start..start + spelling.len(), is_verbatim }));
    }
    let kept = distinct(found, change.occurrences);
    kept.into_iter().map(|found| place(file, change.new, found)).collect()
}

struct Found {
    range: Range<usize>,
    is_verbatim: bool,
}

/// For one place, places that overlap count: it matters which of them is meant.
fn starts<'a>(
    file: &'a str,
    spelling: &'a str,
    occurrences: Occurrences,
) -> Box<dyn Iterator<Item = usize> + 'a> {
    let first_len = spelling.chars().next().map_or(1, char::len_utf8);
    let next = move |from: usize| file[from..].find(spelling).map(|at| from + at);
    match occurrences {
        Occurrences::All => Box::new(file.match_indices(spelling).map(|(start, _)| start)),
        Occurrences::One => {
            let overlapping = std::iter::successors(next(0), move |start| next(start + first_len));
            Box::new(overlapping.take(PLACES_SHOWN_MAX))
        }
    }
}

/// Leaves out what lies within another: the LF of a CRLF is no second place.
fn distinct(mut found: Vec<Found>, occurrences: Occurrences) -> Vec<Found> {
    found.sort_by_key(|found| (found.range.start, Reverse(found.range.end)));
    let mut end = 0;
    found.retain(|found| {
        let is_new = match occurrences {
            Occurrences::One => found.range.end > end,
            Occurrences::All => found.range.start >= end,
        };
        if is_new {
            end = found.range.end;
        }
        is_new
    });
    found
}

fn place(file: &str, new: &str, found: Found) -> Place {
    let text = match ending_for(file, found.range.clone()) {
        Some(ending) if !found.is_verbatim => new.replace("\r\n", "\n").replace('\n', ending),
        Some(_) | None => new.to_owned(),
    };
    Place { start: found.range.start, range: found.range, text }
}
