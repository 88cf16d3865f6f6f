//! Finds the lines of a patch's hunks in a file and replaces them. The lines are compared as those of an edit; lines that
//! a hunk only shows keep the file's characters.

use std::borrow::Cow;

use super::compare::is_blank;
use super::indent::{self, IndentBase};
use super::lines::{FileLine, FileLines, FoundBlock, find_blocks, normalize_indent};
use super::matcher::EditMatcher;
use super::nearest::{self, NearestText};
use super::place::{EditPlace, line_at};
use super::refusal::{EditRefusal, WRITTEN_BYTES_MAX};
use super::splice_places;

/// A line of the file for each hunk is compared; more work than this is a task for a program.
const COMPARED_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// Enough to show that a place is not unique.
const PLACES_SHOWN_MAX: usize = 10;

/// A hunk of a patch: lines of a file, and what becomes of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PatchHunk {
    /// Lines before the hunk, one after the other, which show where it is.
    pub anchors: Vec<String>,
    pub lines: Vec<PatchLine>,
    /// Whether its lines are the last of the file.
    pub is_at_end: bool,
}

/// A line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchLine {
    Kept(String),
    Removed(String),
    Added(String),
}

/// The result of the hunks of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchedText {
    /// The whole new text.
    pub text: String,
    /// The loosest matcher that found a hunk.
    pub matcher: EditMatcher,
}

/// The reason why a hunk was not applied, with the next step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HunkRefusal {
    #[error(
        "`@@ {anchor}` is no line of the file{}; write after `@@` a whole line of the file above the hunk, or nothing",
        after_line(*after)
    )]
    AnchorNotFound { anchor: String, after: u32 },
    #[error("its lines are not in the file; read the file again and copy the lines exactly{}", nearest::nearest_hint(nearest.as_ref()))]
    NotFound { nearest: Option<NearestText> },
    #[error(
        "its lines are at line {line}, above an earlier hunk or its `@@` line; order the hunks as in the file"
    )]
    OutOfOrder { line: u32 },
    #[error(
        "its lines are in more than one place ({}); write after `@@` a line above the right place, or add lines around \
         them",
        super::refusal::format_lines(lines)
    )]
    Ambiguous { lines: Vec<u32> },
    #[error(transparent)]
    Unfit(EditRefusal),
}

fn after_line(line: u32) -> String {
    if line == 0 { String::new() } else { format!(" after line {line}") }
}

/// A refused hunk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("hunk {number}: {refusal}")]
pub struct RefusedHunk {
    /// Its number in its file, from 1.
    pub number: usize,
    pub refusal: HunkRefusal,
}

/// Applies the hunks of one file, all or none.
pub fn apply_hunks(file: &str, hunks: &[PatchHunk]) -> Result<PatchedText, RefusedHunk> {
    let refuse = |index: usize, refusal| RefusedHunk { number: index + 1, refusal };
    if file.len().saturating_mul(hunks.len()) > COMPARED_BYTES_MAX {
        return Err(refuse(hunks.len().saturating_sub(1), HunkRefusal::Unfit(EditRefusal::TooLarge)));
    }
    let lines = FileLines::new(file);
    let mut places: Vec<EditPlace> = Vec::new();
    let mut matcher = EditMatcher::Exact;
    let mut cursor = 0;
    for (index, hunk) in hunks.iter().enumerate() {
        let search = HunkSearch { lines: &lines, cursor, is_first: index == 0 };
        let hit = search.place_hunk(hunk).map_err(|refusal| refuse(index, refusal))?;
        if places.last().is_some_and(|last| last.range.end > hit.place.range.start) {
            let line = line_at(file, hit.place.range.start);
            return Err(refuse(index, HunkRefusal::OutOfOrder { line }));
        }
        matcher = matcher.max(hit.matcher);
        cursor = hit.place.range.end.max(cursor);
        places.push(hit.place);
    }
    let n_written: usize = places.iter().map(|place| place.text.len()).sum();
    if n_written > WRITTEN_BYTES_MAX {
        return Err(refuse(hunks.len() - 1, HunkRefusal::Unfit(EditRefusal::TooLarge)));
    }
    Ok(PatchedText { text: splice_places(file, &places), matcher })
}

/// The place of a hunk and how it was found.
struct HunkHit {
    place: EditPlace,
    matcher: EditMatcher,
}

/// A search for one hunk.
struct HunkSearch<'a> {
    lines: &'a FileLines<'a>,
    /// The end of the hunk before.
    cursor: usize,
    is_first: bool,
}

impl HunkSearch<'_> {
    fn place_hunk(&self, hunk: &PatchHunk) -> Result<HunkHit, HunkRefusal> {
        let (mut from, mut anchor_start) = (self.cursor, self.cursor);
        for anchor in &hunk.anchors {
            let line = self.find_anchor(anchor, from).ok_or_else(|| HunkRefusal::AnchorNotFound {
                anchor: anchor.clone(),
                after: line_at(self.lines.file, from).saturating_sub(1),
            })?;
            (anchor_start, from) = (line.text.start, line.end);
        }
        if hunk.old_lines().next().is_none() {
            let at = if hunk.anchors.is_empty() || hunk.is_at_end { self.lines.file.len() } else { from };
            return Ok(HunkHit { place: self.insert_lines(hunk, at), matcher: EditMatcher::Exact });
        }
        // Models repeat the line after `@@` in the hunk.
        for from in [from, anchor_start] {
            if let Some(hit) = self.find_lines(hunk, from)? {
                return Ok(hit);
            }
        }
        if let Some(unnumbered) = hunk.without_line_numbers()
            && let Some(hit) = self.find_lines(&unnumbered, from)?
        {
            return Ok(HunkHit { matcher: EditMatcher::LineNumbers, ..hit });
        }
        let old: Vec<&str> = hunk.old_lines().collect();
        let old = old.join("\n");
        let above =
            find_blocks(self.lines, &old).first().map(|found| line_at(self.lines.file, found.start()));
        Err(match above {
            Some(line) => HunkRefusal::OutOfOrder { line },
            None => HunkRefusal::NotFound { nearest: nearest::find_nearest(self.lines.file, &old) },
        })
    }

    /// Finds the first line that is equal to an anchor, or the only one that begins with it.
    fn find_anchor(&self, anchor: &str, from: usize) -> Option<&FileLine> {
        let after = || self.lines.lines.iter().filter(|line| line.text.start >= from);
        let equals = [EditMatcher::Exact].into_iter().chain(EditMatcher::LINE_BY_LINE);
        for matcher in equals {
            let key = super::compare::comparison_key(anchor, matcher);
            let is_equal =
                |line: &&FileLine| super::compare::comparison_key(self.lines.line_text(line), matcher) == key;
            if let Some(line) = after().find(is_equal) {
                return Some(line);
            }
        }
        let start = anchor.trim();
        let mut begins =
            after().filter(|line| !start.is_empty() && self.lines.line_text(line).trim().starts_with(start));
        begins.next().filter(|_| begins.next().is_none())
    }

    /// Finds the hunk's lines at or after a position.
    fn find_lines(&self, hunk: &PatchHunk, from: usize) -> Result<Option<HunkHit>, HunkRefusal> {
        let old: Vec<&str> = hunk.old_lines().collect();
        let mut blocks = if old.iter().all(|line| is_blank(line)) {
            self.lines.blank_blocks(old.len())
        } else {
            find_blocks(self.lines, &old.join("\n"))
        };
        blocks.retain(|found| found.start() >= from);
        let Some(found) = self.choose_block(hunk, &old, blocks)? else { return Ok(None) };
        let is_exact = found.is_exact(self.lines, &old);
        let place = self.replace_lines(hunk, &found, is_exact).map_err(HunkRefusal::Unfit)?;
        let matcher = if is_exact { EditMatcher::Exact } else { found.matcher };
        Ok(Some(HunkHit { place, matcher }))
    }

    /// Chooses the place: at the end of the file if the hunk says so, the strictest and first one if something shows where
    /// to begin, otherwise the only one.
    fn choose_block<'b>(
        &self,
        hunk: &PatchHunk,
        old: &[&str],
        mut blocks: Vec<FoundBlock<'b>>,
    ) -> Result<Option<FoundBlock<'b>>, HunkRefusal> {
        let is_last = |found: &FoundBlock<'_>| self.lines.file[found.end()..].trim().is_empty();
        if hunk.is_at_end && blocks.last().is_some_and(is_last) {
            return Ok(blocks.pop());
        }
        let strictness = |found: &FoundBlock<'_>| match found.is_exact(self.lines, old) {
            true => EditMatcher::Exact,
            false => found.matcher,
        };
        if self.is_first && hunk.anchors.is_empty() {
            let is_exact = |found: &&FoundBlock<'_>| strictness(found) == EditMatcher::Exact;
            let exact: Vec<usize> = blocks.iter().filter(is_exact).map(FoundBlock::start).collect();
            let all: Vec<usize> = blocks.iter().map(FoundBlock::start).collect();
            let starts = if exact.is_empty() { all } else { exact };
            if starts.len() > 1 {
                let shown = starts.iter().take(PLACES_SHOWN_MAX);
                let lines = shown.map(|start| line_at(self.lines.file, *start)).collect();
                return Err(HunkRefusal::Ambiguous { lines });
            }
        }
        let best = blocks.iter().enumerate().min_by_key(|(index, found)| (strictness(found), *index));
        Ok(best.map(|(index, _)| index).map(|index| blocks.swap_remove(index)))
    }

    /// Inserts the lines of a hunk that has no others.
    fn insert_lines(&self, hunk: &PatchHunk, at: usize) -> EditPlace {
        let ending = self.lines.ending.unwrap_or("\n");
        let before = &self.lines.file[..at];
        // The last line of a file may have no ending.
        let mut text =
            if before.is_empty() || before.ends_with(['\n', '\u{feff}']) { "" } else { ending }.to_owned();
        for line in hunk.added_lines() {
            text.push_str(line);
            text.push_str(ending);
        }
        EditPlace { range: at..at, text }
    }

    /// Replaces the found lines. The last line keeps the file's ending, so that no newline is lost or added.
    fn replace_lines(
        &self,
        hunk: &PatchHunk,
        found: &FoundBlock<'_>,
        is_exact: bool,
    ) -> Result<EditPlace, EditRefusal> {
        let file = self.lines.file;
        let (start, end) = (found.start(), found.end());
        let mut added = self.fit_added_lines(hunk, found, is_exact)?.into_iter();
        // Each line with its ending; lines that are new have none yet.
        let mut pieces: Vec<(Cow<'_, str>, &str)> = Vec::new();
        let mut file_lines = found.lines.iter();
        let mut n_passed = start;
        let skips_blank = found.matcher == EditMatcher::BlankLines;
        for line in &hunk.lines {
            match line {
                PatchLine::Added(_) => pieces.extend(added.next().map(|text| (Cow::Owned(text), ""))),
                PatchLine::Kept(text) | PatchLine::Removed(text) if skips_blank && is_blank(text) => {}
                PatchLine::Kept(_) | PatchLine::Removed(_) => {
                    let Some(line_of_file) = file_lines.next() else { continue };
                    // Blank lines that the hunk does not show.
                    let gap = file[n_passed..line_of_file.text.start].split_inclusive('\n');
                    pieces.extend(gap.map(|line| {
                        let (text, ending) = line.split_at(line.trim_end_matches(['\r', '\n']).len());
                        (Cow::Borrowed(text), ending)
                    }));
                    if matches!(line, PatchLine::Kept(_)) {
                        let text = &file[line_of_file.text.clone()];
                        pieces.push((Cow::Borrowed(text), &file[line_of_file.text.end..line_of_file.end]));
                    }
                    n_passed = line_of_file.end;
                }
            }
        }
        let ending = self.lines.ending.unwrap_or("\n");
        let last_ending = found.lines.last().map_or("", |line| &file[line.text.end..line.end]);
        let n_pieces = pieces.len();
        let mut text = String::new();
        for (index, (line, own_ending)) in pieces.iter().enumerate() {
            text.push_str(line);
            text.push_str(match index + 1 == n_pieces {
                // Without an ending, an empty line would be lost.
                true if last_ending.is_empty() && line.is_empty() => own_ending,
                true => last_ending,
                false if own_ending.is_empty() => ending,
                false => own_ending,
            });
        }
        Ok(EditPlace { range: start..end, text })
    }

    /// Returns the added lines with the indentation of the place.
    fn fit_added_lines(
        &self,
        hunk: &PatchHunk,
        found: &FoundBlock<'_>,
        is_exact: bool,
    ) -> Result<Vec<String>, EditRefusal> {
        let added: Vec<&str> = hunk.added_lines().collect();
        let unchanged = || added.iter().map(|line| (*line).to_owned()).collect();
        if is_exact || found.matcher == EditMatcher::LineTrimmed || added.is_empty() {
            return Ok(unchanged());
        }
        let is_compared = |line: &&str| found.matcher != EditMatcher::BlankLines || !is_blank(line);
        let old: Vec<Cow<'_, str>> = hunk.old_lines().filter(is_compared).map(normalize_indent).collect();
        let of_file: Vec<Cow<'_, str>> =
            found.lines.iter().map(|line| normalize_indent(self.lines.line_text(line))).collect();
        let new: Vec<Cow<'_, str>> = hunk.new_lines().map(normalize_indent).collect();
        let added: Vec<Cow<'_, str>> = added.iter().map(|line| normalize_indent(line)).collect();
        let fitted = match indent::detect_indent_base(&old, &of_file, &new) {
            IndentBase::File => Some(added.into_iter().map(Cow::into_owned).collect()),
            IndentBase::Old => indent::reindent_block(&old, &of_file, &added),
            IndentBase::Unclear => None,
        };
        fitted.ok_or_else(|| EditRefusal::IndentMismatch {
            line: line_at(self.lines.file, found.start()),
            text: nearest::truncate_excerpt(&self.lines.file[found.start()..found.end()]),
        })
    }
}

impl PatchLine {
    fn text(&self) -> &str {
        match self {
            Self::Kept(text) | Self::Removed(text) | Self::Added(text) => text,
        }
    }

    fn is_added(&self) -> bool {
        matches!(self, Self::Added(_))
    }
}

impl PatchHunk {
    /// Whether the hunk changes something.
    pub fn has_changes(&self) -> bool {
        self.lines.iter().any(|line| !matches!(line, PatchLine::Kept(_)))
    }

    /// The lines that the file has.
    fn old_lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter(|line| !line.is_added()).map(PatchLine::text)
    }

    fn added_lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter(|line| line.is_added()).map(PatchLine::text)
    }

    /// The lines that the file has afterwards.
    fn new_lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter(|line| !matches!(line, PatchLine::Removed(_))).map(PatchLine::text)
    }

    /// Removes the line numbers of a listing, if all lines of the file have consecutive ones.
    fn without_line_numbers(&self) -> Option<Self> {
        let mut last_number: Option<u32> = None;
        for line in self.old_lines() {
            let (number, _) = split_line_number(line)?;
            if last_number.is_some_and(|last| last.checked_add(1) != Some(number)) {
                return None;
            }
            last_number = Some(number);
        }
        let strip =
            |text: &String| split_line_number(text).map_or_else(|| text.clone(), |(_, rest)| rest.to_owned());
        let lines = self.lines.iter().map(|line| match line {
            PatchLine::Kept(text) => PatchLine::Kept(strip(text)),
            PatchLine::Removed(text) => PatchLine::Removed(strip(text)),
            PatchLine::Added(text) => PatchLine::Added(strip(text)),
        });
        Some(Self { lines: lines.collect(), ..self.clone() })
    }
}

/// Splits a line of a listing into its number and its text.
fn split_line_number(line: &str) -> Option<(u32, &str)> {
    let (number, text) = line.split_once('\t')?;
    Some((number.trim_start().parse().ok()?, text))
}
