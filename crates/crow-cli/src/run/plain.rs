//! Keeps other people's words from driving the terminal: what a model, a tool or an agent says is text, never a
//! command to the screen.

use crate::table::is_bidi_control;
use console::{Style, strip_ansi_codes};

/// Takes out whatever is not text. Programs colour their output, so whole sequences go and not only their first byte.
pub(super) fn strip_control_chars(text: &str) -> String {
    let text = strip_ansi_codes(text);
    text.chars().filter(|&c| matches!(c, '\n' | '\t') || !(c.is_control() || is_bidi_control(c))).collect()
}

/// The same on one line.
pub(super) fn to_one_line(text: &str) -> String {
    let text = strip_ansi_codes(text);
    let letters = text.chars().filter(|&c| !is_bidi_control(c));
    letters.map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim().to_owned()
}

/// Shows what would be hidden: whoever says yes to a command has to see all of it.
pub(super) fn reveal_control_chars(text: &str) -> String {
    let picture = |c: char| match c {
        '\n' | '\t' => c,
        '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
        '\u{7f}' => '\u{2421}',
        c if c.is_control() || is_bidi_control(c) => '\u{fffd}',
        c => c,
    };
    text.chars().map(picture).collect()
}

/// Whether looks are wanted where something is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PaintMode {
    /// Letters only.
    Plain,
    /// With colours.
    Styled,
}

impl PaintMode {
    /// What stderr takes.
    pub(super) fn for_stderr() -> Self {
        if console::colors_enabled_stderr() { Self::Styled } else { Self::Plain }
    }

    /// Draws a text.
    pub(super) fn apply_style(self, style: Style, text: &str) -> String {
        style.force_styling(self == Self::Styled).apply_to(text).to_string()
    }
}
