//! Finds a block of whole lines that are alike in everything that a matcher minds.

use std::{borrow::Cow, collections::HashMap, ops::Range};

use super::{
    BOM, EditHit, EditMatcher, EditOccurrences, EditPlace, EditRefusal, EditRequest, WRITTEN_BYTES_MAX,
    check_places,
    compare::{self, is_blank},
    dominant_ending,
    indent::{self, IndentBase},
    line_at, max_matches, nearest, sequence,
};

/// Finds the places of the old text, line by line.
pub(super) fn find_hit(file: &str, change: EditRequest<'_>) -> Result<Option<EditHit>, EditRefusal> {
    // Blank lines look alike everywhere.
    if is_blank(change.old) {
        return Ok(None);
    }
    let block = EditBlock::new(change);
    let lines = FileLines::new(file);
    let found: Vec<FoundBlock<'_>> = lines
        .find_starts(&block, change.occurrences)
        .into_iter()
        .map(|at| lines.match_at(&block, at))
        .collect();
    let Some(matcher) = found.iter().map(|found| found.matcher).min() else { return Ok(None) };
    let alike: Vec<FoundBlock<'_>> = match change.occurrences {
        EditOccurrences::One => found,
        EditOccurrences::All => found.into_iter().filter(|found| found.matcher == matcher).collect(),
    };
    let starts: Vec<usize> = alike.iter().map(|found| found.start()).collect();
    check_places(file, &starts, change)?;
    Ok(Some(EditHit { matcher, places: place_block(&lines, &block, &alike)? }))
}

/// Finds where the old text also is, line by line, besides a place that it has.
pub(super) fn find_other_starts(file: &str, change: EditRequest<'_>, place: &Range<usize>) -> Vec<usize> {
    if is_blank(change.old) {
        return Vec::new();
    }
    let block = EditBlock::new(change);
    let lines = FileLines::new(file);
    let first_solid = place.end - file[place.clone()].trim_start().len();
    let starts = lines.find_starts(&block, change.occurrences).into_iter();
    let texts = starts.map(|at| &lines.all[lines.solid[at]].text);
    texts.filter(|text| !text.contains(&first_solid)).map(|text| text.start).collect()
}

/// Puts the new text in every place that does not overlap one before.
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
        let unfit = || EditRefusal::Unfit {
            line: line_at(lines.file, found.start()),
            text: nearest::truncate_excerpt(&lines.file[found.start()..found.end()]),
        };
        let new = block.fitted_lines(lines, found).ok_or_else(unfit)?;
        let place = block.place_lines(lines, found, &new);
        n_taken = found.end();
        n_written += place.text.len();
        if n_written > WRITTEN_BYTES_MAX {
            return Err(EditRefusal::TooMuch);
        }
        places.push(place);
    }
    Ok(places)
}

/// A line of the file.
struct FileLine {
    /// Where it is, without its ending.
    text: Range<usize>,
    /// Where the next one begins.
    end: usize,
}

/// The lines of a file.
struct FileLines<'a> {
    file: &'a str,
    all: Vec<FileLine>,
    /// Those with something in them, by number.
    solid: Vec<usize>,
    /// What most of them end in.
    ending: Option<&'static str>,
}

impl<'a> FileLines<'a> {
    fn new(file: &'a str) -> Self {
        let body = file.strip_prefix(BOM).unwrap_or(file);
        let mut start = file.len() - body.len();
        let lines = body.split_inclusive('\n').map(|line| {
            let line =
                FileLine { text: start..start + strip_line_ending(line).len(), end: start + line.len() };
            start = line.end;
            line
        });
        let all: Vec<FileLine> = lines.collect();
        let solid = (0..all.len()).filter(|at| !is_blank(&file[all[*at].text.clone()])).collect();
        Self { file, all, solid, ending: dominant_ending(file) }
    }

    fn line_text(&self, line: &FileLine) -> &'a str {
        &self.file[line.text.clone()]
    }

    /// Where the block may be, by the loosest comparison there is, as indices into the solid lines.
    fn find_starts(&self, block: &EditBlock<'_>, occurrences: EditOccurrences) -> Vec<usize> {
        let mut ids: HashMap<Cow<'_, str>, u32> = HashMap::new();
        let mut wanted = Vec::new();
        for line in block.old.iter().filter(|line| !is_blank(line)) {
            let n_known = u32::try_from(ids.len()).unwrap_or(NOT_WANTED);
            wanted.push(*ids.entry(compare::loosest_key(line)).or_insert(n_known));
        }
        let id = |at: &usize| ids.get(&compare::loosest_key(self.line_text(&self.all[*at]))).copied();
        let all: Vec<u32> = self.solid.iter().map(|at| id(at).unwrap_or(NOT_WANTED)).collect();
        sequence::find_positions(&all, &wanted, max_matches(occurrences))
    }

    /// Tells the strictest matcher that agrees with a place, and the lines that it takes.
    fn match_at(&'a self, block: &EditBlock<'_>, start: usize) -> FoundBlock<'a> {
        let window = self.solid[start].checked_sub(block.n_blank_before).and_then(|first| {
            let window = self.all.get(first..first + block.old.len())?;
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
            let solid = &self.solid[start..start + n_solid];
            FoundBlock {
                matcher: EditMatcher::BlankLines,
                lines: solid.iter().map(|at| &self.all[*at]).collect(),
            }
        })
    }
}

/// No line of the old text has this id.
const NOT_WANTED: u32 = u32::MAX;

fn strip_line_ending(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

/// A place that the block may go to: one line of the file for each of its own, blank ones aside if it is by
/// [`EditMatcher::BlankLines`].
struct FoundBlock<'a> {
    matcher: EditMatcher,
    lines: Vec<&'a FileLine>,
}

impl FoundBlock<'_> {
    fn start(&self) -> usize {
        self.lines[0].text.start
    }

    fn end(&self) -> usize {
        self.lines[self.lines.len() - 1].end
    }
}

/// The old and the new text as lines.
struct EditBlock<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    /// Blank lines of the old text before its first solid one.
    n_blank_before: usize,
    /// Lines at the beginning that stay; the file's own spelling of them stays too.
    n_same_before: usize,
    /// Lines at the end that stay.
    n_same_after: usize,
}

impl<'a> EditBlock<'a> {
    fn new(change: EditRequest<'a>) -> Self {
        let old = block_lines(change.old);
        let is_deletion = change.new.is_empty() && change.old.ends_with('\n');
        let new = match () {
            () if is_deletion => Vec::new(),
            // Whether a last line is ended makes no difference; a blank line behind it does.
            () if !change.old.ends_with('\n') && ends_in_blank_line(change.new) => {
                change.new.split('\n').map(strip_line_ending).collect()
            }
            () => block_lines(change.new),
        };
        // One line on each side is left over, so that there is always a line to take the place of a line.
        let n_same_max = old.len().min(new.len()).saturating_sub(1);
        let pairs = old.iter().zip(&new).take(n_same_max);
        let mut n_same_before = pairs.take_while(|(old, new)| old == new).count();
        let pairs = old.iter().rev().zip(new.iter().rev()).take(n_same_max - n_same_before);
        let mut n_same_after = pairs.take_while(|(old, new)| old == new).count();
        // Of a blank line the file may have none to take the place of.
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

    /// The lines to put in a place as they fit there; `None` when they cannot.
    fn fitted_lines(&self, lines: &FileLines<'_>, found: &FoundBlock<'_>) -> Option<Vec<Cow<'a, str>>> {
        let new = self.changed_new();
        if found.matcher == EditMatcher::LineTrimmed || new.is_empty() {
            return Some(new.iter().copied().map(Cow::Borrowed).collect());
        }
        let kept = |line: &&&str| found.matcher != EditMatcher::BlankLines || !is_blank(line);
        let old: Vec<Cow<'_, str>> =
            self.old.iter().filter(kept).map(|line| normalize_indent(line)).collect();
        let there: Vec<Cow<'_, str>> =
            found.lines.iter().map(|line| normalize_indent(lines.line_text(line))).collect();
        let plain = |lines: &[&'a str]| -> Vec<Cow<'a, str>> {
            lines.iter().map(|line| normalize_indent(line)).collect()
        };
        match indent::detect_indent_base(&old, &there, &plain(&self.new)) {
            IndentBase::File => Some(plain(new)),
            IndentBase::Old => {
                let new = indent::reindent_block(&old, &there, &plain(new))?;
                Some(new.into_iter().map(Cow::Owned).collect())
            }
            IndentBase::Unclear => None,
        }
    }

    /// Puts new lines where lines were found. The ending of the last line stays the file's own, so that no
    /// newline is lost or added.
    fn place_lines(&self, lines: &FileLines<'_>, found: &FoundBlock<'_>, new: &[Cow<'_, str>]) -> EditPlace {
        let n_kept = |same: &[&str]| match found.matcher {
            EditMatcher::BlankLines => same.iter().filter(|line| !is_blank(line)).count(),
            EditMatcher::Exact
            | EditMatcher::LineTrimmed
            | EditMatcher::Indentation
            | EditMatcher::Spacing
            | EditMatcher::Punctuation
            | EditMatcher::Escapes
            | EditMatcher::LineNumbers
            | EditMatcher::Fence => same.len(),
        };
        let n_before = n_kept(&self.old[..self.n_same_before]);
        let n_after = n_kept(&self.old[self.old.len() - self.n_same_after..]);
        let changed = &found.lines[n_before..found.lines.len() - n_after];
        let (first, last) = (changed[0], changed[changed.len() - 1]);
        if new.is_empty() {
            return EditPlace { range: first.text.start..last.end, text: String::new() };
        }
        let there = &lines.file[found.start()..last.end];
        let ending = dominant_ending(there).or(lines.ending).unwrap_or("\n");
        EditPlace { range: first.text.start..last.text.end, text: new.join(ending) }
    }
}

/// A line whose indentation has no other white space than spaces and tabs.
fn normalize_indent(line: &str) -> Cow<'_, str> {
    let rest = line.trim_start();
    let indent = &line[..line.len() - rest.len()];
    if indent.is_ascii() { Cow::Borrowed(line) } else { Cow::Owned(compare::fold_punctuation(indent) + rest) }
}

fn ends_in_blank_line(text: &str) -> bool {
    let mut lines = text.rsplit('\n');
    lines.next() == Some("") && lines.next().is_some_and(is_blank)
}

/// The lines of a text; whether the last one is ended makes no difference.
fn block_lines(text: &str) -> Vec<&str> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.split('\n').map(strip_line_ending).collect()
}
