//! Untrusted text made safe for display.

/// Makes an untrusted name or text safe for display: on one line, without control characters and bidirectional
/// overrides.
pub fn sanitize_text(text: &str) -> String {
    let sanitize_char = |char: char| match char {
        '\u{2028}' | '\u{2029}' => ' ',
        char if char.is_control() && char.is_whitespace() => ' ',
        char if is_unsafe_char(char) => char::REPLACEMENT_CHARACTER,
        char => char,
    };
    text.chars().map(sanitize_char).collect()
}

/// Whether a text may be displayed unchanged.
pub(crate) fn is_safe_to_display(text: &str) -> bool {
    !text.chars().any(|char| is_unsafe_char(char) || matches!(char, '\u{2028}' | '\u{2029}'))
}

fn is_unsafe_char(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displayed_text_stays_on_its_line_and_hides_nothing() {
        assert_eq!(sanitize_text("a\u{1b}[2J\r\nb\tc"), "a\u{fffd}[2J  b c");
        assert_eq!(sanitize_text("py\u{202e}x\u{2066}y\u{200f}z\u{2028}"), "py\u{fffd}x\u{fffd}y\u{fffd}z ");
        assert_eq!(sanitize_text("größer — 日本"), "größer — 日本");
        assert!(
            is_safe_to_display("größer — 日本")
                && !is_safe_to_display("a\nb")
                && !is_safe_to_display("a\u{202e}")
        );
    }
}
