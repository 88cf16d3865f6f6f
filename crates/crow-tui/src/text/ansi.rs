//! The output of programs as rows: their colours are parsed, everything else that controls a terminal is dropped.

use std::borrow::Cow;

use super::{
    ColorTheme, PaletteColor, StyledRow, StyledSpan, TextStyle,
    sanitize::{expand_tabs_from, push_letter},
};

/// No sequence of a program is longer; a string that is not terminated hides no more than this.
const SEQUENCE_BYTES_MAX: usize = 4096;

/// Renders output, one row per line. The rows are not wrapped: the terminal does that, so that a copy has the program's
/// lines. A line that the program draws again has its last state.
pub fn ansi_rows(output: &str, theme: &ColorTheme) -> Vec<StyledRow> {
    let mut painter = OutputPainter { theme: *theme, pen: OutputPen::default(), rows: Vec::new() };
    let output = output.strip_suffix('\n').unwrap_or(output);
    if output.is_empty() {
        return Vec::new();
    }
    for line in output.split('\n') {
        painter.push_line(line.trim_end_matches('\r'));
    }
    painter.rows
}

struct OutputPainter {
    theme: ColorTheme,
    pen: OutputPen,
    rows: Vec<StyledRow>,
}

/// The style that the program has set.
#[derive(Debug, Clone, Copy, Default)]
struct OutputPen {
    style: TextStyle,
    background: Option<PaletteColor>,
    is_reversed: bool,
    is_hidden: bool,
}

impl OutputPainter {
    fn push_line(&mut self, line: &str) {
        let mut row = StyledRow { spans: Vec::new(), is_code: true };
        let mut text = String::new();
        let mut rest = line;
        while let Some(letter) = rest.chars().next() {
            if letter == '\x1b' || letter == '\u{9b}' {
                self.end_span(&mut row, &mut text);
                rest = self.take_sequence(rest);
                continue;
            }
            if letter == '\r' {
                // What follows is written over the line.
                text.clear();
                row.spans.clear();
            } else if letter == '\t' {
                text.push('\t');
            } else if !self.pen.is_hidden {
                push_letter(&mut text, letter);
            }
            rest = &rest[letter.len_utf8()..];
        }
        self.end_span(&mut row, &mut text);
        self.rows.push(row);
    }

    fn end_span(&self, row: &mut StyledRow, text: &mut String) {
        let content = expand_tabs_from(row.width(), &std::mem::take(text));
        row.push_span(StyledSpan::styled(content, self.pen.visible_style(self.theme)));
    }

    /// Applies or skips a sequence and returns the rest.
    fn take_sequence<'a>(&mut self, text: &'a str) -> &'a str {
        let (style, rest) = split_sequence(text);
        if let Some(style) = style {
            self.pen.apply(style);
        }
        rest
    }
}

/// Returns a text without sequences.
pub(super) fn without_sequences(text: &str) -> Cow<'_, str> {
    let begins_sequence = |letter: char| matches!(letter, '\x1b' | '\u{9b}');
    if !text.contains(begins_sequence) {
        return Cow::Borrowed(text);
    }
    let (mut clean, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(start) = rest.find(begins_sequence) {
        clean.push_str(&rest[..start]);
        rest = split_sequence(&rest[start..]).1;
    }
    clean.push_str(rest);
    Cow::Owned(clean)
}

/// Divides a text that begins with a sequence: the parameters of a style, if it sets one, and the text behind it.
fn split_sequence(text: &str) -> (Option<&str>, &str) {
    let body = match text.strip_prefix('\u{9b}') {
        Some(body) => body,
        None => match text[1..].chars().next() {
            Some('[') => &text[2..],
            Some(']' | 'P' | '_' | '^' | 'X') => return (None, skip_string(&text[2..])),
            // A selection of a character set has one more letter.
            Some('(' | ')') => return (None, skip_letters(text, 3)),
            Some('7' | '8' | '=' | '>' | 'c' | 'D' | 'E' | 'H' | 'M' | 'N' | 'O' | 'Z') => {
                return (None, skip_letters(text, 2));
            }
            // Any other letter is text.
            Some(_) | None => return (None, &text[1..]),
        },
    };
    let end = body.find(|letter: char| !matches!(letter, '\x20'..='\x3f')).unwrap_or(body.len());
    let (parameters, rest) = body.split_at(end);
    let is_style =
        rest.starts_with('m') && parameters.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b';' | b':'));
    let n_final = usize::from(rest.starts_with(|letter: char| letter.is_ascii_graphic()));
    (is_style.then_some(parameters), skip_letters(rest, n_final))
}

fn skip_letters(text: &str, n_letters: usize) -> &str {
    text.char_indices().nth(n_letters).map_or("", |(end, _)| &text[end..])
}

/// Skips a string for the terminal and its terminator.
fn skip_string(text: &str) -> &str {
    let end = text.find(['\x07', '\x1b', '\u{9c}', '\n']).unwrap_or(text.len());
    if end > SEQUENCE_BYTES_MAX {
        return text;
    }
    let rest = &text[end..];
    rest.strip_prefix("\x1b\\").unwrap_or_else(|| rest.strip_prefix(['\x07', '\u{9c}']).unwrap_or(rest))
}

impl OutputPen {
    /// Returns the style that is shown. Backgrounds are not: text on one has its colour instead, unless it is black or
    /// white, which would be invisible on one of the user's backgrounds.
    fn visible_style(&self, theme: ColorTheme) -> TextStyle {
        let is_grey = |color: &PaletteColor| matches!(color.0, 0 | 7 | 8 | 15 | 231..=255 | 16);
        let mut style = self.style;
        let background = if self.is_reversed { style.color } else { self.background };
        if let Some(background) = background {
            let foreground = style.color.filter(|color| !is_grey(color) && !self.is_reversed);
            style.color = foreground.or(Some(background).filter(|color| !is_grey(color)));
            style.is_bold = true;
        }
        if !theme.has_color {
            style.color = None;
        }
        style
    }

    fn apply(&mut self, parameters: &str) {
        let mut codes = parameters.split([';', ':']).map(|code| code.parse::<u32>().unwrap_or(0));
        while let Some(code) = codes.next() {
            match code {
                0 => *self = Self::default(),
                1 => self.style.is_bold = true,
                2 => self.style.is_dim = true,
                3 => self.style.is_italic = true,
                4 => self.style.is_underlined = true,
                7 => self.is_reversed = true,
                8 => self.is_hidden = true,
                9 => self.style.is_struck = true,
                22 => (self.style.is_bold, self.style.is_dim) = (false, false),
                23 => self.style.is_italic = false,
                24 => self.style.is_underlined = false,
                27 => self.is_reversed = false,
                28 => self.is_hidden = false,
                29 => self.style.is_struck = false,
                30..=37 => self.style.color = palette(code - 30),
                38 => self.style.color = extended_color(&mut codes),
                39 => self.style.color = None,
                40..=47 => self.background = palette(code - 40),
                48 => self.background = extended_color(&mut codes),
                49 => self.background = None,
                90..=97 => self.style.color = palette(code - 82),
                100..=107 => self.background = palette(code - 92),
                _ => {}
            }
        }
    }
}

fn palette(index: u32) -> Option<PaletteColor> {
    u8::try_from(index).ok().map(PaletteColor)
}

/// Reads a colour of the palette or one of red, green and blue as the nearest one of the palette.
fn extended_color(codes: &mut impl Iterator<Item = u32>) -> Option<PaletteColor> {
    match codes.next()? {
        5 => palette(codes.next()?),
        2 => {
            let mut level = || codes.next().map(|value| (value.min(255) * 5 + 127) / 255);
            let (red, green, blue) = (level()?, level()?, level()?);
            palette(16 + 36 * red + 6 * green + blue)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(output: &str, expected: &Expect) {
        let rows = ansi_rows(output, &ColorTheme { has_color: true, is_light: false });
        let mut seen = String::new();
        for row in rows {
            for span in row.spans {
                let bold = if span.style.is_bold { "b" } else { "" };
                match span.style.color {
                    Some(PaletteColor(color)) => seen += &format!("{{{bold}{color}:{}}}", span.content),
                    None => seen += &format!("{}{}", bold, span.content),
                }
            }
            seen.push('\n');
        }
        expected.assert_eq(&seen);
    }

    #[test]
    fn colours_are_kept_and_other_sequences_dropped() {
        check("\x1b[31mred\x1b[0m \x1b[1;38;5;200mx\x1b[m", &expect!["{1:red} {b200:x}\n"]);
        check(
            "\x1b[38;2;255;0;0mr\x1b[39m\x1b]0;title\x07a\x1b[2J\x1b[5;1Hb\x1b(Bc\x1b7d",
            &expect!["{196:r}abcd\n"],
        );
        check("a\u{9b}2Jb\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ \x1b[", &expect!["ablink \n"]);
        check("\x1b[8mhidden\x1b[28mshown", &expect!["shown\n"]);
    }

    #[test]
    fn background_becomes_the_colour_of_the_text() {
        check(
            "\x1b[97;41m FAIL \x1b[0m \x1b[30;47mgrey\x1b[0m \x1b[7;32mok",
            &expect!["{b1: FAIL } bgrey {b2:ok}\n"],
        );
    }

    #[test]
    fn line_that_is_drawn_again_has_its_last_state() {
        check("10%\r20%\r\x1b[32m100%\x1b[0m\ndone\r\n", &expect!["{2:100%}\ndone\n"]);
        check("a\tb\x1b[1m\tc", &expect!["a       bb       c\n"]);
        check("", &expect![""]);
    }
}
