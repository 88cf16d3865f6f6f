//! Text from outside as text that cannot control the terminal: sequences and control characters go; other characters
//! that are invisible or reorder the letters around them are shown.

use crow_core::is_hidden;

use super::{ansi::without_sequences, text_width};

/// Columns between tab stops in the output of programs.
const TAB_COLUMNS: usize = 8;

/// Removes sequences and control characters but tab and line feed, and makes invisible characters visible. Line breaks
/// become `\n`.
pub fn sanitize_text(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let text = without_sequences(text);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\r' if letters.peek() == Some(&'\n') => {}
            '\r' => clean.push('\n'),
            '\n' | '\t' => clean.push(letter),
            _ => push_letter(&mut clean, letter),
        }
    }
    clean
}

/// The same on one line: breaks and tabs become spaces.
pub fn sanitize_line(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for letter in without_sequences(text).chars() {
        match letter {
            '\n' | '\t' | '\r' => clean.push(' '),
            _ => push_letter(&mut clean, letter),
        }
    }
    clean
}

/// Makes control and invisible characters visible: all of what is approved is shown.
pub fn reveal_controls(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\t' => shown.push(letter),
            '\u{0}'..='\u{1f}' => {
                shown.push(char::from_u32(0x2400 + u32::from(letter)).unwrap_or('\u{fffd}'));
            }
            '\u{7f}' => shown.push('\u{2421}'),
            letter if letter.is_control() => shown.push('\u{fffd}'),
            letter => push_letter(&mut shown, letter),
        }
    }
    shown
}

/// Appends a letter unless it is a control character. With an invisible one, a command could look like another.
pub(super) fn push_letter(clean: &mut String, letter: char) {
    if letter.is_control() {
        return;
    }
    if is_hidden(letter) {
        clean.extend(letter.escape_unicode());
    } else {
        clean.push(letter);
    }
}

/// Replaces tabs by spaces up to the next tab stop of a line that begins at the left edge.
pub fn expand_tabs(line: &str) -> String {
    expand_tabs_from(0, line)
}

/// The same for text that begins in a column.
pub(super) fn expand_tabs_from(mut column: usize, text: &str) -> String {
    if !text.contains('\t') {
        return text.to_owned();
    }
    let mut expanded = String::with_capacity(text.len() + TAB_COLUMNS);
    for (index, piece) in text.split('\t').enumerate() {
        if index > 0 {
            let n_spaces = TAB_COLUMNS - column % TAB_COLUMNS;
            expanded.extend(std::iter::repeat_n(' ', n_spaces));
            column += n_spaces;
        }
        expanded.push_str(piece);
        column += text_width(piece);
    }
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_control_the_terminal() {
        assert_eq!(sanitize_text("a\x1b[2Jb\u{9b}1mc\x07\x08\x7f\u{85}d"), "abcd");
        assert_eq!(sanitize_text("one\r\ntwo\rthree\tfour\n"), "one\ntwo\nthree\tfour\n");
        assert_eq!(sanitize_text("rm \u{202e}txt.exe\u{2066}"), "rm \\u{202e}txt.exe\\u{2066}");
        assert_eq!(
            sanitize_text("größe 语言 می\u{200c}خواهم 👩\u{200d}💻"),
            "größe 语言 می\u{200c}خواهم 👩\u{200d}💻"
        );
        assert_eq!(sanitize_line("a\nb\tc\x1b[1md\x1b"), "a b cd");
        assert_eq!(
            reveal_controls("r\u{e0072}m\u{2060}\u{200b}\u{2028} می\u{200c}خ"),
            "r\\u{e0072}m\\u{2060}\\u{200b}\\u{2028} می\u{200c}خ"
        );
        assert_eq!(reveal_controls("a\x1b[8mb\u{9b}\u{202e}\x7f\n"), "a␛[8mb\u{fffd}\\u{202e}␡\n");
    }

    #[test]
    fn tabs_reach_the_next_stop() {
        assert_eq!(expand_tabs("\ta\tb"), "        a       b");
        assert_eq!(expand_tabs("语言\tx"), "语言    x");
    }
}
