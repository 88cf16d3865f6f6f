//! Parses the Markdown that task lists and specs need: visible text, lines, headings and checkboxes. Hidden bytes
//! become spaces, so every offset is valid in the original text. Knows nothing of the meaning of pages.

use std::collections::HashMap;
use std::ops::Range;

/// Written by some editors at the start of a text; not part of the first line.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The length of the byte order mark at the start of a text.
pub(crate) fn byte_order_mark_len(text: &str) -> usize {
    if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 }
}

/// A line without its line ending.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MarkdownLine<'a> {
    /// From 1.
    pub(crate) number: usize,
    /// Its offset in the text.
    pub(crate) start: usize,
    pub(crate) text: &'a str,
}

/// A heading with `#`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MarkdownHeading<'a> {
    pub(crate) level: usize,
    pub(crate) title: &'a str,
}

/// A list item with a checkbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CheckboxItem<'a> {
    /// The offset of the byte between the brackets in the line.
    pub(crate) marker: usize,
    pub(crate) is_ticked: bool,
    /// The text after the box.
    pub(crate) text: &'a str,
}

/// Splits a text into lines; the first one is without a byte order mark.
pub(crate) fn split_lines(text: &str) -> impl Iterator<Item = MarkdownLine<'_>> {
    let mut start = byte_order_mark_len(text);
    text[start..].split_inclusive('\n').enumerate().map(move |(index, full_line)| {
        let line = full_line.strip_suffix('\n').unwrap_or(full_line);
        let line = MarkdownLine { number: index + 1, start, text: line.strip_suffix('\r').unwrap_or(line) };
        start += full_line.len();
        line
    })
}

/// Parses a heading.
pub(crate) fn parse_heading(line: &str) -> Option<MarkdownHeading<'_>> {
    let line = line.trim();
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let title = &line[level..];
    if !(1..=6).contains(&level) || !(title.is_empty() || title.starts_with([' ', '\t'])) {
        return None;
    }
    let title = title.trim();
    let without_hashes = title.trim_end_matches('#');
    Some(MarkdownHeading {
        level,
        title: if without_hashes.ends_with([' ', '\t']) { without_hashes.trim_end() } else { title },
    })
}

/// Parses a list item and returns the text after the bullet.
pub(crate) fn parse_bullet(line: &str) -> Option<&str> {
    let rest = line.trim_start();
    let n_digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let rest = match n_digits {
        0 => rest.strip_prefix(['-', '*', '+'])?,
        _ => rest[n_digits..].strip_prefix(['.', ')'])?,
    };
    rest.starts_with([' ', '\t']).then(|| rest.trim_start())
}

/// Parses a list item with a checkbox.
pub(crate) fn parse_checkbox(line: &str) -> Option<CheckboxItem<'_>> {
    let rest = parse_bullet(line)?;
    let marker = line.len() - rest.len() + 1;
    let inner = rest.strip_prefix('[')?;
    let is_ticked = match inner.as_bytes().first()? {
        b' ' => false,
        b'x' | b'X' => true,
        _ => return None,
    };
    let text = inner[1..].strip_prefix(']')?;
    (text.is_empty() || text.starts_with([' ', '\t'])).then(|| CheckboxItem {
        marker,
        is_ticked,
        text: text.trim(),
    })
}

/// Blanks front matter, code blocks and comments.
pub(crate) fn visible_text(text: &str) -> String {
    blank_ranges(text, &find_hidden_ranges(text, CodeSpanVisibility::Visible))
}

/// Blanks front matter, code blocks, comments and code spans.
pub(crate) fn prose_text(text: &str) -> String {
    blank_ranges(text, &find_hidden_ranges(text, CodeSpanVisibility::Hidden))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CodeSpanVisibility {
    Visible,
    Hidden,
}

fn blank_ranges(text: &str, hidden: &[Range<usize>]) -> String {
    let mut blanked = String::with_capacity(text.len());
    let mut position = 0;
    for range in hidden {
        blanked.push_str(&text[position..range.start]);
        for char in text[range.clone()].chars() {
            match char {
                '\n' | '\r' => blanked.push(char),
                _ => blanked.extend(std::iter::repeat_n(' ', char.len_utf8())),
            }
        }
        position = range.end;
    }
    blanked.push_str(&text[position..]);
    blanked
}

/// Returns the hidden ranges, sorted and disjoint.
fn find_hidden_ranges(text: &str, code_span_visibility: CodeSpanVisibility) -> Vec<Range<usize>> {
    let mut hidden = Vec::new();
    let mut position = front_matter_end(text);
    let start = position.max(byte_order_mark_len(text));
    if start > 0 {
        hidden.push(0..start);
    }
    let mut fence: Option<(&str, usize)> = None;
    let mut comment_ends = CommentEndFinder::default();
    for line in split_lines(text) {
        if line.start < position {
            continue;
        }
        let end = line.start + line.text.len();
        match fence {
            Some((fence_mark, start)) => {
                if closes_fence(fence_mark, line.text) {
                    hidden.push(start..end);
                    fence = None;
                }
            }
            None => match fence_marker(line.text) {
                Some(fence_mark) => fence = Some((fence_mark, line.start)),
                None => {
                    position = scan_line(text, line, code_span_visibility, &mut comment_ends, &mut hidden);
                }
            },
        }
    }
    hidden.extend(fence.map(|(_, start)| start..text.len()));
    hidden
}

/// Returns the end of the front matter; 0 if there is none.
fn front_matter_end(text: &str) -> usize {
    let mut lines = split_lines(text);
    if lines.next().is_none_or(|line| line.text.trim_end() != "---") {
        return 0;
    }
    // Two horizontal rules are front matter only if no section lies between them.
    let mut front_matter =
        lines.take_while(|line| parse_heading(line.text).is_none_or(|heading| heading.level != 2));
    front_matter.find(|line| line.text.trim_end() == "---").map_or(0, |line| line.start + line.text.len())
}

/// Returns the marker if a line starts a code block.
fn fence_marker(line: &str) -> Option<&str> {
    // A code block may begin after a list bullet.
    let line = parse_bullet(line).unwrap_or(line).trim_start();
    let fence_char = ['`', '~'].into_iter().find(|char| line.starts_with(*char))?;
    let n_marks = line.chars().take_while(|char| *char == fence_char).count();
    let is_span = fence_char == '`' && line[n_marks..].contains('`');
    (n_marks >= 3 && !is_span).then(|| &line[..n_marks])
}

fn closes_fence(fence_mark: &str, line: &str) -> bool {
    let line = line.trim();
    line.len() >= fence_mark.len()
        && line.starts_with(fence_mark)
        && line.trim_start_matches(&fence_mark[..1]).is_empty()
}

/// Finds hidden ranges in a line and comments that begin in it; returns where to continue.
fn scan_line(
    text: &str,
    line: MarkdownLine<'_>,
    code_span_visibility: CodeSpanVisibility,
    comment_ends: &mut CommentEndFinder,
    hidden: &mut Vec<Range<usize>>,
) -> usize {
    let end = line.start + line.text.len();
    let code = code_spans(line);
    let mut code = code.iter().peekable();
    let mut position = line.start;
    let text_start = end - line.text.trim_start().len();
    let next_comment =
        |from: usize| text.get(from..end).and_then(|rest| rest.find("<!--")).map(|position| from + position);
    let mut comment_start = next_comment(position);
    while position < end {
        if comment_start.is_some_and(|comment_start| comment_start < position) {
            comment_start = next_comment(position);
        }
        while code.next_if(|span| span.start < position).is_some() {}
        match (code.peek(), comment_start) {
            (Some(span), comment_start) if comment_start.is_none_or(|comment| span.start < comment) => {
                if code_span_visibility == CodeSpanVisibility::Hidden {
                    hidden.push((*span).clone());
                }
                position = span.end;
            }
            (_, Some(comment_start)) => {
                let comment_end = match comment_start == text_start {
                    true => Some(comment_ends.block_comment_end(text, comment_start)),
                    false => comment_ends.inline_comment_end(text, comment_start),
                };
                hidden.extend(comment_end.map(|comment_end| comment_start..comment_end));
                position = comment_end.unwrap_or(comment_start + "<!--".len());
            }
            (_, None) => break,
        }
    }
    position
}

/// Returns the code spans of a line.
fn code_spans(line: MarkdownLine<'_>) -> Vec<Range<usize>> {
    let bytes = line.text.as_bytes();
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (backtick, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'`') {
        match runs.last_mut() {
            Some(run) if run.end == backtick => run.end += 1,
            Some(_) | None => runs.push(backtick..backtick + 1),
        }
    }
    // From right to left, so that each mark finds the next one of its length without a search.
    let mut next_run_by_len = HashMap::new();
    let mut closers: Vec<Option<usize>> = runs
        .iter()
        .enumerate()
        .rev()
        .map(|(position, run)| next_run_by_len.insert(run.len(), position))
        .collect();
    closers.reverse();
    let mut spans = Vec::new();
    let mut backtick = 0;
    while backtick < runs.len() {
        match closers[backtick] {
            Some(closer) => {
                spans.push(line.start + runs[backtick].start..line.start + runs[closer].end);
                backtick = closer + 1;
            }
            None => backtick += 1,
        }
    }
    spans
}

/// Finds the ends of comments and caches the last one, so that a page of unclosed comments is scanned once.
#[derive(Default)]
struct CommentEndFinder {
    /// The last end found: `None` before the first search, the page's length if there is none.
    last_end: Option<usize>,
    /// Inline comments that begin before this offset have no end.
    unclosed_before: usize,
}

impl CommentEndFinder {
    /// Returns the end of a comment that begins a line: the end of the page if it is not closed.
    fn block_comment_end(&mut self, text: &str, start: usize) -> usize {
        self.next_end(text, start + "<!--".len())
    }

    /// Returns the end of a comment in the middle of a line; `None` if its paragraph ends first.
    fn inline_comment_end(&mut self, text: &str, start: usize) -> Option<usize> {
        let inner = start + "<!--".len();
        if inner < self.unclosed_before {
            return None;
        }
        let comment_end = self.next_end(text, inner);
        let comment_text = &text[inner..comment_end];
        let is_blank = |at: usize| {
            comment_text[at + 1..].starts_with('\n') || comment_text[at + 1..].starts_with("\r\n")
        };
        match comment_text.match_indices('\n').find(|(position, _)| is_blank(*position)) {
            Some((position, _)) => self.unclosed_before = inner + position,
            None if comment_text.ends_with("-->") => return Some(comment_end),
            None => self.unclosed_before = text.len(),
        }
        None
    }

    fn next_end(&mut self, text: &str, from: usize) -> usize {
        match self.last_end {
            Some(end) if end >= from + "-->".len() || end == text.len() => end,
            Some(_) | None => {
                let end =
                    text[from..].find("-->").map_or(text.len(), |position| from + position + "-->".len());
                self.last_end = Some(end);
                end
            }
        }
    }
}

#[cfg(test)]
mod tests;
