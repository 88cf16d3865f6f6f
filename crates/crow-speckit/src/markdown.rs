//! Reads Markdown as far as a task list or a spec needs it: which bytes are shown to a reader, its lines, its headings and
//! its boxes. What is hidden becomes spaces, so every offset holds in the text itself. Knows nothing of what pages mean.

use std::collections::HashMap;
use std::ops::Range;

/// What some editors put in front of a text. It is no part of its first line.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Bytes that a byte order mark takes in front of a text.
pub(crate) fn byte_order_mark_len(text: &str) -> usize {
    if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 }
}

/// A line, without its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MarkdownLine<'a> {
    /// From 1.
    pub(crate) number: usize,
    /// Where it begins in the text.
    pub(crate) start: usize,
    pub(crate) text: &'a str,
}

/// A heading with `#`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MarkdownHeading<'a> {
    pub(crate) level: usize,
    pub(crate) title: &'a str,
}

/// A list item with a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CheckboxItem<'a> {
    /// Where the byte between the brackets is in the line.
    pub(crate) marker: usize,
    pub(crate) is_ticked: bool,
    /// What stands behind the box.
    pub(crate) text: &'a str,
}

/// The lines of a text, the first without a byte order mark.
pub(crate) fn split_lines(text: &str) -> impl Iterator<Item = MarkdownLine<'_>> {
    let mut start = byte_order_mark_len(text);
    text[start..].split_inclusive('\n').enumerate().map(move |(at, whole)| {
        let line = whole.strip_suffix('\n').unwrap_or(whole);
        let line = MarkdownLine { number: at + 1, start, text: line.strip_suffix('\r').unwrap_or(line) };
        start += whole.len();
        line
    })
}

/// Reads a line as a heading.
pub(crate) fn parse_heading(line: &str) -> Option<MarkdownHeading<'_>> {
    let line = line.trim();
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let title = &line[level..];
    if !(1..=6).contains(&level) || !(title.is_empty() || title.starts_with([' ', '\t'])) {
        return None;
    }
    let title = title.trim();
    let open = title.trim_end_matches('#');
    Some(MarkdownHeading { level, title: if open.ends_with([' ', '\t']) { open.trim_end() } else { title } })
}

/// Reads a line as a list item; gives what stands behind the bullet.
pub(crate) fn parse_bullet(line: &str) -> Option<&str> {
    let rest = line.trim_start();
    let n_digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let rest = match n_digits {
        0 => rest.strip_prefix(['-', '*', '+'])?,
        _ => rest[n_digits..].strip_prefix(['.', ')'])?,
    };
    rest.starts_with([' ', '\t']).then(|| rest.trim_start())
}

/// Reads a line as a list item with a box.
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

/// The text with front matter, code blocks and comments blanked.
pub(crate) fn visible_text(text: &str) -> String {
    blank_ranges(text, &find_hidden_ranges(text, CodeSpanVisibility::Shown))
}

/// The text with code spans blanked too.
pub(crate) fn prose_text(text: &str) -> String {
    blank_ranges(text, &find_hidden_ranges(text, CodeSpanVisibility::Hidden))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CodeSpanVisibility {
    Shown,
    Hidden,
}

fn blank_ranges(text: &str, hidden: &[Range<usize>]) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut at = 0;
    for range in hidden {
        shown.push_str(&text[at..range.start]);
        for char in text[range.clone()].chars() {
            match char {
                '\n' | '\r' => shown.push(char),
                _ => shown.extend(std::iter::repeat_n(' ', char.len_utf8())),
            }
        }
        at = range.end;
    }
    shown.push_str(&text[at..]);
    shown
}

/// What is hidden, in order and apart from each other.
fn find_hidden_ranges(text: &str, spans: CodeSpanVisibility) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = front_matter_end(text);
    let begin = at.max(byte_order_mark_len(text));
    if begin > 0 {
        found.push(0..begin);
    }
    let mut fence: Option<(&str, usize)> = None;
    let mut seeker = CommentEndFinder::default();
    for line in split_lines(text) {
        if line.start < at {
            continue;
        }
        let end = line.start + line.text.len();
        match fence {
            Some((mark, start)) => {
                if closes_fence(mark, line.text) {
                    found.push(start..end);
                    fence = None;
                }
            }
            None => match fence_marker(line.text) {
                Some(mark) => fence = Some((mark, line.start)),
                None => at = scan_line(text, line, spans, &mut seeker, &mut found),
            },
        }
    }
    found.extend(fence.map(|(_, start)| start..text.len()));
    found
}

/// Where front matter ends; 0 if there is none.
fn front_matter_end(text: &str) -> usize {
    let mut lines = split_lines(text);
    if lines.next().is_none_or(|line| line.text.trim_end() != "---") {
        return 0;
    }
    // A rule on top of a page that has another further down would hide all that is between.
    let mut before =
        lines.take_while(|line| parse_heading(line.text).is_none_or(|heading| heading.level != 2));
    before.find(|line| line.text.trim_end() == "---").map_or(0, |line| line.start + line.text.len())
}

/// The mark with which a line begins a code block.
fn fence_marker(line: &str) -> Option<&str> {
    // In a list item a block may begin with its bullet.
    let line = parse_bullet(line).unwrap_or(line).trim_start();
    let mark = ['`', '~'].into_iter().find(|char| line.starts_with(*char))?;
    let n = line.chars().take_while(|char| *char == mark).count();
    let is_span = mark == '`' && line[n..].contains('`');
    (n >= 3 && !is_span).then(|| &line[..n])
}

fn closes_fence(mark: &str, line: &str) -> bool {
    let line = line.trim();
    line.len() >= mark.len() && line.starts_with(mark) && line.trim_start_matches(&mark[..1]).is_empty()
}

/// Finds what is hidden in a line, and comments that begin in it; gives where to read on.
fn scan_line(
    text: &str,
    line: MarkdownLine<'_>,
    spans: CodeSpanVisibility,
    seeker: &mut CommentEndFinder,
    found: &mut Vec<Range<usize>>,
) -> usize {
    let end = line.start + line.text.len();
    let code = code_spans(line);
    let mut code = code.iter().peekable();
    let mut at = line.start;
    let indented = end - line.text.trim_start().len();
    let begun = |from: usize| text.get(from..end).and_then(|rest| rest.find("<!--")).map(|at| from + at);
    let mut comment = begun(at);
    while at < end {
        if comment.is_some_and(|comment| comment < at) {
            comment = begun(at);
        }
        while code.next_if(|span| span.start < at).is_some() {}
        match (code.peek(), comment) {
            (Some(span), comment) if comment.is_none_or(|comment| span.start < comment) => {
                if spans == CodeSpanVisibility::Hidden {
                    found.push((*span).clone());
                }
                at = span.end;
            }
            (_, Some(comment)) => {
                let close = match comment == indented {
                    true => Some(seeker.block_comment_end(text, comment)),
                    false => seeker.inline_comment_end(text, comment),
                };
                found.extend(close.map(|close| comment..close));
                at = close.unwrap_or(comment + "<!--".len());
            }
            (_, None) => break,
        }
    }
    at
}

/// The code spans of a line.
fn code_spans(line: MarkdownLine<'_>) -> Vec<Range<usize>> {
    let bytes = line.text.as_bytes();
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'`') {
        match runs.last_mut() {
            Some(run) if run.end == at => run.end += 1,
            Some(_) | None => runs.push(at..at + 1),
        }
    }
    // From the right, so that each mark finds the next one of its length without a search.
    let mut last = HashMap::new();
    let mut closers: Vec<Option<usize>> =
        runs.iter().enumerate().rev().map(|(at, run)| last.insert(run.len(), at)).collect();
    closers.reverse();
    let mut spans = Vec::new();
    let mut at = 0;
    while at < runs.len() {
        match closers[at] {
            Some(closer) => {
                spans.push(line.start + runs[at].start..line.start + runs[closer].end);
                at = closer + 1;
            }
            None => at += 1,
        }
    }
    spans
}

/// Looks for the ends of comments, and remembers what it saw: a page of nothing but beginnings is read once.
#[derive(Default)]
struct CommentEndFinder {
    /// The end that was found last; none before a search, the page's length where there is none.
    next: Option<usize>,
    /// No comment that begins in a line before this one ends.
    none_before: usize,
}

impl CommentEndFinder {
    /// Where the comment ends that begins a line here: with the page, if nowhere else.
    fn block_comment_end(&mut self, text: &str, start: usize) -> usize {
        self.next_end(text, start + "<!--".len())
    }

    /// Where the comment ends that begins amid a line here; none if its paragraph is over before.
    fn inline_comment_end(&mut self, text: &str, start: usize) -> Option<usize> {
        let inner = start + "<!--".len();
        if inner < self.none_before {
            return None;
        }
        let close = self.next_end(text, inner);
        let within = &text[inner..close];
        let is_blank = |at: usize| within[at + 1..].starts_with('\n') || within[at + 1..].starts_with("\r\n");
        match within.match_indices('\n').find(|(at, _)| is_blank(*at)) {
            Some((at, _)) => self.none_before = inner + at,
            None if within.ends_with("-->") => return Some(close),
            None => self.none_before = text.len(),
        }
        None
    }

    fn next_end(&mut self, text: &str, from: usize) -> usize {
        match self.next {
            Some(end) if end >= from + "-->".len() || end == text.len() => end,
            Some(_) | None => {
                let end = text[from..].find("-->").map_or(text.len(), |at| from + at + "-->".len());
                self.next = Some(end);
                end
            }
        }
    }
}

#[cfg(test)]
mod tests;
