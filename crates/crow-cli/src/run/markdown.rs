//! Markdown as it streams: the open line shows as it comes, and is drawn again with its looks once it is whole.

use std::io::{self, Write};

use console::{Style, measure_text_width};
use pulldown_cmark::{Event, Parser, Tag, TagEnd};

/// Streams markdown to a terminal of a known width; without looks it passes text on as it is.
pub(super) struct Markdown {
    looks: Looks,
    open: String,
    fenced: bool,
}

/// How text is drawn.
#[derive(Debug, Clone, Copy)]
pub(super) enum Looks {
    /// As it is.
    Plain,
    /// Styled, on a terminal this many columns wide.
    Styled { columns: usize },
}

impl Markdown {
    pub(super) fn new(looks: Looks) -> Self {
        Self { looks, open: String::new(), fenced: false }
    }

    /// Tells whether the cursor stands at the start of a line.
    pub(super) fn is_at_start(&self) -> bool {
        self.open.is_empty()
    }

    /// Writes more text.
    pub(super) fn push(&mut self, text: &str, out: &mut impl Write) -> io::Result<()> {
        for piece in text.split_inclusive('\n') {
            match piece.strip_suffix('\n') {
                Some(rest) => {
                    write!(out, "{rest}")?;
                    self.open.push_str(rest);
                    self.end_line(out)?;
                }
                None => {
                    write!(out, "{piece}")?;
                    self.open.push_str(piece);
                }
            }
        }
        out.flush()
    }

    /// Ends the open line, if there is one.
    pub(super) fn end(&mut self, out: &mut impl Write) -> io::Result<()> {
        if !self.open.is_empty() {
            self.end_line(out)?;
        }
        self.fenced = false;
        out.flush()
    }

    fn end_line(&mut self, out: &mut impl Write) -> io::Result<()> {
        let line = std::mem::take(&mut self.open);
        let is_fence = line.trim_start().starts_with("```");
        if let Looks::Styled { columns } = self.looks {
            // A line that wrapped cannot be drawn again in place.
            if measure_text_width(&line) < columns {
                let styled = match is_fence || self.fenced {
                    true => Style::new().dim().apply_to(&line).to_string(),
                    false => styled(&line),
                };
                write!(out, "\r\x1b[2K{styled}")?;
            }
        }
        self.fenced ^= is_fence;
        writeln!(out)
    }
}

/// Draws one line outside code blocks.
fn styled(line: &str) -> String {
    let text = line.trim_start();
    let mut drawn = line[..line.len() - text.len()].to_owned();
    let (mut bold, mut italic) = (0_u32, 0_u32);
    for event in Parser::new(text) {
        match event {
            Event::Start(Tag::Heading { .. } | Tag::Strong) => bold += 1,
            Event::End(TagEnd::Heading(_) | TagEnd::Strong) => bold = bold.saturating_sub(1),
            Event::Start(Tag::Emphasis) => italic += 1,
            Event::End(TagEnd::Emphasis) => italic = italic.saturating_sub(1),
            Event::Start(Tag::List(start)) => {
                drawn.push_str(&start.map_or_else(|| "• ".to_owned(), |number| format!("{number}. ")));
            }
            Event::Start(Tag::BlockQuote(_)) => drawn.push_str("│ "),
            Event::End(TagEnd::Link) | Event::Start(_) | Event::End(_) => {}
            Event::Code(code) => drawn.push_str(&Style::new().cyan().apply_to(code).to_string()),
            Event::Rule => drawn.push_str("────"),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                let mut style = Style::new();
                if bold > 0 {
                    style = style.bold();
                }
                if italic > 0 {
                    style = style.italic();
                }
                drawn.push_str(&style.apply_to(text).to_string());
            }
            Event::SoftBreak | Event::HardBreak => drawn.push(' '),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                drawn.push_str(&text);
            }
            Event::TaskListMarker(done) => drawn.push_str(if done { "[x] " } else { "[ ] " }),
        }
    }
    drawn
}

#[cfg(test)]
mod tests;
