//! Finds a text inside lines, at any start and end: typographic punctuation equals plain, trailing white space is
//! ignored, and within a single line so is its amount, and beside symbols whether there is any. Unchanged parts keep the
//! file's characters.

use std::ops::Range;

use super::matcher::EditMatcher;
use super::place::{
    EditHit, EditOccurrences, EditPlace, EditRequest, check_places, dominant_ending, max_matches,
};
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
    let levels: &[FoldLevel] = match (request.old.contains('\n'), request.occurrences) {
        (true, _) => &[FoldLevel::Punctuation],
        (false, EditOccurrences::All) => &[FoldLevel::Punctuation, FoldLevel::Spacing],
        (false, EditOccurrences::One) => {
            &[FoldLevel::Punctuation, FoldLevel::Spacing, FoldLevel::SymbolSpacing]
        }
    };
    let mut hit = None;
    for fold in levels {
        if hit.is_some() && request.occurrences == EditOccurrences::All {
            break;
        }
        let places = find_places(file, request, *fold)?;
        if hit.is_none() && !places.is_empty() {
            hit = Some(EditHit { matcher: fold.matcher(), places });
        }
    }
    Ok(hit)
}

/// The differences that are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FoldLevel {
    /// Kinds of punctuation, and trailing white space.
    Punctuation,
    /// Also the amount of white space.
    Spacing,
    /// Also whether there is white space beside a symbol. The place begins and ends between words.
    SymbolSpacing,
}

impl FoldLevel {
    fn matcher(self) -> EditMatcher {
        match self {
            Self::Punctuation => EditMatcher::Punctuation,
            Self::Spacing => EditMatcher::Spacing,
            Self::SymbolSpacing => EditMatcher::SymbolSpacing,
        }
    }
}

fn find_places(file: &str, request: EditRequest<'_>, fold: FoldLevel) -> Result<Vec<EditPlace>, EditRefusal> {
    let (folded, old) = (fold_text(file, fold), fold_text(request.old, fold));
    let found: Vec<Range<usize>> = match fold {
        FoldLevel::Punctuation | FoldLevel::Spacing => {
            exact::find_starts(&folded, &old, request.occurrences).map(|at| at..at + old.len()).collect()
        }
        FoldLevel::SymbolSpacing => folded
            .match_indices(&old)
            .map(|(at, _)| at..at + old.len())
            .filter(|range| !is_inside_word(&folded, range.start) && !is_inside_word(&folded, range.end))
            .take(max_matches(request.occurrences))
            .collect(),
    };
    let Some(mut ranges) = unfold_ranges(file, fold, &found) else { return Ok(Vec::new()) };
    if fold == FoldLevel::SymbolSpacing {
        // The white space behind the place stays.
        for range in &mut ranges {
            range.end = range.start + file[range.clone()].trim_end_matches(is_blank).len();
        }
    }
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
        } else {
            match fold {
                FoldLevel::Punctuation => {
                    for (offset, char) in text[at..run_end].char_indices() {
                        let piece = at + offset..at + offset + char.len_utf8();
                        visit(piece.clone(), compare::plain_equivalent(char).unwrap_or(&text[piece]));
                    }
                }
                FoldLevel::Spacing => visit(at..run_end, " "),
                FoldLevel::SymbolSpacing => {
                    let is_between_words =
                        text[..at].ends_with(is_word_char) && rest.starts_with(is_word_char);
                    if is_between_words {
                        visit(at..run_end, " ");
                    }
                }
            }
            at = run_end;
        }
    }
}

/// Whether a position is between two characters of a word.
fn is_inside_word(text: &str, at: usize) -> bool {
    text[..at].ends_with(is_word_char) && text[at..].starts_with(is_word_char)
}

fn is_word_char(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

fn is_blank(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\r') || compare::plain_equivalent(char) == Some(" ")
}

fn fold_text(text: &str, fold: FoldLevel) -> String {
    let mut folded = String::with_capacity(text.len());
    for_each_piece(text, fold, |_, plain| folded.push_str(plain));
    folded
}

/// Maps a range of a text to its folded form; `None` if it begins or ends inside a piece.
fn fold_range(text: &str, fold: FoldLevel, range: &Range<usize>) -> Option<Range<usize>> {
    let (mut n_folded, mut folded, mut is_split) = (0, 0..0, false);
    for_each_piece(text, fold, |piece, plain| {
        is_split |= [range.start, range.end].iter().any(|bound| piece.start < *bound && *bound < piece.end);
        n_folded += plain.len();
        if piece.end <= range.start {
            folded.start = n_folded;
        }
        if piece.end <= range.end {
            folded.end = n_folded;
        }
    });
    (!is_split).then_some(folded)
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
        let folded = fold_range(self.old, self.fold, &piece)?;
        let range = unfold_ranges(self.text, self.fold, &[folded])?.into_iter().next()?;
        self.text.get(range)
    }
}

/// Splits a text into words and single other characters.
fn split_tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let n_bytes = match is_word_char(first) {
            true => rest.find(|char| !is_word_char(char)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (token, after) = rest.split_at(n_bytes);
        tokens.push(token);
        rest = after;
    }
    tokens
}
