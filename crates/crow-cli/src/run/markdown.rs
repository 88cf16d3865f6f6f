//! Streams Markdown: rows that no further text changes are written once; those of the open block are redrawn.

use std::io::{self, Write};

use crow_tui::text::{MarkdownStream, StyledRow, truncate_row};

use super::{
    plain::{PaintMode, THEME},
    terminal_size::TerminalSize,
};

/// Streams Markdown to a terminal of a known size; without style, text passes unchanged.
pub(super) struct MarkdownWriter {
    style: MarkdownStyle,
    stream: Option<MarkdownStream>,
    /// The rows of the open block on the screen; the cursor is at the end of the last one.
    open_rows: Vec<StyledRow>,
    /// Whether unstyled text is in the middle of a line.
    is_in_line: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum MarkdownStyle {
    Plain,
    /// Styled, on a terminal of this size.
    Styled(TerminalSize),
}

impl MarkdownWriter {
    pub(super) fn new(style: MarkdownStyle) -> Self {
        Self { style, stream: None, open_rows: Vec::new(), is_in_line: false }
    }

    /// Writes text that begins at the start of a line.
    pub(super) fn push(&mut self, text: &str, out: &mut impl Write) -> io::Result<()> {
        match self.style {
            MarkdownStyle::Plain => {
                self.is_in_line = if text.is_empty() { self.is_in_line } else { !text.ends_with('\n') };
                write!(out, "{text}")?;
            }
            MarkdownStyle::Styled(size) => {
                let stream =
                    self.stream.get_or_insert_with(|| MarkdownStream::new(text_columns(size), THEME));
                stream.push(text);
                let (settled, open) = (stream.take_settled(), stream.open_rows());
                self.draw(&settled, open, size, out)?;
            }
        }
        out.flush()
    }

    /// Returns the line breaks between messages: rows of Markdown need a blank line, or they are one paragraph.
    pub(super) fn message_gap(&self) -> &'static str {
        match self.style {
            MarkdownStyle::Plain => "\n",
            MarkdownStyle::Styled(_) => "\n\n",
        }
    }

    /// Ends the text and its last line.
    pub(super) fn finish(&mut self, out: &mut impl Write) -> io::Result<()> {
        if std::mem::take(&mut self.is_in_line) {
            writeln!(out)?;
        }
        if let (MarkdownStyle::Styled(size), Some(stream)) = (self.style, self.stream.take()) {
            self.draw(&stream.finish(), Vec::new(), size, out)?;
        }
        out.flush()
    }

    /// Replaces the open rows: first the settled ones, then as many of the open ones as fit the screen.
    fn draw(
        &mut self,
        settled: &[StyledRow],
        open: Vec<StyledRow>,
        size: TerminalSize,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let n_hidden = open.len().saturating_sub(size.rows.saturating_sub(1).max(1));
        let open: Vec<StyledRow> =
            open.into_iter().skip(n_hidden).map(|row| truncate_row(row, text_columns(size))).collect();
        if settled.is_empty() && open == self.open_rows {
            return Ok(());
        }
        if self.open_rows.len() > 1 {
            write!(out, "\x1b[{}A", self.open_rows.len() - 1)?;
        }
        if !self.open_rows.is_empty() {
            write!(out, "\r\x1b[J")?;
        }
        for row in settled {
            writeln!(out, "{}", PaintMode::Styled.paint_row(row))?;
        }
        let lines: Vec<String> = open.iter().map(|row| PaintMode::Styled.paint_row(row)).collect();
        write!(out, "{}", lines.join("\n"))?;
        self.open_rows = open;
        Ok(())
    }
}

/// The columns of text: with the last one empty, no terminal wraps a row.
fn text_columns(size: TerminalSize) -> usize {
    size.columns.saturating_sub(1)
}

#[cfg(test)]
mod tests;
