//! Divides markdown into segments, line by line. A decision depends on the lines so far and never on later ones.

/// A longer segment is divided at the end of a line, so that an open one is cheap to render.
const SEGMENT_BYTES_MAX: usize = 32 * 1024;

/// An indent from which a line is code.
const CODE_COLUMNS: usize = 4;

/// A piece of the text in the order of rendering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SegmentPiece {
    CodeStart {
        language: String,
    },
    CodeLine(String),
    Text {
        text: String,
        kind: SegmentKind,
        /// Whether a blank line is above.
        is_apart: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SegmentKind {
    Paragraph,
    Heading,
    Quote,
    /// An item of a list.
    Item,
    Code,
}

#[derive(Debug, Clone, Default)]
pub(super) struct LineSegmenter {
    open: Option<OpenSegment>,
    fence: Option<CodeFence>,
    /// Whether the last line was blank.
    is_apart: bool,
}

#[derive(Debug, Clone)]
struct OpenSegment {
    text: String,
    kind: SegmentKind,
    is_apart: bool,
    /// The indent of an item's text.
    content_indent: usize,
    /// The code block inside an item.
    fence: Option<CodeFence>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CodeFence {
    marker: char,
    length: usize,
    indent: usize,
}

impl LineSegmenter {
    /// Takes a line without its line feed and returns the pieces that it completes.
    pub(super) fn push_line(&mut self, line: &str) -> Vec<SegmentPiece> {
        let mut pieces = Vec::new();
        if let Some(fence) = self.fence {
            if fence.is_closed_by(line) {
                self.fence = None;
                self.is_apart = true;
            } else {
                let n_indent = indent_of(line).min(fence.indent);
                pieces.push(SegmentPiece::CodeLine(line[n_indent..].to_owned()));
            }
            return pieces;
        }
        if self.open.as_ref().is_some_and(|open| !open.continues_with(line, self.is_apart)) {
            pieces.extend(self.close_segment());
        }
        match &mut self.open {
            Some(open) => {
                open.push_line(line);
                self.is_apart = line.trim().is_empty();
                if open.text.len() > SEGMENT_BYTES_MAX {
                    pieces.extend(self.close_segment());
                }
            }
            None => self.open_segment(line, &mut pieces),
        }
        pieces
    }

    /// Ends the text.
    pub(super) fn finish(&mut self) -> Vec<SegmentPiece> {
        self.close_segment().into_iter().collect()
    }

    /// Returns the kind of the segment that a line would begin, and whether a blank line is above it.
    pub(super) fn next_segment(&self, line: &str) -> Option<(SegmentKind, bool)> {
        let continues = self.open.as_ref().is_some_and(|open| open.continues_with(line, self.is_apart));
        if self.fence.is_some() || continues || line.trim().is_empty() {
            return None;
        }
        Some((segment_kind(line), self.is_apart))
    }

    fn open_segment(&mut self, line: &str, pieces: &mut Vec<SegmentPiece>) {
        let is_apart = std::mem::take(&mut self.is_apart);
        if line.trim().is_empty() {
            self.is_apart = true;
            return;
        }
        if let Some((fence, language)) = opening_fence(line) {
            self.fence = Some(fence);
            pieces.push(SegmentPiece::CodeStart { language });
            return;
        }
        let kind = segment_kind(line);
        let content_indent = item_indent(line).map_or(0, |item| item.content_indent);
        let mut open = OpenSegment { text: String::new(), kind, is_apart, content_indent, fence: None };
        open.push_line(line);
        self.open = Some(open);
        if kind == SegmentKind::Heading {
            pieces.extend(self.close_segment());
        }
    }

    fn close_segment(&mut self) -> Option<SegmentPiece> {
        let open = self.open.take()?;
        Some(SegmentPiece::Text { text: open.text, kind: open.kind, is_apart: open.is_apart })
    }
}

impl OpenSegment {
    /// Whether a line belongs to the segment. `is_apart` is whether the line above it is blank.
    fn continues_with(&self, line: &str, is_apart: bool) -> bool {
        let is_blank = line.trim().is_empty();
        match self.kind {
            SegmentKind::Heading | SegmentKind::Code => false,
            SegmentKind::Paragraph | SegmentKind::Quote if is_blank => false,
            SegmentKind::Paragraph => !interrupts_paragraph(line),
            // A quote goes on in lines without its mark.
            SegmentKind::Quote => is_quote(line) || !interrupts_paragraph(line),
            SegmentKind::Item if is_blank || indent_of(line) >= self.content_indent => true,
            // Without a blank line, a paragraph goes on in lines without its indent.
            SegmentKind::Item => {
                !is_apart
                    && self.fence.is_none()
                    && item_indent(line).is_none()
                    && !interrupts_paragraph(line)
            }
        }
    }

    fn push_line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        if self.kind != SegmentKind::Item {
            return;
        }
        let content = &line[indent_of(line).min(self.content_indent)..];
        match self.fence {
            Some(fence) if fence.is_closed_by(content) => self.fence = None,
            Some(_) => {}
            None => self.fence = opening_fence(content).map(|(fence, _)| fence),
        }
    }
}

impl CodeFence {
    fn is_closed_by(&self, line: &str) -> bool {
        let text = line.trim();
        indent_of(line) < CODE_COLUMNS
            && text.chars().count() >= self.length
            && text.chars().all(|letter| letter == self.marker)
    }
}

/// Returns the kind of the segment that a line begins.
fn segment_kind(line: &str) -> SegmentKind {
    if opening_fence(line).is_some() {
        SegmentKind::Code
    } else if item_indent(line).is_some() {
        SegmentKind::Item
    } else if is_heading(line) {
        SegmentKind::Heading
    } else if is_quote(line) {
        SegmentKind::Quote
    } else {
        SegmentKind::Paragraph
    }
}

/// The number of spaces at the beginning; tabs are expanded before.
fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn opening_fence(line: &str) -> Option<(CodeFence, String)> {
    let indent = indent_of(line);
    let text = &line[indent..];
    let marker = text.chars().next().filter(|letter| matches!(letter, '`' | '~'))?;
    let info = text.trim_start_matches(marker);
    let length = text.len() - info.len();
    // Backticks in the rest of the line make it inline code.
    let is_fence = indent < CODE_COLUMNS && length >= 3 && !(marker == '`' && info.contains('`'));
    let language = info.split([' ', ',', '{']).find(|word| !word.is_empty()).unwrap_or_default();
    is_fence.then(|| (CodeFence { marker, length, indent }, language.to_owned()))
}

struct ListItem {
    content_indent: usize,
    /// Whether it may follow a paragraph without a blank line.
    is_interrupting: bool,
}

/// Returns the item of a list that a line begins.
fn item_indent(line: &str) -> Option<ListItem> {
    let indent = indent_of(line);
    let text = &line[indent..];
    if indent >= CODE_COLUMNS || is_rule(text) {
        return None;
    }
    let n_digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let n_marker = match text.as_bytes().get(n_digits)? {
        b'-' | b'*' | b'+' if n_digits == 0 => 1,
        b'.' | b')' if (1..=9).contains(&n_digits) => n_digits + 1,
        _ => return None,
    };
    let rest = &text[n_marker..];
    let n_spaces = indent_of(rest);
    let is_empty = rest.trim().is_empty();
    if n_spaces == 0 && !is_empty {
        return None;
    }
    // Five spaces are one space and a code block.
    let n_padding = if is_empty || n_spaces > CODE_COLUMNS { 1 } else { n_spaces };
    let is_interrupting = !is_empty && (n_digits == 0 || text[..n_digits].parse() == Ok(1));
    Some(ListItem { content_indent: indent + n_marker + n_padding, is_interrupting })
}

fn is_heading(line: &str) -> bool {
    let indent = indent_of(line);
    let rest = line[indent..].trim_start_matches('#');
    let n_marks = line.len() - indent - rest.len();
    indent < CODE_COLUMNS && (1..=6).contains(&n_marks) && (rest.is_empty() || rest.starts_with(' '))
}

fn is_quote(line: &str) -> bool {
    indent_of(line) < CODE_COLUMNS && line.trim_start_matches(' ').starts_with('>')
}

/// Whether a line is a rule; after a paragraph, one of dashes is the underline of a heading instead.
fn is_rule(text: &str) -> bool {
    let mut marks = text.chars().filter(|letter| *letter != ' ');
    let Some(first) = marks.next().filter(|letter| matches!(letter, '*' | '-' | '_')) else { return false };
    let n_marks = 1 + marks.clone().count();
    n_marks >= 3 && marks.all(|letter| letter == first)
}

fn interrupts_paragraph(line: &str) -> bool {
    let is_star_rule = is_rule(line.trim_start()) && !line.contains('-') && indent_of(line) < CODE_COLUMNS;
    opening_fence(line).is_some()
        || is_heading(line)
        || is_quote(line)
        || is_star_rule
        || item_indent(line).is_some_and(|item| item.is_interrupting)
}
