//! The position of a parser in a text that may still grow.

/// A text, and how far it was read.
#[derive(Debug)]
pub(super) struct TextCursor<'t> {
    text: &'t str,
    pub(super) n_read: usize,
}

/// The reason to stop before the end of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScanStop {
    /// The text ends inside the element.
    NeedMore,
    /// No continuation of the text fits.
    Mismatch,
}

pub(super) type ScanResult<T = ()> = Result<T, ScanStop>;

impl<'t> TextCursor<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, n_read: 0 }
    }

    /// Returns the text that is not read yet.
    pub(super) fn rest(&self) -> &'t str {
        &self.text[self.n_read..]
    }

    /// Returns the text that was read since an offset.
    pub(super) fn text_since(&self, start: usize) -> &'t str {
        &self.text[start..self.n_read]
    }

    /// Skips characters; the text must continue after them.
    pub(super) fn skip_while(&mut self, is_skipped: impl Fn(char) -> bool) -> ScanResult {
        let rest = self.rest();
        self.n_read += rest.find(|char| !is_skipped(char)).ok_or(ScanStop::NeedMore)?;
        Ok(())
    }
}
