//! Scans malformed text to find ambiguous places. Never repairs.

use std::collections::HashSet;

use serde_json::Number;

use crate::DoubtKind;
use crate::repair::paths::{self, EscapedPaths};
use crate::repair::string_escape::{StringEscape, parse_escape};

/// The tokens of a malformed text.
#[derive(Default)]
pub(super) struct MalformedScan<'a> {
    /// The text up to the bracket that closes the first one, with invalid escapes doubled: the repair would drop
    /// their backslash and silently change a regex.
    pub(super) text: String,
    /// Possible keys and strings.
    pub(super) words: SourceWords,
    /// Whether the text ends in a string.
    pub(super) ends_in_string: bool,
    /// Whether the text ends after a complete value, with only brackets missing.
    pub(super) lacks_brackets_only: bool,
    /// The first doubt about a string, with the string's end.
    pub(super) string_doubt: Option<(DoubtKind, usize)>,
    /// Whether there are single-quoted strings.
    pub(super) has_single_quotes: bool,
    /// The doubt about the strings.
    doubt: Option<DoubtKind>,
    /// The offset of the first ambiguous token.
    pub(super) ambiguous_at: Option<usize>,
    /// The text after the closing bracket, if there is one.
    pub(super) rest: Option<&'a str>,
}

/// Possible keys and strings of the source.
#[derive(Default)]
pub(super) struct SourceWords {
    /// Texts between quotes, unescaped.
    pub(super) strings: HashSet<String>,
    /// Bare words before a colon.
    pub(super) bare_keys: HashSet<String>,
}

impl SourceWords {
    pub(super) fn has_key(&self, key: &str) -> bool {
        self.strings.contains(key) || self.bare_keys.contains(key)
    }
}

/// A token with its range.
#[derive(Clone, Copy)]
struct Token {
    kind: TokenKind,
    start: usize,
    end: usize,
    /// Whether the innermost bracket around it is that of an object.
    in_object: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    Open,
    Close,
    Comma,
    Colon,
    /// A quoted string.
    Text,
    /// A number, or a word for true, false or null.
    Literal,
    /// Other unquoted text.
    Bare,
}

impl<'a> MalformedScan<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut scan = Self { text: String::with_capacity(text.len()), ..Self::default() };
        let tokens = scan.scan_tokens(text);
        scan.ambiguous_at = first_ambiguous_token(&tokens);
        scan.lacks_brackets_only = scan.rest.is_none() && ends_with_value(text, &tokens);
        scan
    }

    fn scan_tokens(&mut self, text: &'a str) -> Vec<Token> {
        let mut tokens = Vec::new();
        let mut open_brackets = Vec::new();
        let mut rest = text;
        loop {
            let (blank, after) = rest.split_at(blank_len(rest));
            self.text.push_str(blank);
            let Some(char) = after.chars().next() else { return tokens };
            let innermost = open_brackets.last().copied();
            // A closing bracket without an opening one is superfluous.
            if matches!((char, innermost), ('}', Some('[')) | (']', Some('{'))) {
                rest = &after[1..];
                continue;
            }
            let kind;
            (kind, rest) = self.scan_token(after, char);
            match kind {
                TokenKind::Open => open_brackets.push(char),
                TokenKind::Close => drop(open_brackets.pop()),
                TokenKind::Comma
                | TokenKind::Colon
                | TokenKind::Text
                | TokenKind::Literal
                | TokenKind::Bare => {}
            }
            let (start, end) = (text.len() - after.len(), text.len() - rest.len());
            tokens.push(Token { kind, start, end, in_object: innermost == Some('{') });
            self.string_doubt = self.string_doubt.or(self.doubt.map(|kind| (kind, end)));
            if open_brackets.is_empty() && kind == TokenKind::Close {
                self.rest = Some(rest);
                return tokens;
            }
        }
    }

    /// Scans a token that begins with a character; returns the text after it.
    fn scan_token(&mut self, text: &'a str, char: char) -> (TokenKind, &'a str) {
        let kind = match char {
            '"' | '\'' => {
                self.text.push(char);
                self.has_single_quotes |= char == '\'';
                return (TokenKind::Text, self.scan_string(&text[1..], char));
            }
            '{' | '[' => TokenKind::Open,
            '}' | ']' => TokenKind::Close,
            ',' => TokenKind::Comma,
            ':' => TokenKind::Colon,
            _ => return self.scan_bare(text),
        };
        self.text.push(char);
        (kind, &text[1..])
    }

    fn scan_bare(&mut self, text: &'a str) -> (TokenKind, &'a str) {
        let ends = |char: char| {
            char.is_whitespace() || matches!(char, '"' | '\'' | '{' | '}' | '[' | ']' | ',' | ':')
        };
        let (word, rest) = text.split_at(text.find(ends).unwrap_or(text.len()));
        self.text.push_str(word);
        let is_literal = matches!(word, "true" | "false" | "null" | "True" | "False" | "None")
            || serde_json::from_str::<Number>(word).is_ok();
        if is_literal {
            return (TokenKind::Literal, rest);
        }
        if rest[blank_len(rest)..].starts_with(':') {
            self.words.bare_keys.insert(word.to_owned());
        }
        (TokenKind::Bare, rest)
    }

    /// Scans a string after its opening quote; returns the text after it.
    fn scan_string(&mut self, rest: &'a str, quote: char) -> &'a str {
        let Some(end) = string_end(rest, quote) else {
            self.ends_in_string = true;
            self.scan_string_body(rest, quote);
            return "";
        };
        let (body, after) = rest.split_at(end + 1);
        let string = match paths::escape_windows_paths(&body[..end]) {
            Some(EscapedPaths { source, is_guess }) => {
                self.doubt = self.doubt.or(is_guess.then_some(DoubtKind::Ambiguous));
                self.scan_string_body(&format!("{source}{quote}"), quote)
            }
            None => self.scan_string_body(body, quote),
        };
        self.text.push(quote);
        self.words.strings.insert(string);
        after
    }

    /// Scans a string up to its closing quote.
    fn scan_string_body(&mut self, body: &str, quote: char) -> String {
        let mut string = String::new();
        let mut rest = body;
        while let Some(char) = rest.chars().next().filter(|char| *char != quote) {
            if char == '\\' {
                let Some(after) = self.scan_escape(rest, quote, &mut string) else { break };
                rest = after;
            } else {
                rest = &rest[char.len_utf8()..];
                self.text.push(char);
                string.push(char);
            }
        }
        string
    }

    fn scan_escape<'t>(&mut self, rest: &'t str, quote: char, string: &mut String) -> Option<&'t str> {
        let n_bytes = match parse_escape(rest) {
            StringEscape::Truncated => return None,
            StringEscape::LoneSurrogate(n_bytes) => {
                string.push(char::REPLACEMENT_CHARACTER);
                self.text.push(char::REPLACEMENT_CHARACTER);
                self.doubt = self.doubt.or(Some(DoubtKind::LoneSurrogate));
                return Some(&rest[n_bytes..]);
            }
            StringEscape::Literal if rest[1..].starts_with(quote) => {
                string.push(quote);
                1 + quote.len_utf8()
            }
            StringEscape::Literal => {
                string.push('\\');
                self.text.push('\\');
                1
            }
            StringEscape::Char(char, n_bytes) => {
                string.push(char);
                n_bytes
            }
        };
        self.text.push_str(&rest[..n_bytes]);
        Some(&rest[n_bytes..])
    }
}

/// Returns the offset of the closing quote.
fn string_end(rest: &str, quote: char) -> Option<usize> {
    let mut at = 0;
    loop {
        at += rest[at..].find([quote, '\\'])?;
        if rest[at..].starts_with(quote) {
            return Some(at);
        }
        at += 1 + rest[at + 1..].chars().next()?.len_utf8();
    }
}

/// Whether the text ends with its last token, and that ends a value.
fn ends_with_value(text: &str, tokens: &[Token]) -> bool {
    let [.., before, last] = tokens else { return false };
    let is_value = match last.kind {
        TokenKind::Close => true,
        TokenKind::Text | TokenKind::Literal => !last.in_object || before.kind == TokenKind::Colon,
        TokenKind::Open | TokenKind::Comma | TokenKind::Colon | TokenKind::Bare => false,
    };
    // A comment may contain what is missing.
    is_value && !text[last.end..].contains(['#', '/'])
}

/// Returns the length of leading white space and comments.
fn blank_len(text: &str) -> usize {
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let after = if rest.starts_with("//") || rest.starts_with('#') {
            rest.find('\n').map(|newline| &rest[newline..])
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.find("*/").map(|end| &comment[end + 2..])
        } else {
            return text.len() - rest.len();
        };
        rest = after.unwrap_or_default();
    }
}

/// Finds the first ambiguous token.
fn first_ambiguous_token(tokens: &[Token]) -> Option<usize> {
    let kind_at = |index: usize| tokens.get(index).map(|token| token.kind);
    tokens.iter().enumerate().find_map(|(index, token)| {
        let before = index.checked_sub(1).and_then(kind_at);
        let is_ambiguous = !is_unambiguous(*token, before, kind_at(index + 1));
        is_ambiguous.then_some(token.start)
    })
}

/// Whether a token is unambiguous between its neighbors. A comma may be missing if no string ends there; a missing
/// end is detected elsewhere.
fn is_unambiguous(token: Token, before: Option<TokenKind>, after: Option<TokenKind>) -> bool {
    let is_key = token.in_object && before != Some(TokenKind::Colon);
    let is_before_colon = matches!(after, Some(TokenKind::Colon) | None);
    match (token.kind, before) {
        (TokenKind::Text, Some(TokenKind::Literal | TokenKind::Close)) if is_key => is_before_colon,
        (
            TokenKind::Text | TokenKind::Literal | TokenKind::Bare,
            Some(TokenKind::Text | TokenKind::Literal | TokenKind::Bare | TokenKind::Close),
        ) => false,
        (TokenKind::Text | TokenKind::Bare, _) if is_key => is_before_colon,
        (TokenKind::Text, _) => true,
        (TokenKind::Literal, _) => !is_key,
        (TokenKind::Bare, _) => false,
        (TokenKind::Open, before) => match before {
            Some(TokenKind::Text | TokenKind::Literal | TokenKind::Bare) => false,
            Some(TokenKind::Open | TokenKind::Comma | TokenKind::Close) => !is_key,
            Some(TokenKind::Colon) | None => true,
        },
        (TokenKind::Colon, before) => {
            token.in_object && matches!(before, Some(TokenKind::Text | TokenKind::Bare))
        }
        (TokenKind::Comma, before) => !matches!(before, Some(TokenKind::Comma | TokenKind::Colon)),
        (TokenKind::Close, before) => before != Some(TokenKind::Colon),
    }
}
