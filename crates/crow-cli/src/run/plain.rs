//! Styled text as lines: with escape codes on a terminal that has colours, without them elsewhere.

use crow_tui::{
    ColorTheme,
    screen::style_row,
    text::{StyledRow, StyledSpan, TextStyle, sanitize_line},
};

/// The styles of lines; a terminal without colours gets none of them.
pub(crate) const THEME: ColorTheme = ColorTheme { has_color: true, is_light: false };

/// Lines are not wrapped here: the terminal does it, or a file has them whole.
pub(super) const UNWRAPPED: usize = 1 << 16;

/// Removes control characters and line breaks.
pub(super) fn to_one_line(text: &str) -> String {
    sanitize_line(text).trim().to_owned()
}

/// Whether output is styled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PaintMode {
    Plain,
    Styled,
}

impl PaintMode {
    /// Returns the mode for stderr.
    pub(crate) fn for_stderr() -> Self {
        if console::colors_enabled_stderr() { Self::Styled } else { Self::Plain }
    }

    pub(super) fn apply_style(self, style: TextStyle, text: &str) -> String {
        self.paint_row(&StyledRow::from_span(StyledSpan::styled(text, style)))
    }

    /// Returns a row as a line.
    pub(crate) fn paint_row(self, row: &StyledRow) -> String {
        match self {
            Self::Plain => row.text().trim_end().to_owned(),
            Self::Styled => style_row(row),
        }
    }
}
