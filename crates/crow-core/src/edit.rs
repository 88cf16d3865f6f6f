//! Where an edit lands. Takes texts and gives a text back; must never know of files, encodings or tools.
//!
//! Matchers go from strict to loose, and every line of the old text has to match by the matcher that hits.
//! None of them takes what is merely similar: that is for the hint in a refusal, where it can do no harm.
//! A place that is not exact has to be the only one for the loosest matcher too, whichever hits first:
//! what a model wrote inexactly may just as well have been meant for the other one.

mod compare;
mod copied;
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

/// How many places an edit is meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditOccurrences {
    /// Exactly one; more are a refusal.
    One,
    /// Every one there is.
    All,
}

/// An edit that landed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedEdit {
    /// The whole text after it.
    pub text: String,
    /// What found the place.
    pub matcher: EditMatcher,
    /// In how many places it landed.
    pub n_replaced: usize,
    /// The first line that changed, from 1.
    pub line: u32,
}

/// How the old text was compared with the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EditMatcher {
    /// Letter by letter, apart from the kind of line ending.
    Exact,
    /// Whole lines, whatever white space they end in.
    LineTrimmed,
    /// Whole lines, all indented more or less by the same amount.
    Indentation,
    /// Whole lines or a part of one, any run of spaces and tabs taken for one space.
    Spacing,
    /// Typographic punctuation taken for plain: whole lines, on top of all before, or any part of them.
    Punctuation,
    /// Whole lines, blank lines between them left out, on top of all before.
    BlankLines,
    /// As any of these, once the escapes that a model wrote by mistake are read as what they stand for.
    Escapes,
    /// From the beginning of a line, once the line numbers that a model copied are taken away.
    LineNumbers,
    /// As any of these, once the fence that a model put around a text is taken away.
    Fence,
}

impl EditMatcher {
    /// Those that compare whole lines one by one, from strict to loose.
    const LINE_BY_LINE: [Self; 4] = [Self::LineTrimmed, Self::Indentation, Self::Spacing, Self::Punctuation];

    /// Says how it compared, in words for the model and the person.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::LineTrimmed => "ignoring trailing spaces",
            Self::Indentation => "ignoring indentation",
            Self::Spacing => "ignoring the amount of white space",
            Self::Punctuation => "ignoring typographic quotes and dashes",
            Self::BlankLines => "ignoring blank lines",
            Self::Escapes => "reading escapes as what they stand for",
            Self::LineNumbers => "without the line numbers that were copied",
            Self::Fence => "without the code fence around it",
        }
    }
}

impl fmt::Display for EditMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why an edit did not land, and what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditRefusal {
    /// There is nothing to look for, and something in the file.
    #[error(
        "the old text is empty, which begins a new file, and this one has something in it; give the lines to \
         replace, or write the whole file"
    )]
    Empty,
    /// The new text leaves out what is to stay.
    #[error(
        "line {line} of the new text stands for lines that it leaves out (`{text}`); write them out, or replace less"
    )]
    Placeholder {
        /// The line of the new text, from 1.
        line: usize,
        /// What it says.
        text: String,
    },
    /// The file would stay as it is.
    #[error("the edit changes nothing: the new text is what the file says already")]
    Same,
    /// The old text is nowhere.
    #[error("the old text is not in the file; read the file again and copy the lines exactly{}", nearest_hint(nearest.as_ref()))]
    NotFound {
        /// The most similar place, if one is similar enough to help.
        nearest: Option<NearestText>,
    },
    /// The old text is in several places.
    #[error(
        "the old text is in more than one place ({}); add lines around it until it names one place, \
         or replace all of them",
        format_lines(lines)
    )]
    Ambiguous {
        /// The lines where it begins, from 1; the first few of them.
        lines: Vec<u32>,
    },
    /// The old text is there, but the new one cannot be indented to match.
    #[error(
        "the old text is at line {line}, but indented there in a way that the new text cannot follow; \
         copy the lines with their indentation:\n{text}"
    )]
    Unfit {
        /// The line where it begins, from 1.
        line: u32,
        /// What it says, the beginning of it at least.
        text: String,
    },
    /// All of the places are too many, or too much would be written to them.
    #[error(
        "that is too much for one edit, which may change {PLACES_MAX} places and write {} MiB; replace less at a time",
        WRITTEN_BYTES_MAX / (1024 * 1024)
    )]
    TooMuch,
}

fn nearest_hint(nearest: Option<&NearestText>) -> String {
    nearest.map_or_else(String::new, |near| {
        format!(
            "; the most similar place is line {} ({} % alike, the first difference is in line {}):\n{}",
            near.line, near.similarity, near.differs, near.text
        )
    })
}

fn format_lines(lines: &[u32]) -> String {
    let numbers: Vec<String> = lines.iter().map(u32::to_string).collect();
    let noun = if lines.len() == 1 { "line" } else { "lines" };
    format!("{noun} {}", numbers.join(", "))
}

/// What an edit is made of, apart from the file.
#[derive(Clone, Copy)]
struct EditRequest<'a> {
    old: &'a str,
    new: &'a str,
    occurrences: EditOccurrences,
}

/// A place where the old text was found.
struct EditPlace {
    /// What to take out.
    range: Range<usize>,
    /// What to put in.
    text: String,
}

/// Where an edit goes, and how that was found.
struct EditHit {
    matcher: EditMatcher,
    /// In the order of the file, none overlapping another.
    places: Vec<EditPlace>,
}

/// Enough to show that a place is not the only one.
const PLACES_SHOWN_MAX: usize = 10;

/// More is no edit but a job for a program.
const PLACES_MAX: usize = 100_000;

/// Short old texts make an edit larger than its arguments; no more than a file that can be read again.
const WRITTEN_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What editors put before the first line.
const BOM: char = '\u{feff}';

/// Replaces `old` with `new` in the text of a file. Nothing becomes `new` in a file that has nothing in it.
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
        return Err(EditRefusal::Same);
    }
    if let Some((line, text)) = placeholder::find_placeholder(old, new) {
        return Err(EditRefusal::Placeholder { line, text });
    }
    if let Some(hit) = find_hit(file, EditRequest { old, new, occurrences })? {
        return apply_hit(file, &hit);
    }
    if let Some(edited) = apply_numbered(file, old, new)? {
        return Ok(edited);
    }
    let escaped =
        escapes::unescaped_readings(old, new).into_iter().map(|texts| (EditMatcher::Escapes, texts));
    let fenced = copied::strip_fence(old, new).map(|texts| (EditMatcher::Fence, texts));
    for (matcher, (old, new)) in escaped.chain(fenced) {
        if !old.is_empty()
            && let Some(hit) = find_hit(file, EditRequest { old: &old, new: &new, occurrences })?
        {
            return apply_hit(file, &EditHit { matcher, ..hit });
        }
    }
    Err(EditRefusal::NotFound { nearest: nearest::find_nearest(file, old) })
}

/// Leaves out the byte order mark of a text that begins a file: the file keeps its own, or goes on without one.
fn strip_boms<'a>(file: &str, old: &'a str, new: &'a str) -> (&'a str, &'a str) {
    // In the middle of a file it is a character like any other.
    let is_meant = old.starts_with(BOM) && !file.starts_with(BOM) && file.contains(old);
    if is_meant {
        return (old, new);
    }
    (old.strip_prefix(BOM).unwrap_or(old), new.strip_prefix(BOM).unwrap_or(new))
}

/// Puts a text where nothing is yet.
fn fill_empty_file(file: &str, new: &str) -> Result<AppliedEdit, EditRefusal> {
    match (file.strip_prefix(BOM).unwrap_or(file), new) {
        ("", "") => Err(EditRefusal::Same),
        ("", _) => Ok(AppliedEdit {
            text: format!("{file}{new}"),
            matcher: EditMatcher::Exact,
            n_replaced: 1,
            line: 1,
        }),
        (_, _) => Err(EditRefusal::Empty),
    }
}

/// Edits the one place that begins where a listing's lines begin; two readings of it have to come to the same.
fn apply_numbered(file: &str, old: &str, new: &str) -> Result<Option<AppliedEdit>, EditRefusal> {
    let mut edited: Option<AppliedEdit> = None;
    for copied::UnnumberedTexts { old, new, line } in copied::strip_line_numbers(old, new) {
        if old.trim().is_empty() || old == new {
            continue;
        }
        let change = EditRequest { old: &old, new: &new, occurrences: EditOccurrences::One };
        let Some(hit) = find_hit(file, change)? else { continue };
        let start = hit.places.first().map_or(0, |place| place.range.start);
        let is_exact = hit.matcher == EditMatcher::Exact;
        let at = if is_exact { start } else { line_start(file, start) };
        let landed = apply_hit(file, &hit)?;
        if !copied::is_in_place(file, &landed, at, line) {
            continue;
        }
        match &edited {
            Some(other) if other.text != landed.text => return Ok(None),
            Some(_) | None => edited = Some(AppliedEdit { matcher: EditMatcher::LineNumbers, ..landed }),
        }
    }
    Ok(edited)
}

fn line_start(file: &str, at: usize) -> usize {
    file[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

fn find_hit(file: &str, change: EditRequest<'_>) -> Result<Option<EditHit>, EditRefusal> {
    let places = exact::find_places(file, change)?;
    if !places.is_empty() {
        check_indentation(file, &places, change)?;
        return Ok(Some(EditHit { matcher: EditMatcher::Exact, places }));
    }
    match lines::find_hit(file, change)? {
        Some(hit) if hit.matcher < EditMatcher::Punctuation => Ok(Some(hit)),
        whole_lines => Ok(inline::find_hit(file, change)?.or(whole_lines)),
    }
}

/// Refuses a place that begins inside the indentation of a line when the old text is also found elsewhere as whole lines: it
/// was indented by another amount than either, and which of them was meant is not known.
fn check_indentation(file: &str, places: &[EditPlace], change: EditRequest<'_>) -> Result<(), EditRefusal> {
    let (EditOccurrences::One, [EditPlace { range, .. }]) = (change.occurrences, places) else {
        return Ok(());
    };
    let before = &file[line_start(file, range.start)..range.start];
    let is_inside = change.old.starts_with([' ', '\t']) && !before.is_empty() && compare::is_blank(before);
    if !is_inside {
        return Ok(());
    }
    let mut starts = lines::find_other_starts(file, change, range);
    starts.push(range.start);
    starts.sort_unstable();
    check_places(file, &starts, change)
}

/// Refuses several places where one is meant, and more than one edit may change.
fn check_places(file: &str, starts: &[usize], change: EditRequest<'_>) -> Result<(), EditRefusal> {
    match change.occurrences {
        EditOccurrences::One if starts.len() > 1 => {
            let starts = starts.iter().take(PLACES_SHOWN_MAX);
            let mut lines: Vec<u32> = starts.map(|start| line_at(file, *start)).collect();
            lines.dedup();
            Err(EditRefusal::Ambiguous { lines })
        }
        EditOccurrences::All if starts.len() > PLACES_MAX => Err(EditRefusal::TooMuch),
        EditOccurrences::All if starts.len() * change.new.len() > WRITTEN_BYTES_MAX => {
            Err(EditRefusal::TooMuch)
        }
        EditOccurrences::One | EditOccurrences::All => Ok(()),
    }
}

/// How many places to look for: one more than there may be tells that there are too many.
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
        return Err(EditRefusal::Same);
    }
    let n_same = file.bytes().zip(text.bytes()).take_while(|(before, after)| before == after).count();
    let line = count_newlines(&file.as_bytes()[..n_same]).saturating_add(1);
    Ok(AppliedEdit { text, matcher: hit.matcher, n_replaced: hit.places.len(), line })
}

/// The line, from 1, that holds byte `at`.
fn line_at(file: &str, at: usize) -> u32 {
    count_newlines(&file.as_bytes()[..at]).saturating_add(1)
}

fn count_newlines(bytes: &[u8]) -> u32 {
    let n_newlines = bytes.iter().filter(|&&byte| byte == b'\n').count();
    u32::try_from(n_newlines).unwrap_or(u32::MAX)
}

/// The line ending that most lines of a text have; `None` when it has none.
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
