//! Finds a block of whole lines that are equal for a matcher.

use std::{borrow::Cow, collections::HashMap, ops::Range};

use super::compare::{self, is_blank};
use super::indent::{self, IndentBase};
use super::matcher::EditMatcher;
use super::place::{
    BOM, EditHit, EditOccurrences, EditPlace, EditRequest, check_places, dominant_ending, line_at,
    max_matches,
};
use super::refusal::{EditRefusal, WRITTEN_BYTES_MAX};
use super::{nearest, sequence};

/// Finds the places of the old text, line by line.
pub(super) fn find_hit(file: &str, request: EditRequest<'_>) -> Result<Option<EditHit>, EditRefusal> {
    // Blank lines match everywhere.
    if is_blank(request.old) {
        return Ok(None);
    }
    let block = EditBlock::new(request);
    let lines = FileLines::new(file);
    let found: Vec<FoundBlock<'_>> = lines
        .find_starts(&block, request.occurrences)
        .into_iter()
        .map(|at| lines.match_at(&block, at))
        .collect();
    let Some(matcher) = found.iter().map(|found| found.matcher).min() else { return Ok(None) };
    let blocks: Vec<FoundBlock<'_>> = match request.occurrences {
        EditOccurrences::One => found,
        EditOccurrences::All => found.into_iter().filter(|found| found.matcher == matcher).collect(),
    };
    let starts: Vec<usize> = blocks.iter().map(|found| found.start()).collect();
    check_places(file, &starts, request)?;
    Ok(Some(EditHit { matcher, places: place_block(&lines, &block, &blocks)? }))
}

/// Finds the other starts of the old text, line by line, besides a known place.
pub(super) fn find_other_starts(file: &str, request: EditRequest<'_>, place: &Range<usize>) -> Vec<usize> {
    if is_blank(request.old) {
        return Vec::new();
    }
    let block = EditBlock::new(request);
    let lines = FileLines::new(file);
    let first_solid = place.end - file[place.clone()].trim_start().len();
    let starts = lines.find_starts(&block, request.occurrences).into_iter();
    let texts = starts.map(|at| &lines.lines[lines.nonblank[at]].text);
    texts.filter(|text| !text.contains(&first_solid)).map(|text| text.start).collect()
}

/// Finds all places of some lines, in file order.
pub(super) fn find_blocks<'a>(lines: &'a FileLines<'a>, old: &str) -> Vec<FoundBlock<'a>> {
    if is_blank(old) {
        return Vec::new();
    }
    let block = EditBlock::new(EditRequest { old, new: "", occurrences: EditOccurrences::All });
    let starts = lines.find_starts(&block, EditOccurrences::All).into_iter();
    starts.map(|at| lines.match_at(&block, at)).collect()
}

/// Inserts the new text in every place that does not overlap an earlier one.
fn place_block(
    lines: &FileLines<'_>,
    block: &EditBlock<'_>,
    found: &[FoundBlock<'_>],
) -> Result<Vec<EditPlace>, EditRefusal> {
    let mut places = Vec::new();
    let mut n_taken = 0;
    let mut n_written = 0;
    for found in found {
        if found.start() < n_taken {
            continue;
        }
        let unfit = || EditRefusal::IndentMismatch {
            line: line_at(lines.file, found.start()),
            text: nearest::truncate_excerpt(&lines.file[found.start()..found.end()]),
        };
        let new = block.fitted_lines(lines, found).ok_or_else(unfit)?;
        let place = block.place_lines(lines, found, &new);
        n_taken = found.end();
        n_written += place.text.len();
        if n_written > WRITTEN_BYTES_MAX {
            return Err(EditRefusal::TooLarge);
        }
        places.push(place);
    }
    Ok(places)
}

/// A line of the file.
pub(super) struct FileLine {
    /// The range without the line ending.
    pub(super) text: Range<usize>,
    /// The start of the next line.
    pub(super) end: usize,
}

/// The lines of a file.
pub(super) struct FileLines<'a> {
    pub(super) file: &'a str,
    pub(super) lines: Vec<FileLine>,
    /// The indices of lines that are not blank.
    nonblank: Vec<usize>,
    /// The ending of most lines.
    pub(super) ending: Option<&'static str>,
}

impl<'a> FileLines<'a> {
    pub(super) fn new(file: &'a str) -> Self {
        let body = file.strip_prefix(BOM).unwrap_or(file);
        let mut start = file.len() - body.len();
        let lines = body.split_inclusive('\n').map(|line| {
            let line =
                FileLine { text: start..start + strip_line_ending(line).len(), end: start + line.len() };
            start = line.end;
            line
        });
        let lines: Vec<FileLine> = lines.collect();
        let nonblank = (0..lines.len()).filter(|at| !is_blank(&file[lines[*at].text.clone()])).collect();
        Self { file, lines, nonblank, ending: dominant_ending(file) }
    }

    pub(super) fn line_text(&self, line: &FileLine) -> &'a str {
        &self.file[line.text.clone()]
    }

    /// Finds the starts of runs of this many blank lines and more.
    pub(super) fn blank_blocks(&self, n_lines: usize) -> Vec<FoundBlock<'_>> {
        let is_blank_at = |at: usize| self.lines.get(at).is_some_and(|line| is_blank(self.line_text(line)));
        let is_start = |at: &usize| is_blank_at(*at) && (*at == 0 || !is_blank_at(*at - 1));
        let runs = (0..self.lines.len()).filter(is_start).filter(|at| (*at..*at + n_lines).all(is_blank_at));
        let to_block = |at: usize| FoundBlock {
            matcher: EditMatcher::LineTrimmed,
            lines: self.lines[at..at + n_lines].iter().collect(),
        };
        runs.map(to_block).collect()
    }

    /// Finds the possible starts of the block by the loosest comparison, as indices into the nonblank lines.
    fn find_starts(&self, block: &EditBlock<'_>, occurrences: EditOccurrences) -> Vec<usize> {
        let mut ids: HashMap<Cow<'_, str>, u32> = HashMap::new();
        let mut sought_ids = Vec::new();
        for line in block.old.iter().filter(|line| !is_blank(line)) {
            let n_known = u32::try_from(ids.len()).unwrap_or(NO_ID);
            sought_ids.push(*ids.entry(compare::loosest_key(line)).or_insert(n_known));
        }
        let id = |at: &usize| ids.get(&compare::loosest_key(self.line_text(&self.lines[*at]))).copied();
        let all: Vec<u32> = self.nonblank.iter().map(|at| id(at).unwrap_or(NO_ID)).collect();
        sequence::find_positions(&all, &sought_ids, max_matches(occurrences))
    }

    /// Returns the strictest matcher for a place, with the matched lines.
    fn match_at(&'a self, block: &EditBlock<'_>, start: usize) -> FoundBlock<'a> {
        let window = self.nonblank[start].checked_sub(block.n_blank_before).and_then(|first| {
            let window = self.lines.get(first..first + block.old.len())?;
            let agrees = |matcher: &EditMatcher| {
                let mut pairs = block.old.iter().zip(window);
                pairs.all(|(old, line)| {
                    compare::comparison_key(old, *matcher)
                        == compare::comparison_key(self.line_text(line), *matcher)
                })
            };
            let matcher = EditMatcher::LINE_BY_LINE.into_iter().find(agrees)?;
            Some(FoundBlock { matcher, lines: window.iter().collect() })
        });
        window.unwrap_or_else(|| {
            let n_solid = block.old.iter().filter(|line| !is_blank(line)).count();
            let solid = &self.nonblank[start..start + n_solid];
            FoundBlock {
                matcher: EditMatcher::BlankLines,
                lines: solid.iter().map(|at| &self.lines[*at]).collect(),
            }
        })
    }
}

/// An ID that no line of the old text has.
const NO_ID: u32 = u32::MAX;

fn strip_line_ending(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

/// A match of the block: one line of the file for each of its own, without blank ones for
/// [`EditMatcher::BlankLines`].
pub(super) struct FoundBlock<'a> {
    pub(super) matcher: EditMatcher,
    pub(super) lines: Vec<&'a FileLine>,
}

impl FoundBlock<'_> {
    pub(super) fn start(&self) -> usize {
        self.lines[0].text.start
    }

    pub(super) fn end(&self) -> usize {
        self.lines[self.lines.len() - 1].end
    }

    /// Whether the lines are equal to these.
    pub(super) fn is_exact(&self, lines: &FileLines<'_>, old: &[&str]) -> bool {
        self.matcher != EditMatcher::BlankLines
            && self.lines.len() == old.len()
            && self.lines.iter().zip(old).all(|(line, old)| lines.line_text(line) == *old)
    }
}

/// The old and the new text as lines.
struct EditBlock<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    /// Blank lines of the old text before its first nonblank one.
    n_blank_before: usize,
    /// Unchanged lines at the start; the file's version of them stays.
    n_same_before: usize,
    /// Unchanged lines at the end.
    n_same_after: usize,
}

impl<'a> EditBlock<'a> {
    fn new(request: EditRequest<'a>) -> Self {
        let old = block_lines(request.old);
        let is_deletion = request.new.is_empty() && request.old.ends_with('\n');
        let new = match () {
            () if is_deletion => Vec::new(),
            // A missing final newline makes no difference; a blank last line does.
            () if !request.old.ends_with('\n') && ends_in_blank_line(request.new) => {
                request.new.split('\n').map(strip_line_ending).collect()
            }
            () => block_lines(request.new),
        };
        // One line remains on each side, so that there is always a line to replace.
        let n_same_max = old.len().min(new.len()).saturating_sub(1);
        let pairs = old.iter().zip(&new).take(n_same_max);
        let mut n_same_before = pairs.take_while(|(old, new)| old == new).count();
        let pairs = old.iter().rev().zip(new.iter().rev()).take(n_same_max - n_same_before);
        let mut n_same_after = pairs.take_while(|(old, new)| old == new).count();
        // The file may have no blank line to replace.
        while old[n_same_before..old.len() - n_same_after].iter().all(|line| is_blank(line)) {
            if n_same_before > 0 {
                n_same_before -= 1;
            } else {
                n_same_after -= 1;
            }
        }
        let n_blank_before = old.iter().take_while(|line| is_blank(line)).count();
        Self { old, new, n_blank_before, n_same_before, n_same_after }
    }

    fn changed_new(&self) -> &[&'a str] {
        &self.new[self.n_same_before..self.new.len() - self.n_same_after]
    }

    /// Returns the new lines with the indentation of a place; `None` if that is impossible.
    fn fitted_lines(&self, lines: &FileLines<'_>, found: &FoundBlock<'_>) -> Option<Vec<Cow<'a, str>>> {
        let new = self.changed_new();
        if found.matcher == EditMatcher::LineTrimmed || new.is_empty() {
            return Some(new.iter().copied().map(Cow::Borrowed).collect());
        }
        let is_compared = |line: &&&str| found.matcher != EditMatcher::BlankLines || !is_blank(line);
        let old: Vec<Cow<'_, str>> =
            self.old.iter().filter(is_compared).map(|line| normalize_indent(line)).collect();
        let file_lines: Vec<Cow<'_, str>> =
            found.lines.iter().map(|line| normalize_indent(lines.line_text(line))).collect();
        let normalized = |lines: &[&'a str]| -> Vec<Cow<'a, str>> {
            lines.iter().map(|line| normalize_indent(line)).collect()
        };
        match indent::detect_indent_base(&old, &file_lines, &normalized(&self.new)) {
            IndentBase::File => Some(normalized(new)),
            IndentBase::Old => {
                let new = indent::reindent_block(&old, &file_lines, &normalized(new))?;
                Some(new.into_iter().map(Cow::Owned).collect())
            }
            IndentBase::Unclear => None,
        }
    }

    /// Replaces the matched lines. The last line keeps the file's ending, so that no newline is lost or added.
    fn place_lines(&self, lines: &FileLines<'_>, found: &FoundBlock<'_>, new: &[Cow<'_, str>]) -> EditPlace {
        let n_compared = |same: &[&str]| match found.matcher {
            EditMatcher::BlankLines => same.iter().filter(|line| !is_blank(line)).count(),
            EditMatcher::Exact
            | EditMatcher::LineTrimmed
            | EditMatcher::Indentation
            | EditMatcher::Spacing
            | EditMatcher::Punctuation
            | EditMatcher::SymbolSpacing
            | EditMatcher::Escapes
            | EditMatcher::LineNumbers
            | EditMatcher::Fence => same.len(),
        };
        let n_before = n_compared(&self.old[..self.n_same_before]);
        let n_after = n_compared(&self.old[self.old.len() - self.n_same_after..]);
        let changed = &found.lines[n_before..found.lines.len() - n_after];
        let (first, last) = (changed[0], changed[changed.len() - 1]);
        if new.is_empty() {
            return EditPlace { range: first.text.start..last.end, text: String::new() };
        }
        let block_text = &lines.file[found.start()..last.end];
        let ending = dominant_ending(block_text).or(lines.ending).unwrap_or("\n");
        EditPlace { range: first.text.start..last.text.end, text: new.join(ending) }
    }
}

/// Replaces other white space in the indentation of a line by spaces.
pub(super) fn normalize_indent(line: &str) -> Cow<'_, str> {
    let rest = line.trim_start();
    let indent = &line[..line.len() - rest.len()];
    if indent.is_ascii() { Cow::Borrowed(line) } else { Cow::Owned(compare::fold_punctuation(indent) + rest) }
}

fn ends_in_blank_line(text: &str) -> bool {
    let mut lines = text.rsplit('\n');
    lines.next() == Some("") && lines.next().is_some_and(is_blank)
}

/// Splits a text into lines; a final newline makes no difference.
fn block_lines(text: &str) -> Vec<&str> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.split('\n').map(strip_line_ending).collect()
}
