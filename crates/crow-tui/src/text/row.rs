//! Rows, spans and styles. A style has no background by construction: themes of terminals differ, and a filled row
//! leaves padding when it is copied or wrapped again.

use std::{fmt, sync::Arc};

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// One row of the screen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct StyledRow {
    pub spans: Vec<StyledSpan>,
    /// Whether the terminal wraps the row, so that a copy of it has no line breaks. Such a row may be wider than the
    /// screen. It is meant for history: live rows are truncated.
    pub is_code: bool,
}

/// Text of one style without line breaks and control characters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct StyledSpan {
    pub content: String,
    pub style: TextStyle,
    pub link: Option<LinkTarget>,
}

/// The target of a hyperlink. Fragments of a wrapped link share it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LinkTarget(Arc<str>);

/// Attributes of a span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct TextStyle {
    pub color: Option<PaletteColor>,
    pub is_bold: bool,
    pub is_dim: bool,
    pub is_italic: bool,
    pub is_underlined: bool,
    pub is_struck: bool,
}

/// A colour of the terminal's palette. The first 16 belong to the user's theme; others appear only in the output of
/// programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PaletteColor(pub u8);

impl StyledRow {
    /// Returns a row of one span.
    pub fn from_span(span: StyledSpan) -> Self {
        Self { spans: vec![span], is_code: false }
    }

    /// Returns a row of text in the terminal's default style.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self::from_span(StyledSpan::plain(text))
    }

    /// The number of cells; a row of code may be wider than the screen.
    pub fn width(&self) -> usize {
        self.spans.iter().map(StyledSpan::width).sum()
    }

    /// The text without styles.
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.content.as_str()).collect()
    }

    /// Appends a span, joining it with the last one if nothing but the text differs.
    pub fn push_span(&mut self, span: StyledSpan) {
        if span.content.is_empty() {
            return;
        }
        match self.spans.last_mut() {
            Some(last) if last.style == span.style && last.link == span.link => {
                last.content.push_str(&span.content);
            }
            _ => self.spans.push(span),
        }
    }
}

impl StyledSpan {
    /// Returns text in the terminal's default style.
    pub fn plain(content: impl Into<String>) -> Self {
        Self::styled(content, TextStyle::default())
    }

    /// Returns text in a style.
    pub fn styled(content: impl Into<String>, style: TextStyle) -> Self {
        Self { content: content.into(), style, link: None }
    }

    /// The number of cells.
    pub fn width(&self) -> usize {
        text_width(&self.content)
    }
}

impl LinkTarget {
    /// Returns the target if a terminal may open it: `http`, `https` and `file` addresses of visible ASCII.
    pub fn parse(address: &str) -> Option<Self> {
        let has_scheme = ["http://", "https://", "file://"].iter().any(|scheme| address.starts_with(scheme));
        let is_safe =
            address.len() <= ADDRESS_BYTES_MAX && address.bytes().all(|byte| byte.is_ascii_graphic());
        (has_scheme && is_safe).then(|| Self(address.into()))
    }

    /// The address.
    pub fn address(&self) -> &str {
        &self.0
    }
}

/// Terminals ignore longer addresses.
const ADDRESS_BYTES_MAX: usize = 2083;

impl fmt::Display for LinkTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TextStyle {
    /// Returns the style with bold letters.
    pub fn bold(self) -> Self {
        Self { is_bold: true, ..self }
    }

    /// Returns the style with dim letters.
    pub fn dim(self) -> Self {
        Self { is_dim: true, ..self }
    }

    /// Returns the style with italic letters.
    pub fn italic(self) -> Self {
        Self { is_italic: true, ..self }
    }

    /// Returns the style with underlined letters.
    pub fn underlined(self) -> Self {
        Self { is_underlined: true, ..self }
    }

    /// Returns the style with letters crossed out.
    pub fn struck(self) -> Self {
        Self { is_struck: true, ..self }
    }

    /// Returns the style in a colour.
    pub fn with_color(self, color: PaletteColor) -> Self {
        Self { color: Some(color), ..self }
    }
}

impl PaletteColor {
    /// The palette's red.
    pub const RED: Self = Self(1);
    /// The palette's green.
    pub const GREEN: Self = Self(2);
    /// The palette's yellow.
    pub const YELLOW: Self = Self(3);
    /// The palette's blue.
    pub const BLUE: Self = Self(4);
    /// The palette's magenta.
    pub const MAGENTA: Self = Self(5);
    /// The palette's cyan.
    pub const CYAN: Self = Self(6);
    /// The palette's bright yellow.
    pub const BRIGHT_YELLOW: Self = Self(11);
    /// The palette's bright blue.
    pub const BRIGHT_BLUE: Self = Self(12);
    /// The palette's bright magenta.
    pub const BRIGHT_MAGENTA: Self = Self(13);
    /// The palette's bright cyan.
    pub const BRIGHT_CYAN: Self = Self(14);
}

/// Returns the number of cells of a text: of each grapheme cluster, with ambiguous letters as one cell.
pub fn text_width(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.graphemes(true).map(cluster_width).sum()
}

/// Returns the number of cells of one grapheme cluster: two at most.
pub fn cluster_width(cluster: &str) -> usize {
    cluster.width().min(2)
}
