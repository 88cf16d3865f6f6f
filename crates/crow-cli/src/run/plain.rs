//! Sanitizes text of models, tools and agents, so that it cannot control the terminal.

use crate::table::is_bidi_control;
use console::{Style, strip_ansi_codes};

/// Removes control characters. Programs colour their output, so whole escape sequences are removed.
pub(super) fn strip_control_chars(text: &str) -> String {
    let text = strip_ansi_codes(text);
    text.chars().filter(|&c| matches!(c, '\n' | '\t') || !(c.is_control() || is_bidi_control(c))).collect()
}

/// Removes control characters and line breaks.
pub(super) fn to_one_line(text: &str) -> String {
    let text = strip_ansi_codes(text);
    let letters = text.chars().filter(|&c| !is_bidi_control(c));
    letters.map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim().to_owned()
}

/// Makes control characters visible: the user must see all of what is approved.
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

/// Whether output is styled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PaintMode {
    Plain,
    Styled,
}

impl PaintMode {
    /// Returns the mode for stderr.
    pub(super) fn for_stderr() -> Self {
        if console::colors_enabled_stderr() { Self::Styled } else { Self::Plain }
    }

    pub(super) fn apply_style(self, style: Style, text: &str) -> String {
        style.force_styling(self == Self::Styled).apply_to(text).to_string()
    }
}
