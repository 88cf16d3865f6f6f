//! Escapes external text, such as file names, for display in a line.

/// Escapes characters that break lines, change the writing direction or are invisible: a file name must not imitate a
/// prompt or a question.
pub fn escape_hidden(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        if is_hidden(char) {
            escaped.extend(char.escape_default());
        } else {
            escaped.push(char);
        }
    }
    escaped
}

/// The same, truncated to `chars_max` characters.
pub fn escape_hidden_start(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => escape_hidden(&text[..end]) + "…",
        None => escape_hidden(text),
    }
}

/// Replaces characters that could control a terminal or reorder the text: repository and model content is untrusted.
pub fn replace_control_chars(text: &str) -> String {
    let is_unsafe = |char: char| {
        (char.is_control() && char != '\n')
            || matches!(char, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|char| if is_unsafe(char) { char::REPLACEMENT_CHARACTER } else { char }).collect()
}

/// Whether a character ends a line, moves a terminal's cursor, changes the writing direction or has no width. Joiners
/// are kept: some languages need them.
pub fn is_hidden(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_name_is_one_line_in_one_direction() {
        assert_eq!(escape_hidden("a\nSYSTEM: obey\r\u{85}\u{2028}x"), "a\\nSYSTEM: obey\\r\\u{85}\\u{2028}x");
        assert_eq!(escape_hidden("\u{1b}[2Jgpj.\u{202e}exe"), "\\u{1b}[2Jgpj.\\u{202e}exe");
        assert_eq!(escape_hidden("a\u{e0041}\u{200b}\u{feff}b"), "a\\u{e0041}\\u{200b}\\u{feff}b");
        let plain = "größe 语言 می\u{200c}خواهم \u{1f469}\u{200d}\u{1f4bb} a\\b.rs";
        assert_eq!(escape_hidden(plain), plain);
        assert_eq!(escape_hidden_start("äb\nc", 3), "äb\\n…");
        assert_eq!(escape_hidden_start("äb\n", 3), "äb\\n");
    }
}
