//! Finds a text inside lines, at any start and end: typographic punctuation equals plain, trailing white space is
//! ignored, and within a single line so is its amount. Unchanged parts keep the file's characters.

use std::ops::Range;

use super::matcher::EditMatcher;
use super::place::{EditHit, EditOccurrences, EditPlace, EditRequest, check_places, dominant_ending};
use super::refusal::EditRefusal;
use super::{compare, exact};
use crate::text_diff::{DiffOp, DiffTag, TextDiff};

/// For longer texts, unchanged parts are not preserved; the whole text is replaced.
const COMPARED_BYTES_MAX: usize = 16 * 1024;

/// Finds the places of the old text; a single place must also be unique by the looser comparison.
pub(super) fn find_hit(file: &str, request: EditRequest<'_>) -> Result<Option<EditHit>, EditRefusal> {
    // Punctuation alone is too unspecific.
    if !request.old.contains(char::is_alphanumeric) {
        return Ok(None);
    }
    let is_one_line = !request.old.contains('\n');
    let strict = find_places(file, request, FoldLevel::Punctuation)?;
    if is_one_line && (strict.is_empty() || request.occurrences == EditOccurrences::One) {
        let loose = find_places(file, request, FoldLevel::Spacing)?;
        if strict.is_empty() {
            return Ok(
                (!loose.is_empty()).then_some(EditHit { matcher: EditMatcher::Spacing, places: loose })
            );
        }
    }
    Ok((!strict.is_empty()).then_some(EditHit { matcher: EditMatcher::Punctuation, places: strict }))
}

/// The differences that are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FoldLevel {
    /// Kinds of punctuation, and trailing white space.
    Punctuation,
    /// Also the amount of white space.
    Spacing,
}

fn find_places(file: &str, request: EditRequest<'_>, fold: FoldLevel) -> Result<Vec<EditPlace>, EditRefusal> {
    let (folded, old) = (fold_text(file, fold), fold_text(request.old, fold));
    let found: Vec<Range<usize>> = exact::find_starts(&folded, &old, request.occurrences)
        .map(|start| start..start + old.len())
        .collect();
    let Some(ranges) = unfold_ranges(file, fold, &found) else { return Ok(Vec::new()) };
    let starts: Vec<usize> = ranges.iter().map(|range| range.start).collect();
    check_places(file, &starts, request)?;
    let ending = dominant_ending(file).unwrap_or("\n");
    let place = |range: Range<usize>| {
        let text =
            merge_unchanged(&file[range.clone()], request, fold).replace("\r\n", "\n").replace('\n', ending);
        EditPlace { range, text }
    };
    Ok(ranges.into_iter().map(place).collect())
}

/// Calls `visit` with the range of each piece of a text and its comparison form.
fn for_each_piece(text: &str, fold: FoldLevel, mut visit: impl FnMut(Range<usize>, &str)) {
    let mut at = 0;
    while let Some(char) = text[at..].chars().next() {
        let end = at + char.len_utf8();
        if !is_blank(char) {
            match compare::plain_equivalent(char) {
                Some(plain) => visit(at..end, plain),
                None => visit(at..end, &text[at..end]),
            }
            at = end;
            continue;
        }
        let rest = text[at..].trim_start_matches(is_blank);
        let run_end = text.len() - rest.len();
        if rest.starts_with('\n') {
            visit(at..run_end + 1, "\n");
            at = run_end + 1;
        } else if fold == FoldLevel::Spacing {
            visit(at..run_end, " ");
            at = run_end;
        } else {
            for (offset, char) in text[at..run_end].char_indices() {
                let piece = at + offset..at + offset + char.len_utf8();
                visit(piece.clone(), compare::plain_equivalent(char).unwrap_or(&text[piece]));
            }
            at = run_end;
        }
    }
}

fn is_blank(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\r') || compare::plain_equivalent(char) == Some(" ")
}

fn fold_text(text: &str, fold: FoldLevel) -> String {
    let mut folded = String::with_capacity(text.len());
    for_each_piece(text, fold, |_, plain| folded.push_str(plain));
    folded
}

/// Maps ranges of the folded text to the original; `None` if one begins or ends inside a character.
fn unfold_ranges(text: &str, fold: FoldLevel, ranges: &[Range<usize>]) -> Option<Vec<Range<usize>>> {
    let mut bounds: Vec<usize> = ranges.iter().flat_map(|range| [range.start, range.end]).collect();
    bounds.sort_unstable();
    bounds.dedup();
    let (mut n_folded, mut offsets, mut next) = (0, std::collections::HashMap::new(), 0);
    let mut record = |at: usize, n_folded: usize| {
        while bounds.get(next).is_some_and(|bound| *bound < n_folded) {
            next += 1;
        }
        if bounds.get(next) == Some(&n_folded) {
            // An ignored character belongs to the piece before it.
            offsets.insert(n_folded, at);
        }
    };
    for_each_piece(text, fold, |range, plain| {
        record(range.start, n_folded);
        n_folded += plain.len();
        record(range.end, n_folded);
    });
    let place = |range: &Range<usize>| Some(*offsets.get(&range.start)?..*offsets.get(&range.end)?);
    ranges.iter().map(place).collect()
}

/// Returns the new text with the file's characters wherever it equals the old one.
fn merge_unchanged(found: &str, request: EditRequest<'_>, fold: FoldLevel) -> String {
    if request.old.len().max(request.new.len()) > COMPARED_BYTES_MAX {
        return request.new.to_owned();
    }
    let old: Vec<&str> = request.old.split_inclusive('\n').collect();
    let new: Vec<&str> = request.new.split_inclusive('\n').collect();
    let found = FoundText { text: found, old: request.old, fold };
    let mut text = String::with_capacity(request.new.len());
    let diff = TextDiff::compare_tokens(old.clone(), new.clone());
    for op in diff.ops() {
        let (_, from, to) = op.as_tag_tuple();
        let mut at = old[..from.start].iter().map(|line| line.len()).sum::<usize>();
        let lines = to.clone().map(|at| new[at]);
        if from.len() != to.len() {
            text.extend(lines);
            continue;
        }
        for (old, new) in from.map(|at| old[at]).zip(lines) {
            text.push_str(&found.merge_line(at, old, new));
            at += old.len();
        }
    }
    text
}

/// The file's text for an old text.
struct FoundText<'a> {
    text: &'a str,
    old: &'a str,
    fold: FoldLevel,
}

impl FoundText<'_> {
    /// Merges a new line with the old one that begins at `start`. If they have little in common, the new line is used
    /// as it is.
    fn merge_line(&self, start: usize, old: &str, new: &str) -> String {
        let old_tokens = split_tokens(old);
        let diff = TextDiff::compare_tokens(old_tokens.clone(), split_tokens(new));
        let n_letters = |tokens: &[&str]| {
            tokens
                .iter()
                .filter(|token| token.starts_with(char::is_alphanumeric))
                .map(|token| token.len())
                .sum::<usize>()
        };
        let is_same = |op: &&DiffOp| op.tag() == DiffTag::Equal;
        let n_same: usize = diff.ops().iter().filter(is_same).map(|op| n_letters(diff.old_tokens(op))).sum();
        if 2 * n_same < n_letters(&old_tokens) {
            return new.to_owned();
        }
        let mut text = String::with_capacity(new.len());
        for op in diff.ops() {
            let written = diff.new_tokens(op).concat();
            let before = start + old_tokens[..op.old_range().start].concat().len();
            let original =
                if is_same(&op) { self.original_piece(before..before + written.len()) } else { None };
            text.push_str(original.unwrap_or(&written));
        }
        text
    }

    /// Returns the file's text for a piece of the old text; `None` if the piece has no boundaries there.
    fn original_piece(&self, piece: Range<usize>) -> Option<&str> {
        let n_folded = |end: usize| fold_text(&self.old[..end], self.fold).len();
        let bounds = n_folded(piece.start)..n_folded(piece.end);
        let is_whole = bounds.len() == fold_text(&self.old[piece], self.fold).len();
        let range = unfold_ranges(self.text, self.fold, &[bounds])?.into_iter().next()?;
        if is_whole { self.text.get(range) } else { None }
    }
}

/// Splits a text into words and single other characters.
fn split_tokens(text: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let n_bytes = match is_word(first) {
            true => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (token, after) = rest.split_at(n_bytes);
        tokens.push(token);
        rest = after;
    }
    tokens
}
