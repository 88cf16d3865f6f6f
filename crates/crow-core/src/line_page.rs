//! Pages of a text of any length that arrives in pieces: counts and splits lines, and stores at most one page. Knows
//! no files.

use std::borrow::Cow;

/// The requested lines of a text.
#[derive(Debug, Clone, Copy)]
pub struct PageRange {
    /// The first line, from 1.
    pub first_line: usize,
    /// The maximum number of lines.
    pub lines_max: usize,
    /// The maximum bytes of all lines.
    pub bytes_max: usize,
    /// The maximum characters of one line.
    pub chars_max: usize,
}

/// A page, with the number of lines read.
#[derive(Debug, PartialEq, Eq)]
pub struct LinePage {
    /// The number of its first line, from 1.
    pub first_line: usize,
    /// Its lines, without line endings.
    pub lines: Vec<String>,
    /// The number of lines read.
    pub n_lines: usize,
    /// Whether invalid UTF-8 was replaced.
    pub is_lossy: bool,
}

/// Collects the lines of a page from a stream.
#[derive(Debug)]
pub struct LinePager {
    range: PageRange,
    lines: Vec<String>,
    n_bytes_left: usize,
    is_full: bool,
    is_lossy: bool,
    n_lines: usize,
    /// The start of the unfinished line, as far as it is shown.
    line: Vec<u8>,
    n_chars: usize,
    has_partial_line: bool,
    ends_in_cr: bool,
}

impl LinePager {
    /// Creates a pager at the start of a text.
    pub fn new(range: PageRange) -> Self {
        Self {
            range: PageRange {
                first_line: range.first_line.max(1),
                lines_max: range.lines_max.max(1),
                ..range
            },
            lines: Vec::new(),
            n_bytes_left: range.bytes_max,
            is_full: false,
            is_lossy: false,
            n_lines: 0,
            line: Vec::new(),
            n_chars: 0,
            has_partial_line: false,
            ends_in_cr: false,
        }
    }

    /// Whether the page is complete; further lines are only counted.
    pub fn is_full(&self) -> bool {
        self.is_full || self.lines.len() >= self.range.lines_max
    }

    /// Whether the page has a line.
    pub fn has_begun(&self) -> bool {
        !self.lines.is_empty()
    }

    /// Processes the next bytes, in any chunking.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let end = bytes.iter().position(|&byte| byte == b'\n');
            let (part, rest) = match end {
                Some(end) => (&bytes[..end], &bytes[end + 1..]),
                None => (bytes, &bytes[bytes.len()..]),
            };
            self.has_partial_line = true;
            if self.n_lines + 1 >= self.range.first_line && !self.is_full() {
                self.extend_line(part);
            }
            if end.is_some() {
                self.end_line();
            }
            bytes = rest;
        }
    }

    fn extend_line(&mut self, part: &[u8]) {
        for &byte in part {
            // A continuation byte is no character of its own.
            self.n_chars += usize::from(byte & 0xC0 != 0x80);
            if self.n_chars <= self.range.chars_max {
                self.line.push(byte);
            }
        }
        if let Some(&last) = part.last() {
            self.ends_in_cr = last == b'\r';
        }
    }

    fn end_line(&mut self) {
        self.n_lines += 1;
        self.has_partial_line = false;
        if self.n_lines >= self.range.first_line && !self.is_full() {
            let n_chars = self.n_chars - usize::from(self.ends_in_cr);
            if n_chars < self.n_chars && self.n_chars <= self.range.chars_max {
                self.line.pop();
            }
            let shown = String::from_utf8_lossy(&self.line);
            self.is_lossy |= matches!(shown, Cow::Owned(_));
            let shown = match n_chars > self.range.chars_max {
                true => line_too_long(&shown, n_chars),
                false => shown.into_owned(),
            };
            self.is_full = shown.len() > self.n_bytes_left;
            if !self.is_full {
                self.n_bytes_left -= shown.len();
                self.lines.push(shown);
            }
        }
        self.line.clear();
        self.n_chars = 0;
        self.ends_in_cr = false;
    }

    /// Returns the page.
    pub fn into_page(mut self) -> LinePage {
        if self.has_partial_line {
            // A last line without a line feed keeps its carriage return.
            self.ends_in_cr = false;
            self.end_line();
        }
        LinePage {
            first_line: self.range.first_line,
            lines: self.lines,
            n_lines: self.n_lines,
            is_lossy: self.is_lossy,
        }
    }
}

/// Marks the start of a line as truncated.
pub fn line_too_long(beginning: &str, n_chars: usize) -> String {
    format!("{beginning}… (cut, the line has {n_chars} characters)")
}

#[cfg(test)]
mod tests;
