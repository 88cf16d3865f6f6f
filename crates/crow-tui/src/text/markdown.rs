//! Markdown as rows, whole or as it arrives.
//!
//! Text is divided into segments, each of which is rendered by itself: a heading, a paragraph, a table, an item of a
//! list. A segment ends where no later line can change it, so rows that were streamed are those of the whole text,
//! however it was split.

mod blocks;
mod inlines;
mod parts;
mod segments;
mod table;

pub(crate) use self::parts::{PartDivider, PartStart, TextPart, render_part};
use self::{
    blocks::render_blocks,
    segments::{LineSegmenter, SegmentKind, SegmentPiece},
};
use super::{
    CodeHighlighter, ColorTheme, RowIndent, StyledRow, StyledSpan, expand_tabs, sanitize_text, wrap_spans,
};

/// Renders markdown at a width.
pub fn render_markdown(text: &str, width: usize, theme: &ColorTheme) -> Vec<StyledRow> {
    let mut stream = MarkdownStream::new(width, *theme);
    stream.push(text);
    stream.finish()
}

/// Renders markdown as it arrives. The settled rows and those of [`finish`](Self::finish) together equal the rows of
/// [`render_markdown`] for the whole text.
#[derive(Debug, Clone)]
pub struct MarkdownStream {
    /// The line that is still open.
    open_line: String,
    segmenter: LineSegmenter,
    painter: SegmentPainter,
    settled: Vec<StyledRow>,
}

impl MarkdownStream {
    /// Returns a stream for rows of this width.
    pub fn new(width: usize, theme: ColorTheme) -> Self {
        Self {
            open_line: String::new(),
            segmenter: LineSegmenter::default(),
            painter: SegmentPainter {
                width: width.max(2),
                theme,
                code: None,
                begins_code: false,
                last_kind: None,
            },
            settled: Vec::new(),
        }
    }

    /// Takes the next part of the text.
    pub fn push(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            self.open_line.push_str(piece);
            if piece.ends_with('\n') {
                let line = std::mem::take(&mut self.open_line);
                self.push_line(line.trim_end_matches(['\n', '\r']));
            }
        }
    }

    fn push_line(&mut self, line: &str) {
        for piece in self.segmenter.push_line(&clean_line(line)) {
            self.painter.paint(piece, &mut self.settled);
        }
    }

    /// Takes the rows that no further text changes.
    pub fn take_settled(&mut self) -> Vec<StyledRow> {
        std::mem::take(&mut self.settled)
    }

    /// Renders the open segment as if the text ended here.
    pub fn open_rows(&self) -> Vec<StyledRow> {
        let rest = Self { settled: Vec::new(), ..self.clone() };
        rest.finish()
    }

    /// Ends the text and returns the rows that were not taken.
    pub fn finish(mut self) -> Vec<StyledRow> {
        if !self.open_line.is_empty() {
            let line = std::mem::take(&mut self.open_line);
            self.push_line(&line);
        }
        for piece in self.segmenter.finish() {
            self.painter.paint(piece, &mut self.settled);
        }
        self.settled
    }
}

/// Returns a line without tabs and control characters. A carriage return inside of it is a space: a row has no line break.
fn clean_line(line: &str) -> String {
    expand_tabs(&sanitize_text(line).replace('\n', " "))
}

/// Renders one segment after the other.
#[derive(Debug, Clone)]
struct SegmentPainter {
    width: usize,
    theme: ColorTheme,
    /// The highlighter of the open code block.
    code: Option<CodeHighlighter>,
    /// Whether none of its lines was rendered.
    begins_code: bool,
    last_kind: Option<SegmentKind>,
}

impl SegmentPainter {
    fn paint(&mut self, piece: SegmentPiece, rows: &mut Vec<StyledRow>) {
        match piece {
            SegmentPiece::CodeStart { language } => {
                self.code = Some(CodeHighlighter::new(&language, self.theme));
                self.begins_code = true;
            }
            SegmentPiece::CodeLine(line) => {
                // A block without lines has no rows.
                if std::mem::take(&mut self.begins_code) {
                    self.separate(SegmentKind::Code, true, rows);
                }
                let spans = match &mut self.code {
                    Some(code) => code.highlight_line(&line),
                    None => vec![StyledSpan::plain(line)],
                };
                rows.push(StyledRow { spans, is_code: true });
            }
            SegmentPiece::Text { text, kind, is_apart } => {
                let rendered = render_blocks(&text, self.width, &self.theme);
                let rendered = if rendered.is_empty() { self.show_source(&text) } else { rendered };
                self.separate(kind, is_apart, rows);
                rows.extend(rendered);
            }
        }
    }

    /// Some segments, such as link definitions, render as nothing: they are shown as they are.
    fn show_source(&self, text: &str) -> Vec<StyledRow> {
        let span = StyledSpan::styled(text.trim_end(), self.theme.secondary());
        wrap_spans(&[span], self.width, &RowIndent::default())
    }

    fn separate(&mut self, kind: SegmentKind, is_apart: bool, rows: &mut Vec<StyledRow>) {
        let is_same_list = kind == SegmentKind::Item && self.last_kind == Some(SegmentKind::Item);
        if self.last_kind.is_some() && (is_apart || !is_same_list) {
            rows.push(StyledRow::default());
        }
        self.last_kind = Some(kind);
    }
}

#[cfg(test)]
mod tests;
