//! Streams markdown: an open line is shown as it arrives and redrawn with style once it is complete.

use std::io::{self, Write};

use console::{Style, measure_text_width};
use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use super::{plain::PaintMode, terminal_size::TerminalSize};

/// Columns between tab stops.
const TAB_COLUMNS: usize = 8;

/// Streams markdown to a terminal of a known size; without style, text passes unchanged.
pub(super) struct MarkdownWriter {
    style: MarkdownStyle,
    /// The incomplete line.
    open_line: String,
    /// The opening fence of the current code block.
    fence: Option<String>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum MarkdownStyle {
    Plain,
    /// Styled, on a terminal of this size.
    Styled(TerminalSize),
}

impl MarkdownWriter {
    pub(super) fn new(style: MarkdownStyle) -> Self {
        Self { style, open_line: String::new(), fence: None }
    }

    /// Writes text that begins at the start of a line.
    pub(super) fn push(&mut self, text: &str, out: &mut impl Write) -> io::Result<()> {
        for piece in text.split_inclusive('\n') {
            let line = piece.strip_suffix('\n');
            let content = line.unwrap_or(piece);
            write!(out, "{content}")?;
            self.open_line.push_str(content);
            if line.is_some() {
                self.end_line(out)?;
            }
        }
        out.flush()
    }

    /// Ends the text and its last line.
    pub(super) fn finish(&mut self, out: &mut impl Write) -> io::Result<()> {
        if !self.open_line.is_empty() {
            self.end_line(out)?;
        }
        self.fence = None;
        out.flush()
    }

    fn end_line(&mut self, out: &mut impl Write) -> io::Result<()> {
        let line = std::mem::take(&mut self.open_line);
        let rendered = self.render_line(&line);
        if let MarkdownStyle::Styled(size) = self.style
            && rendered != line
            && let Some(n_rows) = count_rows(&line, size.columns)
            // A line that scrolled off cannot be redrawn.
            && n_rows < size.rows
        {
            if n_rows > 1 {
                write!(out, "\x1b[{}A", n_rows - 1)?;
            }
            write!(out, "\r\x1b[J{rendered}")?;
        }
        writeln!(out)
    }

    fn render_line(&mut self, line: &str) -> String {
        let code = Style::new().cyan();
        let fence = find_fence(line);
        match (&self.fence, fence) {
            (Some(open), Some(close)) if is_closing_fence(open, close, line) => {
                self.fence = None;
                PaintMode::Styled.apply_style(Style::new().dim(), line)
            }
            (Some(_), _) => PaintMode::Styled.apply_style(code, line),
            (None, Some(open)) => {
                self.fence = Some(open.to_owned());
                PaintMode::Styled.apply_style(Style::new().dim(), line)
            }
            (None, None) => style_line(line),
        }
    }
}

/// Finds the fence of a code block.
fn find_fence(line: &str) -> Option<&str> {
    let text = line.trim_start();
    let marker = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let after_marker = text.trim_start_matches(marker);
    let fence = &text[..text.len() - after_marker.len()];
    // More backticks in the line make it inline code.
    (fence.len() >= 3 && !(marker == '`' && after_marker.contains('`'))).then_some(fence)
}

fn is_closing_fence(opening: &str, closing: &str, line: &str) -> bool {
    closing.starts_with(opening) && line.trim() == closing
}

/// Counts the rows of a line; `None` if terminals disagree.
fn count_rows(line: &str, columns: usize) -> Option<usize> {
    let (mut n_rows, mut column) = (1, 0);
    let mut letter = [0; 4];
    for c in line.chars() {
        // A tab stays in its row; the width of joined emoji depends on the terminal.
        if c == '\t' {
            column = (column / TAB_COLUMNS * TAB_COLUMNS + TAB_COLUMNS).min(columns.saturating_sub(1));
            continue;
        }
        if matches!(c, '\u{200d}' | '\u{fe0f}') {
            return None;
        }
        let width = measure_text_width(c.encode_utf8(&mut letter));
        if column + width > columns {
            (n_rows, column) = (n_rows + 1, 0);
        }
        column += width;
    }
    Some(n_rows)
}

/// Styles one line outside code blocks.
fn style_line(line: &str) -> String {
    let text = line.trim_start();
    let mut rendered = line[..line.len() - text.len()].to_owned();
    let n_indent = rendered.len();
    let (mut bold, mut italic) = (0_u32, 0_u32);
    let mut link = None;
    for event in Parser::new(text) {
        match event {
            Event::Start(Tag::Heading { .. } | Tag::Strong) => bold += 1,
            Event::End(TagEnd::Heading(_) | TagEnd::Strong) => bold = bold.saturating_sub(1),
            Event::Start(Tag::Emphasis) => italic += 1,
            Event::End(TagEnd::Emphasis) => italic = italic.saturating_sub(1),
            Event::Start(Tag::List(start)) => {
                rendered.push_str(&start.map_or_else(|| "• ".to_owned(), |number| format!("{number}. ")));
            }
            Event::Start(Tag::BlockQuote(_)) => rendered.push_str("│ "),
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                link = Some((rendered.len(), dest_url));
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                // An autolink already shows its target.
                if let Some((start, target)) = link.take()
                    && !rendered[start..].contains(&*target)
                {
                    rendered.push_str(
                        &PaintMode::Styled.apply_style(Style::new().dim(), &format!(" ({target})")),
                    );
                }
            }
            Event::Start(_) | Event::End(_) => {}
            Event::Code(code) => {
                rendered.push_str(&PaintMode::Styled.apply_style(Style::new().cyan(), &code));
            }
            Event::Rule => rendered.push_str("────"),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                rendered.push_str(&style_span(&text, bold, italic));
            }
            Event::SoftBreak | Event::HardBreak => rendered.push(' '),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                rendered.push_str(&text);
            }
            Event::TaskListMarker(done) => rendered.push_str(if done { "[x] " } else { "[ ] " }),
        }
    }
    // Some lines, such as link definitions, render as nothing; they are shown as they are.
    if rendered.len() == n_indent { line.to_owned() } else { rendered }
}

fn style_span(text: &str, bold: u32, italic: u32) -> String {
    let mut style = Style::new();
    if bold > 0 {
        style = style.bold();
    }
    if italic > 0 {
        style = style.italic();
    }
    PaintMode::Styled.apply_style(style, text)
}

#[cfg(test)]
mod tests;
