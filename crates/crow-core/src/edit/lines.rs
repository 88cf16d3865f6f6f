//! Finds a block of whole lines that are alike in everything that a matcher minds.

use std::borrow::Cow;
use std::ops::Range;

use super::{Change, Matcher, Occurrences, Place, ending_for, indent};

/// What editors put before the first line; no line begins with it.
const BOM: char = '\u{feff}';

/// Finds the places of the old text, line by line.
pub(super) fn places(file: &str, change: Change<'_>, matcher: Matcher) -> Vec<Place> {
    // Blank lines look alike everywhere.
    if change.old.trim().is_empty() {
        return Vec::new();
    }
    let block = Block::of(change);
    let lines = lines_of(file);
    let keys: Vec<Cow<'_, str>> = lines.iter().map(|line| key(&file[line.text.clone()], matcher)).collect();
    let wanted: Vec<Cow<'_, str>> = block.old.iter().map(|line| key(line, matcher)).collect();
    let mut places = Vec::new();
    let mut n_taken = 0;
    for (first, window) in keys.windows(wanted.len()).enumerate() {
        if window != wanted || first < n_taken {
            continue;
        }
        let found = &lines[first..first + wanted.len()];
        let Some(new) = block.new_for(file, found, matcher) else { continue };
        places.push(block.place(file, found, &new));
        if change.occurrences == Occurrences::All {
            n_taken = first + wanted.len();
        }
    }
    places
}

/// A line of the file.
struct Line {
    /// Where it is, without its ending.
    text: Range<usize>,
    /// Where the next one begins.
    end: usize,
}

fn lines_of(file: &str) -> Vec<Line> {
    let body = file.strip_prefix(BOM).unwrap_or(file);
    let mut start = file.len() - body.len();
    let lines = body.split_inclusive('\n').map(|line| {
        let line = Line { text: start..start + without_ending(line).len(), end: start + line.len() };
        start = line.end;
        line
    });
    lines.collect()
}

fn without_ending(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

/// What of a line has to agree.
fn key(line: &str, matcher: Matcher) -> Cow<'_, str> {
    match matcher {
        Matcher::Exact => Cow::Borrowed(line),
        Matcher::LineTrimmed => Cow::Borrowed(line.trim_end()),
        Matcher::Indentation => Cow::Borrowed(indent::split(line).1.trim_end()),
        Matcher::Punctuation => Cow::Owned(folded(line).trim_end().to_owned()),
    }
}

/// Takes typographic punctuation for plain.
fn folded(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for char in line.chars() {
        match char {
            '\u{2018}'..='\u{201b}' | '\u{2032}' => out.push('\''),
            '\u{201c}'..='\u{201f}' | '\u{2033}' => out.push('"'),
            '\u{2010}'..='\u{2015}' | '\u{2212}' => out.push('-'),
            '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{3000}' => out.push(' '),
            '\u{2026}' => out.push_str("..."),
            other => out.push(other),
        }
    }
    out
}

/// The old and the new text as lines.
struct Block<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    /// Lines at the beginning that stay; the file's own spelling of them stays too.
    n_same_before: usize,
    /// Lines at the end that stay.
    n_same_after: usize,
}

impl<'a> Block<'a> {
    fn of(change: Change<'a>) -> Self {
        let old = block_lines(change.old);
        let is_deletion = change.new.is_empty() && change.old.ends_with('\n');
        let new = if is_deletion { Vec::new() } else { block_lines(change.new) };
        // One line on each side is left over, so that there is always a line to take the place of a line.
        let n_same_max = old.len().min(new.len()).saturating_sub(1);
        let pairs = old.iter().zip(&new).take(n_same_max);
        let n_same_before = pairs.take_while(|(old, new)| old == new).count();
        let pairs = old.iter().rev().zip(new.iter().rev()).take(n_same_max - n_same_before);
        let n_same_after = pairs.take_while(|(old, new)| old == new).count();
        Self { old, new, n_same_before, n_same_after }
    }

    /// The new lines as they fit the place found; `None` when they cannot.
    fn new_for(&self, file: &str, found: &[Line], matcher: Matcher) -> Option<Vec<Cow<'a, str>>> {
        if matcher == Matcher::Indentation {
            let found: Vec<&str> = found.iter().map(|line| &file[line.text.clone()]).collect();
            let new = indent::reindented(&self.old, &found, &self.new)?;
            return Some(new.into_iter().map(Cow::Owned).collect());
        }
        Some(self.new.iter().copied().map(Cow::Borrowed).collect())
    }

    /// Puts new lines where lines were found. The ending of the last line stays the file's own, so that no
    /// newline is lost or added.
    fn place(&self, file: &str, found: &[Line], new: &[Cow<'_, str>]) -> Place {
        let start = found[0].text.start;
        let changed = &found[self.n_same_before..found.len() - self.n_same_after];
        let (first, last) = (&changed[0], &changed[changed.len() - 1]);
        if new.is_empty() {
            return Place { start, range: start..last.end, text: String::new() };
        }
        let ending = ending_for(file, start..last.end).unwrap_or("\n");
        let text = new[self.n_same_before..new.len() - self.n_same_after].join(ending);
        Place { start, range: first.text.start..last.text.end, text }
    }
}

/// The lines of a text; whether the last one is ended makes no difference.
fn block_lines(text: &str) -> Vec<&str> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.split('\n').map(without_ending).collect()
}
