//! Pages of a text of any length: lines are counted and cut while reading, and only one page is stored. Blocks on its
//! reader; must not know any tool.

use std::{
    fmt::Write as _,
    io::{self, Read},
    time::{Duration, Instant},
};

use crow_core::{LinePage, LinePager, PageRange};
use encoding_rs::{Decoder, UTF_16BE, UTF_16LE};
use tokio_util::sync::CancellationToken;

use crate::text_encoding::{BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, number_lines};

/// Bytes read at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// Time limit to find the first line of a page.
const FIND_TIMEOUT: Duration = Duration::from_secs(60);

/// Time limit to count the lines after a page.
const COUNT_TIMEOUT: Duration = Duration::from_secs(5);

/// A page, and whether the lines after it were counted to the end.
#[derive(Debug)]
pub(crate) struct TextPage {
    page: LinePage,
    is_counted: bool,
}

/// Reason why there is no page.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PageError {
    #[error("it is a binary file")]
    Binary,
    #[error("line {first} was not reached within {} seconds", FIND_TIMEOUT.as_secs())]
    TooSlow { first: usize },
    #[error("the turn was cancelled")]
    Cancelled,
    #[error("{0}")]
    System(#[from] io::Error),
}

impl TextPage {
    /// Returns a page of a text.
    pub(crate) fn from_text(text: &str, range: PageRange) -> Self {
        let mut lines = LinePager::new(range);
        lines.push(text.as_bytes());
        Self { page: lines.into_page(), is_counted: true }
    }

    /// Reads a page of a text in UTF-8, or in UTF-16 with a byte order mark.
    pub(crate) fn read(
        mut source: impl Read,
        range: PageRange,
        cancel: &CancellationToken,
    ) -> Result<Self, PageError> {
        let started_at = Instant::now();
        let mut lines = LinePager::new(range);
        let mut full_since = None;
        let mut utf16: Option<Decoder> = None;
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut has_started = false;
        loop {
            if cancel.is_cancelled() {
                return Err(PageError::Cancelled);
            }
            let n_read = fill_chunk(&mut source, &mut chunk)?;
            let mut bytes = &chunk[..n_read];
            if !has_started {
                has_started = true;
                utf16 = utf16_decoder(bytes);
                bytes = bytes.strip_prefix(BOM_UTF8).unwrap_or(bytes);
            }
            match &mut utf16 {
                Some(decoder) => lines.push(decode_chunk(decoder, bytes, n_read == 0).as_bytes()),
                None if bytes.contains(&0) => return Err(PageError::Binary),
                None => lines.push(bytes),
            }
            if n_read == 0 {
                return Ok(Self { page: lines.into_page(), is_counted: true });
            }
            if lines.is_full() {
                if full_since.get_or_insert_with(Instant::now).elapsed() > COUNT_TIMEOUT {
                    return Ok(Self { page: lines.into_page(), is_counted: false });
                }
            } else if !lines.has_begun() && started_at.elapsed() > FIND_TIMEOUT {
                return Err(PageError::TooSlow { first: range.first_line });
            }
        }
    }

    /// Whether undecodable bytes are shown as replacement characters.
    pub(crate) fn is_lossy(&self) -> bool {
        self.page.is_lossy
    }

    /// Whether the text has no line.
    pub(crate) fn is_empty(&self) -> bool {
        self.page.n_lines == 0
    }

    /// The number of lines, if the page begins after the last one.
    pub(crate) fn total_if_past_end(&self) -> Option<usize> {
        (self.page.first_line > self.page.n_lines).then_some(self.page.n_lines)
    }

    /// Renders the lines with their numbers, and a note on how to continue.
    pub(crate) fn into_text(self) -> String {
        let Self { page: LinePage { first_line: first, lines, n_lines, .. }, is_counted } = self;
        let mut text = number_lines(lines.iter().map(String::as_str), first);
        let last = first - 1 + lines.len();
        if last < n_lines {
            let more_than = if is_counted { "" } else { "more than " };
            let next = last + 1;
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "(lines {first} to {last} of {more_than}{n_lines}; continue with offset={next})"
            );
        }
        text
    }
}

/// Reads until a chunk is full or the source ends, so that a short read does not split a character of two bytes.
fn fill_chunk(source: &mut impl Read, chunk: &mut [u8]) -> io::Result<usize> {
    let mut n_read = 0;
    while n_read < chunk.len() {
        match source.read(&mut chunk[n_read..]) {
            Ok(0) => break,
            Ok(n) => n_read += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(n_read)
}

fn utf16_decoder(bytes: &[u8]) -> Option<Decoder> {
    if bytes.starts_with(BOM_UTF16_LE) {
        Some(UTF_16LE.new_decoder_with_bom_removal())
    } else if bytes.starts_with(BOM_UTF16_BE) {
        Some(UTF_16BE.new_decoder_with_bom_removal())
    } else {
        None
    }
}

fn decode_chunk(decoder: &mut Decoder, bytes: &[u8], is_last: bool) -> String {
    let capacity = decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(4 * CHUNK_BYTES);
    let mut text = String::with_capacity(capacity);
    // The capacity suffices.
    let _ = decoder.decode_to_string(bytes, &mut text, is_last);
    text
}

#[cfg(test)]
mod tests;
