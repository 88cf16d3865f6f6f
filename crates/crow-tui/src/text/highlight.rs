//! Syntax colours by a small lexer: comments, strings, numbers, keywords, types and calls.
//!
//! It reads a line at a time and keeps only what is open at its end, so code can be coloured as it arrives. It knows
//! words, not grammars; a wrong guess changes a colour and never the text.

mod languages;

use self::languages::{LanguageRules, StringRule, find_language};
use super::{ColorTheme, PaletteColor, StyledRow, StyledSpan, TextStyle, expand_tabs, sanitize_text};

/// More code than this is shown without colours.
pub const HIGHLIGHT_BYTES_MAX: usize = 512 * 1024;

/// A longer line is data, such as minified code.
const LINE_BYTES_MAX: usize = 4096;

/// Colours code line by line.
#[derive(Debug, Clone, PartialEq)]
pub struct CodeHighlighter {
    rules: Option<&'static LanguageRules>,
    theme: ColorTheme,
    open: OpenToken,
    n_bytes: usize,
}

/// A token that goes on in the next line.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
enum OpenToken {
    #[default]
    None,
    /// A block comment; some languages nest them.
    Comment {
        depth: usize,
    },
    String(&'static StringRule),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CodeToken {
    Plain,
    Comment,
    String,
    Number,
    Keyword,
    Type,
    Function,
    Added,
    Removed,
}

impl CodeHighlighter {
    /// Returns a highlighter for a language's name or a file's extension; an unknown one has no colours.
    pub fn new(language: &str, theme: ColorTheme) -> Self {
        Self { rules: find_language(language), theme, open: OpenToken::None, n_bytes: 0 }
    }

    /// Returns the highlighter at the same place in the code, with other colours.
    pub(super) fn with_theme(self, theme: ColorTheme) -> Self {
        Self { theme, ..self }
    }

    /// Returns a highlighter for a file, by its name.
    pub fn for_path(path: &str, theme: ColorTheme) -> Self {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        let extension = name.rsplit('.').next().unwrap_or(name);
        Self::new(extension, theme)
    }

    /// Colours the next line. The spans have all of its text.
    pub fn highlight_line(&mut self, line: &str) -> Vec<StyledSpan> {
        self.n_bytes = self.n_bytes.saturating_add(line.len());
        let Some(rules) = self.rules.filter(|_| self.theme.has_color) else { return plain_spans(line) };
        if line.len() > LINE_BYTES_MAX || self.n_bytes > HIGHLIGHT_BYTES_MAX {
            return plain_spans(line);
        }
        let mut lexer =
            LineLexer { rules, rest: line, open: self.open, spans: Vec::new(), theme: self.theme };
        lexer.run();
        self.open = lexer.open;
        lexer.spans
    }
}

/// Renders code, one row per line, which the terminal wraps.
pub fn highlight_code(code: &str, language: &str, theme: &ColorTheme) -> Vec<StyledRow> {
    let mut highlighter = CodeHighlighter::new(language, *theme);
    let code = sanitize_text(code);
    let row = |line| StyledRow { spans: highlighter.highlight_line(&expand_tabs(line)), is_code: true };
    code.lines().map(row).collect()
}

fn plain_spans(line: &str) -> Vec<StyledSpan> {
    if line.is_empty() { Vec::new() } else { vec![StyledSpan::plain(line)] }
}

impl ColorTheme {
    fn code(self, token: CodeToken) -> TextStyle {
        // Yellow and cyan are unreadable on white in most palettes.
        let (string, number, kind, function) = if self.is_light {
            (PaletteColor::GREEN, PaletteColor::MAGENTA, PaletteColor::BLUE, PaletteColor::BLUE)
        } else {
            (PaletteColor::GREEN, PaletteColor::YELLOW, PaletteColor::CYAN, PaletteColor::BRIGHT_BLUE)
        };
        let style = TextStyle::default();
        match token {
            CodeToken::Plain => style,
            CodeToken::Comment => style.dim(),
            CodeToken::String | CodeToken::Added => style.with_color(string),
            CodeToken::Number => style.with_color(number),
            CodeToken::Keyword => style.with_color(PaletteColor::MAGENTA),
            CodeToken::Type => style.with_color(kind),
            CodeToken::Function => style.with_color(function),
            CodeToken::Removed => style.with_color(PaletteColor::RED),
        }
    }
}

struct LineLexer<'a> {
    rules: &'static LanguageRules,
    rest: &'a str,
    open: OpenToken,
    spans: Vec<StyledSpan>,
    theme: ColorTheme,
}

impl<'a> LineLexer<'a> {
    fn run(&mut self) {
        if self.rules.is_diff {
            let token = match self.rest.as_bytes().first() {
                Some(b'+') => CodeToken::Added,
                Some(b'-') => CodeToken::Removed,
                Some(b'@') => CodeToken::Type,
                _ => CodeToken::Plain,
            };
            return self.take(self.rest.len(), token);
        }
        while !self.rest.is_empty() {
            match self.open {
                OpenToken::None => self.take_token(),
                OpenToken::Comment { depth } => self.take_comment(depth, 0),
                OpenToken::String(rule) => self.take_string(rule, 0),
            }
        }
        if let OpenToken::String(rule) = self.open
            && !rule.is_multiline
        {
            self.open = OpenToken::None;
        }
    }

    /// Takes bytes of the rest as one token.
    fn take(&mut self, n_bytes: usize, token: CodeToken) {
        let (text, rest) = self.rest.split_at(n_bytes);
        self.rest = rest;
        let style = self.theme.code(token);
        match self.spans.last_mut() {
            Some(last) if last.style == style => last.content.push_str(text),
            _ if text.is_empty() => {}
            _ => self.spans.push(StyledSpan::styled(text, style)),
        }
    }

    fn take_token(&mut self) {
        if self.rules.line_comments.iter().any(|mark| self.begins_comment(mark)) {
            return self.take(self.rest.len(), CodeToken::Comment);
        }
        if let Some((open, _)) = self.rules.block_comment
            && self.rest.starts_with(open)
        {
            return self.take_comment(0, open.len());
        }
        if let Some(rule) = self.rules.strings.iter().find(|rule| self.rest.starts_with(rule.open)) {
            return self.begin_string(rule);
        }
        let Some(first) = self.rest.chars().next() else { return };
        if first.is_ascii_digit() {
            let end = |letter: char| !(letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_'));
            let mut n_bytes = self.rest.find(end).unwrap_or(self.rest.len());
            // A range is no number.
            if let Some(dots) = self.rest[..n_bytes].find("..") {
                n_bytes = dots;
            }
            return self.take(n_bytes, CodeToken::Number);
        }
        if is_word_letter(first) {
            return self.take_word();
        }
        self.take(first.len_utf8(), CodeToken::Plain);
    }

    /// Whether a comment begins here. In shells `#` is one only at the beginning of a word.
    fn begins_comment(&self, mark: &str) -> bool {
        let previous = self.spans.last().and_then(|span| span.content.chars().next_back());
        let is_apart = mark != "#" || previous.is_none_or(char::is_whitespace);
        self.rest.starts_with(mark) && is_apart
    }

    fn take_comment(&mut self, depth: usize, n_before: usize) {
        let Some((open, close)) = self.rules.block_comment else {
            self.open = OpenToken::None;
            return;
        };
        let (mut depth, mut at) = (depth + usize::from(n_before > 0), n_before);
        while depth > 0 {
            let rest = &self.rest[at..];
            let next_close = rest.find(close);
            let next_open = rest.find(open).filter(|_| self.rules.nests_comments);
            match (next_open, next_close) {
                (Some(start), end) if end.is_none_or(|end| start < end) => {
                    depth += 1;
                    at += start + open.len();
                }
                (_, Some(end)) => {
                    depth -= 1;
                    at += end + close.len();
                }
                (_, None) => {
                    at = self.rest.len();
                    break;
                }
            }
        }
        self.open = if depth > 0 { OpenToken::Comment { depth } } else { OpenToken::None };
        self.take(at, CodeToken::Comment);
    }

    fn begin_string(&mut self, rule: &'static StringRule) {
        // A lifetime is no character, and an apostrophe in a word no string.
        let closes_in_line = self.rest[rule.open.len()..].contains(rule.close);
        let is_lifetime = rule.is_character
            && self.rest[1..].chars().nth(1) != Some('\'')
            && !self.rest[1..].starts_with('\\');
        if is_lifetime || (!rule.is_multiline && !closes_in_line) {
            return self.take(rule.open.len(), CodeToken::Plain);
        }
        self.take_string(rule, rule.open.len());
    }

    fn take_string(&mut self, rule: &'static StringRule, n_before: usize) {
        let mut letters = self.rest[n_before..].char_indices();
        while let Some((index, letter)) = letters.next() {
            if letter == '\\' && rule.has_escapes {
                letters.next();
            } else if self.rest[n_before + index..].starts_with(rule.close) {
                self.open = OpenToken::None;
                return self.take(n_before + index + rule.close.len(), CodeToken::String);
            }
        }
        self.open = OpenToken::String(rule);
        self.take(self.rest.len(), CodeToken::String);
    }

    fn take_word(&mut self) {
        let is_inside = |letter: char| {
            is_word_letter(letter) || letter.is_numeric() || (letter == '-' && self.rules.has_dashes)
        };
        let n_bytes = self.rest.find(|letter| !is_inside(letter)).unwrap_or(self.rest.len());
        let (word, after) = self.rest.split_at(n_bytes);
        let is_keyword = if self.rules.ignores_case {
            self.rules.keywords.iter().any(|keyword| keyword.eq_ignore_ascii_case(word))
        } else {
            self.rules.keywords.contains(&word)
        };
        let token = if is_keyword {
            CodeToken::Keyword
        } else if self.rules.has_keys && after.trim_start().starts_with([':', '=']) {
            CodeToken::Type
        } else if self.rules.has_calls && after.starts_with('(') {
            CodeToken::Function
        } else if self.rules.has_types && word.starts_with(char::is_uppercase) && word.len() > 1 {
            CodeToken::Type
        } else {
            CodeToken::Plain
        };
        self.take(n_bytes, token);
    }
}

fn is_word_letter(letter: char) -> bool {
    letter.is_alphabetic() || letter == '_'
}

#[cfg(test)]
mod tests;
