//! Pages of a text of any length, given piece by piece: lines are counted and cut, and no more than a page is kept. Knows no
//! file.

use std::borrow::Cow;

/// Which lines of a text are wanted.
#[derive(Debug, Clone, Copy)]
pub struct PageRange {
    /// The first of them, from 1.
    pub first: usize,
    /// Lines at most.
    pub lines_max: usize,
    /// Bytes of all lines at most.
    pub bytes_max: usize,
    /// Characters of one line.
    pub chars_max: usize,
}

/// A page, and how far the text was read.
#[derive(Debug, PartialEq, Eq)]
pub struct LinePage {
    /// The number of its first line.
    pub first: usize,
    /// Its lines, without their ends.
    pub lines: Vec<String>,
    /// Lines of the text as far as it was read.
    pub n_lines: usize,
    /// Whether what is no UTF-8 is shown as a replacement character.
    pub is_lossy: bool,
}

/// Lines as they come, of which those of a page are kept.
#[derive(Debug)]
pub struct LinePager {
    range: PageRange,
    kept: Vec<String>,
    room: usize,
    is_full: bool,
    is_lossy: bool,
    n_lines: usize,
    /// The line that has not ended, as much of it as is shown.
    line: Vec<u8>,
    n_chars: usize,
    is_open: bool,
    ends_in_return: bool,
}

impl LinePager {
    /// Begins at the beginning of a text.
    pub fn new(range: PageRange) -> Self {
        Self {
            range: PageRange { first: range.first.max(1), lines_max: range.lines_max.max(1), ..range },
            kept: Vec::new(),
            room: range.bytes_max,
            is_full: false,
            is_lossy: false,
            n_lines: 0,
            line: Vec::new(),
            n_chars: 0,
            is_open: false,
            ends_in_return: false,
        }
    }

    /// Whether the page is whole; what comes is only counted.
    pub fn is_full(&self) -> bool {
        self.is_full || self.kept.len() >= self.range.lines_max
    }

    /// Whether a line of the page is there.
    pub fn has_begun(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Takes the next bytes, cut anywhere.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let end = bytes.iter().position(|&byte| byte == b'\n');
            let (part, rest) = match end {
                Some(end) => (&bytes[..end], &bytes[end + 1..]),
                None => (bytes, &bytes[bytes.len()..]),
            };
            self.is_open = true;
            if self.n_lines + 1 >= self.range.first && !self.is_full() {
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
            // A byte that goes on with a character is none of its own.
            self.n_chars += usize::from(byte & 0xC0 != 0x80);
            if self.n_chars <= self.range.chars_max {
                self.line.push(byte);
            }
        }
        if let Some(&last) = part.last() {
            self.ends_in_return = last == b'\r';
        }
    }

    fn end_line(&mut self) {
        self.n_lines += 1;
        self.is_open = false;
        if self.n_lines >= self.range.first && !self.is_full() {
            let n_chars = self.n_chars - usize::from(self.ends_in_return);
            if n_chars < self.n_chars && self.n_chars <= self.range.chars_max {
                self.line.pop();
            }
            let shown = String::from_utf8_lossy(&self.line);
            self.is_lossy |= matches!(shown, Cow::Owned(_));
            let shown = match n_chars > self.range.chars_max {
                true => line_too_long(&shown, n_chars),
                false => shown.into_owned(),
            };
            self.is_full = shown.len() > self.room;
            if !self.is_full {
                self.room -= shown.len();
                self.kept.push(shown);
            }
        }
        self.line.clear();
        self.n_chars = 0;
        self.ends_in_return = false;
    }

    /// Gives the page.
    pub fn into_page(mut self) -> LinePage {
        if self.is_open {
            // A last line without an end keeps a return that it has.
            self.ends_in_return = false;
            self.end_line();
        }
        LinePage { first: self.range.first, lines: self.kept, n_lines: self.n_lines, is_lossy: self.is_lossy }
    }
}

/// Says of the beginning of a line that there is more of it.
pub fn line_too_long(beginning: &str, n_chars: usize) -> String {
    format!("{beginning}… (cut, the line has {n_chars} characters)")
}

#[cfg(test)]
mod tests;
