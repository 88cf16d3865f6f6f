//! Applies an edit to a text. Knows no files, encodings or tools.
//!
//! The matchers go from strict to loose, and every line of the old text must match by the same one. None accepts text
//! that is only similar: similarity is used for the hint of a refusal. An inexact match must also be unique for the
//! loosest matcher, since the model may have meant the other place.

mod compare;
mod copied_markup;
mod escapes;
mod exact;
mod indent;
mod inline;
mod lines;
mod nearest;
mod placeholder;
mod sequence;

use std::fmt;
use std::ops::Range;

pub use nearest::NearestText;

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

/// The comparison of the old text with the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EditMatcher {
    /// Exact, except for the line endings.
    Exact,
    /// Whole lines, ignoring trailing white space.
    LineTrimmed,
    /// Whole lines, ignoring a common difference in indentation.
    Indentation,
    /// Whole lines or part of one, with each run of spaces and tabs as one space.
    Spacing,
    /// Typographic punctuation as plain: whole lines with all of the above, or any part of lines.
    Punctuation,
    /// Whole lines with all of the above, ignoring blank lines between them.
    BlankLines,
    /// Any of the above after decoding escapes that the model wrote by mistake.
    Escapes,
    /// From the start of a line, after removing copied line numbers.
    LineNumbers,
    /// Any of the above after removing a code fence around the text.
    Fence,
}

impl EditMatcher {
    /// The matchers that compare line by line, from strict to loose.
    const LINE_BY_LINE: [Self; 4] = [Self::LineTrimmed, Self::Indentation, Self::Spacing, Self::Punctuation];

    /// Describes the comparison to the model and the user.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::LineTrimmed => "ignoring trailing spaces",
            Self::Indentation => "ignoring indentation",
            Self::Spacing => "ignoring the amount of white space",
            Self::Punctuation => "ignoring typographic quotes and dashes",
            Self::BlankLines => "ignoring blank lines",
            Self::Escapes => "decoding escapes",
            Self::LineNumbers => "without copied line numbers",
            Self::Fence => "without the code fence around it",
        }
    }
}

impl fmt::Display for EditMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

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
    /// Too many places, or too much text to write.
    #[error(
        "the edit is too large: the limits are {PLACES_MAX} places and {} MiB; replace less at a time",
        WRITTEN_BYTES_MAX / (1024 * 1024)
    )]
    TooLarge,
}

fn nearest_hint(nearest: Option<&NearestText>) -> String {
    nearest.map_or_else(String::new, |found| {
        format!(
            "; the most similar place is line {} ({} % similar, the first difference is in line {}):\n{}",
            found.line, found.similarity, found.first_difference, found.text
        )
    })
}

fn format_lines(lines: &[u32]) -> String {
    let numbers: Vec<String> = lines.iter().map(u32::to_string).collect();
    let noun = if lines.len() == 1 { "line" } else { "lines" };
    format!("{noun} {}", numbers.join(", "))
}

/// The arguments of an edit, without the file.
#[derive(Clone, Copy)]
struct EditRequest<'a> {
    old: &'a str,
    new: &'a str,
    occurrences: EditOccurrences,
}

/// A match of the old text.
struct EditPlace {
    /// The range to remove.
    range: Range<usize>,
    /// The text to insert.
    text: String,
}

/// The places of an edit, and the matcher that found them.
struct EditHit {
    matcher: EditMatcher,
    /// In file order, without overlaps.
    places: Vec<EditPlace>,
}

/// Enough to show that a place is not unique.
const PLACES_SHOWN_MAX: usize = 10;

/// More is a task for a program.
const PLACES_MAX: usize = 100_000;

/// A short old text can make an edit larger than its arguments; the limit is the size of a file that can be read
/// again.
const WRITTEN_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The byte order mark that some editors write.
const BOM: char = '\u{feff}';

/// Replaces `old` with `new` in the text of a file. An empty `old` fills an empty file.
pub fn apply_edit(
    file: &str,
    old: &str,
    new: &str,
    occurrences: EditOccurrences,
) -> Result<AppliedEdit, EditRefusal> {
    let (old, new) = strip_boms(file, old, new);
    if old.is_empty() {
        return fill_empty_file(file, new);
    }
    if old == new {
        return Err(EditRefusal::NoChange);
    }
    if let Some((line, text)) = placeholder::find_placeholder(old, new) {
        return Err(EditRefusal::Placeholder { line, text });
    }
    if let Some(hit) = find_hit(file, EditRequest { old, new, occurrences })? {
        return apply_hit(file, &hit);
    }
    if let Some(applied_edit) = apply_numbered(file, old, new)? {
        return Ok(applied_edit);
    }
    let escaped =
        escapes::unescaped_readings(old, new).into_iter().map(|texts| (EditMatcher::Escapes, texts));
    let fenced = copied_markup::strip_fence(old, new).map(|texts| (EditMatcher::Fence, texts));
    for (matcher, (old, new)) in escaped.chain(fenced) {
        if !old.is_empty()
            && let Some(hit) = find_hit(file, EditRequest { old: &old, new: &new, occurrences })?
        {
            return apply_hit(file, &EditHit { matcher, ..hit });
        }
    }
    Err(EditRefusal::NotFound { nearest: nearest::find_nearest(file, old) })
}

/// Removes the byte order mark from both texts: the file keeps its own, or none.
fn strip_boms<'a>(file: &str, old: &'a str, new: &'a str) -> (&'a str, &'a str) {
    // In the middle of a file it is an ordinary character.
    let is_meant = old.starts_with(BOM) && !file.starts_with(BOM) && file.contains(old);
    if is_meant {
        return (old, new);
    }
    (old.strip_prefix(BOM).unwrap_or(old), new.strip_prefix(BOM).unwrap_or(new))
}

/// Fills an empty file.
fn fill_empty_file(file: &str, new: &str) -> Result<AppliedEdit, EditRefusal> {
    match (file.strip_prefix(BOM).unwrap_or(file), new) {
        ("", "") => Err(EditRefusal::NoChange),
        ("", _) => Ok(AppliedEdit {
            text: format!("{file}{new}"),
            matcher: EditMatcher::Exact,
            n_replaced: 1,
            line: 1,
        }),
        (_, _) => Err(EditRefusal::EmptyOldText),
    }
}

/// Applies an edit with copied line numbers at the start of a line; all readings of the numbers must give the same
/// result.
fn apply_numbered(file: &str, old: &str, new: &str) -> Result<Option<AppliedEdit>, EditRefusal> {
    let mut applied_edit: Option<AppliedEdit> = None;
    for copied_markup::UnnumberedTexts { old, new, line } in copied_markup::strip_line_numbers(old, new) {
        if old.trim().is_empty() || old == new {
            continue;
        }
        let request = EditRequest { old: &old, new: &new, occurrences: EditOccurrences::One };
        let Some(hit) = find_hit(file, request)? else { continue };
        let start = hit.places.first().map_or(0, |place| place.range.start);
        let is_exact = hit.matcher == EditMatcher::Exact;
        let at = if is_exact { start } else { line_start(file, start) };
        let applied = apply_hit(file, &hit)?;
        if !copied_markup::is_in_place(file, &applied, at, line) {
            continue;
        }
        match &applied_edit {
            Some(other) if other.text != applied.text => return Ok(None),
            Some(_) | None => {
                applied_edit = Some(AppliedEdit { matcher: EditMatcher::LineNumbers, ..applied });
            }
        }
    }
    Ok(applied_edit)
}

fn line_start(file: &str, at: usize) -> usize {
    file[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

fn find_hit(file: &str, request: EditRequest<'_>) -> Result<Option<EditHit>, EditRefusal> {
    let places = exact::find_places(file, request)?;
    if !places.is_empty() {
        check_indentation(file, &places, request)?;
        return Ok(Some(EditHit { matcher: EditMatcher::Exact, places }));
    }
    match lines::find_hit(file, request)? {
        Some(hit) if hit.matcher < EditMatcher::Punctuation => Ok(Some(hit)),
        whole_lines => Ok(inline::find_hit(file, request)?.or(whole_lines)),
    }
}

/// Rejects a place inside the indentation of a line if the old text also occurs elsewhere as whole lines: its
/// indentation differs from both, so that the intended one is unknown.
fn check_indentation(file: &str, places: &[EditPlace], request: EditRequest<'_>) -> Result<(), EditRefusal> {
    let (EditOccurrences::One, [EditPlace { range, .. }]) = (request.occurrences, places) else {
        return Ok(());
    };
    let before = &file[line_start(file, range.start)..range.start];
    let is_inside = request.old.starts_with([' ', '\t']) && !before.is_empty() && compare::is_blank(before);
    if !is_inside {
        return Ok(());
    }
    let mut starts = lines::find_other_starts(file, request, range);
    starts.push(range.start);
    starts.sort_unstable();
    check_places(file, &starts, request)
}

/// Rejects several places for a single edit, and too many for one edit.
fn check_places(file: &str, starts: &[usize], request: EditRequest<'_>) -> Result<(), EditRefusal> {
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
fn max_matches(occurrences: EditOccurrences) -> usize {
    match occurrences {
        EditOccurrences::One => PLACES_SHOWN_MAX,
        EditOccurrences::All => PLACES_MAX + 1,
    }
}

fn apply_hit(file: &str, hit: &EditHit) -> Result<AppliedEdit, EditRefusal> {
    let mut text = String::with_capacity(file.len());
    let mut n_copied = 0;
    for place in &hit.places {
        text.push_str(&file[n_copied..place.range.start]);
        text.push_str(&place.text);
        n_copied = place.range.end;
    }
    text.push_str(&file[n_copied..]);
    if text == file {
        return Err(EditRefusal::NoChange);
    }
    let n_same = file.bytes().zip(text.bytes()).take_while(|(before, after)| before == after).count();
    let line = count_newlines(&file.as_bytes()[..n_same]).saturating_add(1);
    Ok(AppliedEdit { text, matcher: hit.matcher, n_replaced: hit.places.len(), line })
}

/// Returns the line number, from 1, of byte `at`.
fn line_at(file: &str, at: usize) -> u32 {
    count_newlines(&file.as_bytes()[..at]).saturating_add(1)
}

fn count_newlines(bytes: &[u8]) -> u32 {
    let n_newlines = bytes.iter().filter(|&&byte| byte == b'\n').count();
    u32::try_from(n_newlines).unwrap_or(u32::MAX)
}

/// Returns the line ending of most lines; `None` without line ends.
fn dominant_ending(text: &str) -> Option<&'static str> {
    let n_all = text.matches('\n').count();
    let n_crlf = text.matches("\r\n").count();
    match n_all {
        0 => None,
        _ if 2 * n_crlf > n_all => Some("\r\n"),
        _ => Some("\n"),
    }
}

#[cfg(test)]
mod tests;
