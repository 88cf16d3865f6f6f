//! Divides a text that arrives into parts. The rows of the parts, one after the other, are those of the whole text, so
//! a part is final as soon as the next one begins.

use super::{
    MarkdownStream, clean_line,
    segments::{LineSegmenter, SegmentKind, SegmentPiece},
};
use crate::text::{CodeHighlighter, ColorTheme, StyledRow};

/// A longer code block is divided, so that its first lines are final before its end.
const CODE_LINES_MAX: usize = 64;

/// Without colours, a highlighter would not follow the code.
const COLORED: ColorTheme = ColorTheme { has_color: true, is_light: false };

/// A part of a text in Markdown.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TextPart {
    pub(crate) source: String,
    pub(crate) start: PartStart,
}

/// The place in the text where a part begins.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum PartStart {
    /// A block of its own: a blank row is above it.
    #[default]
    Block,
    /// An item of the list that the part above is of.
    Item,
    /// Inside of a code block that began above.
    Code(Box<CodeContinuation>),
}

/// A code block at a line inside of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CodeContinuation {
    /// The line that began the block.
    opening: String,
    highlighter: CodeHighlighter,
}

impl TextPart {
    /// Whether a blank row separates the part from the one above.
    pub(crate) fn is_apart(&self) -> bool {
        self.start == PartStart::Block
    }

    /// Appends the source to that of the parts above.
    pub(crate) fn append_to(&self, text: &mut String) {
        while self.is_apart() && !text.is_empty() && !text.ends_with("\n\n") {
            text.push('\n');
        }
        text.push_str(&self.source);
    }
}

/// Renders a part at a width.
pub(crate) fn render_part(part: &TextPart, width: usize, theme: &ColorTheme) -> Vec<StyledRow> {
    let mut stream = MarkdownStream::new(width, *theme);
    if let PartStart::Code(code) = &part.start {
        stream.push_line(&code.opening);
        stream.painter.code = Some(code.highlighter.clone().with_theme(*theme));
    }
    stream.push(&part.source);
    stream.finish()
}

/// Reads a text line by line and finds the lines with which a part may begin.
#[derive(Debug, Clone, Default)]
pub(crate) struct PartDivider {
    segmenter: LineSegmenter,
    last_kind: Option<SegmentKind>,
    code: Option<CodeContinuation>,
    n_code_lines: usize,
}

impl PartDivider {
    /// Takes a complete line and returns how a part begins with it, if one may.
    pub(crate) fn push_line(&mut self, line: &str) -> Option<PartStart> {
        let line = clean_line(line);
        let next = self.segmenter.next_segment(&line);
        let start = match next {
            Some((SegmentKind::Item, false)) if self.last_kind == Some(SegmentKind::Item) => {
                Some(PartStart::Item)
            }
            Some(_) => Some(PartStart::Block),
            None => None,
        };
        self.last_kind = next.map(|(kind, _)| kind).or(self.last_kind);
        let before = self.code.clone().filter(|_| self.n_code_lines >= CODE_LINES_MAX);
        let mut continues_code = false;
        let pieces = self.segmenter.push_line(&line);
        for piece in pieces {
            match piece {
                SegmentPiece::CodeStart { language } => {
                    let highlighter = CodeHighlighter::new(&language, COLORED);
                    self.code = Some(CodeContinuation { opening: line.clone(), highlighter });
                    self.n_code_lines = 0;
                }
                SegmentPiece::CodeLine(line) => {
                    continues_code = true;
                    self.n_code_lines += 1;
                    if let Some(code) = &mut self.code {
                        code.highlighter.highlight_line(&line);
                    }
                }
                SegmentPiece::Text { .. } => {}
            }
        }
        match before.filter(|_| continues_code) {
            Some(code) => {
                self.n_code_lines = 1;
                Some(PartStart::Code(Box::new(code)))
            }
            None => start,
        }
    }
}
