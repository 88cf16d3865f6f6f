//! Reads malformed text in the plainest way, to tell where it can mean one thing only. Must never repair.

use serde_json::Number;

use super::SourceWords;
use crate::DoubtKind;
use crate::repair::closer::{self, StringEscape};
use crate::repair::paths::{self, EscapedPaths};

/// What a malformed text is made of.
#[derive(Default)]
pub(super) struct MalformedScan<'a> {
    /// The text up to the bracket that closes the first one, with each backslash that escapes nothing doubled:
    /// the repair would drop it, and a regex would silently become another.
    pub(super) text: String,
    /// What may become a key or a string.
    pub(super) words: SourceWords,
    /// The text stops in a string.
    pub(super) ends_in_string: bool,
    /// The text stops behind a value that is whole, and nothing but brackets is missing.
    pub(super) lacks_brackets_only: bool,
    /// What is not certain in the first string of which something is not, and where it ends.
    pub(super) odd_string: Option<(DoubtKind, usize)>,
    /// Strings stand between single quotes.
    pub(super) has_single_quotes: bool,
    /// What is not certain in the strings.
    doubt: Option<DoubtKind>,
    /// How far the text can mean one thing only, if not all of it.
    pub(super) odd_at: Option<usize>,
    /// What follows the closing bracket, when it is there.
    pub(super) rest: Option<&'a str>,
}

/// A piece of the text and where it begins.
#[derive(Clone, Copy)]
struct Token {
    kind: TokenKind,
    start: usize,
    end: usize,
    /// The innermost bracket around it is that of an object.
    in_object: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    Open,
    Close,
    Comma,
    Colon,
    /// What stands between quotes.
    Text,
    /// A number, or a name for true, false or nothing.
    Literal,
    /// Anything else without quotes.
    Bare,
}

impl<'a> MalformedScan<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut scan = Self { text: String::with_capacity(text.len()), ..Self::default() };
        let tokens = scan.scan_tokens(text);
        scan.odd_at = first_ambiguous_token(&tokens);
        scan.lacks_brackets_only = scan.rest.is_none() && ends_with_value(text, &tokens);
        scan
    }

    fn scan_tokens(&mut self, text: &'a str) -> Vec<Token> {
        let mut tokens = Vec::new();
        let mut open = Vec::new();
        let mut rest = text;
        loop {
            let (blank, after) = rest.split_at(blank_len(rest));
            self.text.push_str(blank);
            let Some(char) = after.chars().next() else { return tokens };
            let innermost = open.last().copied();
            // A bracket that closes nothing is one too many.
            if matches!((char, innermost), ('}', Some('[')) | (']', Some('{'))) {
                rest = &after[1..];
                continue;
            }
            let kind;
            (kind, rest) = self.scan_token(after, char);
            match kind {
                TokenKind::Open => open.push(char),
                TokenKind::Close => drop(open.pop()),
                TokenKind::Comma
                | TokenKind::Colon
                | TokenKind::Text
                | TokenKind::Literal
                | TokenKind::Bare => {}
            }
            let (start, end) = (text.len() - after.len(), text.len() - rest.len());
            tokens.push(Token { kind, start, end, in_object: innermost == Some('{') });
            self.odd_string = self.odd_string.or(self.doubt.map(|kind| (kind, end)));
            if open.is_empty() && kind == TokenKind::Close {
                self.rest = Some(rest);
                return tokens;
            }
        }
    }

    /// Takes in what begins with a character; gives back what follows it.
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

    /// Takes in a string whose opening quote was read; gives back what follows it.
    fn scan_string(&mut self, rest: &'a str, quote: char) -> &'a str {
        let Some(end) = string_end(rest, quote) else {
            self.ends_in_string = true;
            self.scan_string_body(rest, quote);
            return "";
        };
        let (body, after) = rest.split_at(end + 1);
        let string = match paths::escape_windows_paths(&body[..end]) {
            Some(EscapedPaths { source, is_guess }) => {
                self.doubt = self.doubt.or(is_guess.then_some(DoubtKind::Guessed));
                self.scan_string_body(&format!("{source}{quote}"), quote)
            }
            None => self.scan_string_body(body, quote),
        };
        self.text.push(quote);
        self.words.strings.insert(string);
        after
    }

    /// Takes in a string up to its closing quote.
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
        let n_bytes = match closer::parse_escape(rest) {
            StringEscape::Cut => return None,
            StringEscape::Lone(n_bytes) => {
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

/// Finds the quote that ends a string.
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

/// Whether the text ends with the last of its tokens, and that is a value or the end of one.
fn ends_with_value(text: &str, tokens: &[Token]) -> bool {
    let [.., before, last] = tokens else { return false };
    let is_value = match last.kind {
        TokenKind::Close => true,
        TokenKind::Text | TokenKind::Literal => !last.in_object || before.kind == TokenKind::Colon,
        TokenKind::Open | TokenKind::Comma | TokenKind::Colon | TokenKind::Bare => false,
    };
    // A comment may have swallowed what is missing.
    is_value && !text[last.end..].contains(['#', '/'])
}

/// Counts the bytes of whitespace and comments that a text begins with.
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

/// Finds the first token that can be read in more than one way.
fn first_ambiguous_token(tokens: &[Token]) -> Option<usize> {
    let kind_at = |place: usize| tokens.get(place).map(|token| token.kind);
    tokens.iter().enumerate().find_map(|(place, token)| {
        let before = place.checked_sub(1).and_then(kind_at);
        let is_odd = !is_unambiguous(*token, before, kind_at(place + 1));
        is_odd.then_some(token.start)
    })
}

/// Tells whether a token can mean one thing only between its neighbours. A comma may be missing where no string
/// ends, and a missing end is told elsewhere.
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
