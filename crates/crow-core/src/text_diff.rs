//! The differences between two texts, by lines, words or characters.
//!
//! Tokens are compared as numbers, so that the program contains the algorithm once.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Instant;

use similar::Algorithm;
pub use similar::{DiffOp, DiffTag};

#[cfg(test)]
mod tests;

/// Two texts as tokens, and the operations that turn the old one into the new one.
#[derive(Debug)]
pub struct TextDiff<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    ops: Vec<DiffOp>,
}

/// The numbers of tokens that a text gained and lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeCounts {
    pub n_added: usize,
    pub n_removed: usize,
}

impl<'a> TextDiff<'a> {
    /// Compares lines; a line ending belongs to its line.
    pub fn compare_lines(old: &'a str, new: &'a str) -> Self {
        Self::compare_tokens(split_lines(old), split_lines(new))
    }

    /// Compares lines, coarsely once the deadline has passed.
    pub fn compare_lines_until(old: &'a str, new: &'a str, deadline: Instant) -> Self {
        Self::compare(split_lines(old), split_lines(new), Some(deadline))
    }

    /// Compares words and the white space between them.
    pub fn compare_words(old: &'a str, new: &'a str) -> Self {
        Self::compare_tokens(split_words(old), split_words(new))
    }

    /// Compares characters.
    pub fn compare_chars(old: &'a str, new: &'a str) -> Self {
        Self::compare_tokens(split_chars(old), split_chars(new))
    }

    /// Compares tokens of the caller's own.
    pub fn compare_tokens(old: Vec<&'a str>, new: Vec<&'a str>) -> Self {
        Self::compare(old, new, None)
    }

    fn compare(old: Vec<&'a str>, new: Vec<&'a str>, deadline: Option<Instant>) -> Self {
        let mut numbers = HashMap::new();
        let old_numbers = number_tokens(&old, &mut numbers);
        let new_numbers = number_tokens(&new, &mut numbers);
        let ops =
            similar::capture_diff_slices_deadline(Algorithm::Myers, &old_numbers, &new_numbers, deadline);
        Self { old, new, ops }
    }

    /// Returns all operations, which cover both texts.
    pub fn ops(&self) -> &[DiffOp] {
        &self.ops
    }

    /// Returns the old tokens of an operation.
    pub fn old_tokens(&self, op: &DiffOp) -> &[&'a str] {
        &self.old[op.old_range()]
    }

    /// Returns the new tokens of an operation.
    pub fn new_tokens(&self, op: &DiffOp) -> &[&'a str] {
        &self.new[op.new_range()]
    }

    /// Returns groups of operations that are near each other, with so many equal tokens around them.
    pub fn grouped_ops(&self, n_context: usize) -> Vec<Vec<DiffOp>> {
        similar::group_diff_ops(self.ops.clone(), n_context)
    }

    /// Returns the share of equal tokens, from 0 to 1.
    pub fn similarity(&self) -> f32 {
        similar::diff_ratio(&self.ops, self.old.len(), self.new.len())
    }

    /// Returns how many tokens the new text gained and the old one lost.
    pub fn count_changes(&self) -> ChangeCounts {
        let changed = || self.ops.iter().filter(|op| op.tag() != DiffTag::Equal);
        ChangeCounts {
            n_added: changed().map(|op| op.new_range().len()).sum(),
            n_removed: changed().map(|op| op.old_range().len()).sum(),
        }
    }

    /// Renders compared lines as the hunks of a unified diff.
    pub fn render_hunks(&self, n_context: usize) -> String {
        let mut text = String::new();
        for group in self.grouped_ops(n_context) {
            let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
            let old = hunk_range(first.old_range().start, last.old_range().end);
            let new = hunk_range(first.new_range().start, last.new_range().end);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "@@ -{old} +{new} @@");
            for op in &group {
                if op.tag() == DiffTag::Equal {
                    push_lines(&mut text, ' ', self.old_tokens(op));
                } else {
                    push_lines(&mut text, '-', self.old_tokens(op));
                    push_lines(&mut text, '+', self.new_tokens(op));
                }
            }
        }
        text
    }
}

fn number_tokens<'a>(tokens: &[&'a str], numbers: &mut HashMap<&'a str, u32>) -> Vec<u32> {
    let mut number = |token| {
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        *numbers.entry(token).or_insert(next)
    };
    tokens.iter().map(|token| number(*token)).collect()
}

/// Formats lines from `start` to before `end` as the header of a hunk does. An empty range names the line before it.
fn hunk_range(start: usize, end: usize) -> String {
    match end - start {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        n_lines => format!("{},{n_lines}", start + 1),
    }
}

fn push_lines(text: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        text.push(sign);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

fn split_lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn split_words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_space = first.is_whitespace();
        let end = rest.find(|c: char| c.is_whitespace() != is_space).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        words.push(word);
        rest = after;
    }
    words
}

fn split_chars(text: &str) -> Vec<&str> {
    text.char_indices().map(|(at, char)| &text[at..at + char.len_utf8()]).collect()
}
