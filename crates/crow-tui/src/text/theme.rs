//! Styles by role. Colours are those of the user's palette, so they fit any background; a light background changes only
//! the colours of code.

use super::{PaletteColor, TextStyle};

/// Styles of the interface and of rendered content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ColorTheme {
    /// Without colours, bold and dim remain.
    pub has_color: bool,
    /// Whether the terminal's background is light.
    pub is_light: bool,
}

impl ColorTheme {
    fn colored(self, color: PaletteColor) -> TextStyle {
        let style = TextStyle::default();
        if self.has_color { style.with_color(color) } else { style }
    }

    /// The style of secondary text.
    pub fn secondary(self) -> TextStyle {
        TextStyle::default().dim()
    }

    /// The style of headings.
    pub fn heading(self) -> TextStyle {
        TextStyle::default().bold()
    }

    /// The style of the user's own prompts, of keys, and of the selected row.
    pub fn accent(self) -> TextStyle {
        self.colored(PaletteColor::CYAN).bold()
    }

    /// The style of code inside a sentence.
    pub fn inline_code(self) -> TextStyle {
        self.colored(PaletteColor::CYAN)
    }

    /// The style of a link's text.
    pub fn link(self) -> TextStyle {
        self.colored(PaletteColor::BLUE).underlined()
    }

    /// The style of what is done, and of added lines.
    pub fn success(self) -> TextStyle {
        self.colored(PaletteColor::GREEN)
    }

    /// The style of what is running or needs attention.
    pub fn warning(self) -> TextStyle {
        self.colored(PaletteColor::YELLOW)
    }

    /// The style of what failed, and of removed lines.
    pub fn error(self) -> TextStyle {
        self.colored(PaletteColor::RED)
    }
}
