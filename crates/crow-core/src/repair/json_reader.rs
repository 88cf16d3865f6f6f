//! Parses JSON that may end anywhere, and completes it without guessing: uncertain values are omitted. Accepts only
//! three errors, which models often make in strings: raw control characters, backslashes without an escape, and half
//! a surrogate pair.

use serde_json::{Map, Number, Value};

use super::doubt::LocatedDoubt;
use super::paths;
use super::string_escape::{StringEscape, parse_escape};
use crate::{DoubtKind, RepairDoubt, TextPosition};

/// The limit of `serde_json`; deeper text is no tool argument, and recursion must end.
const DEPTH_MAX: usize = 127;

/// The first value of a text.
pub(super) struct FirstValue<'a> {
    /// The value.
    pub(super) value: Value,
    /// The doubt about the value.
    pub(super) doubt: Option<LocatedDoubt>,
    /// The text after the value.
    pub(super) rest: &'a str,
}

/// Parses the first value of a text, completing it if the text ends early.
pub(super) fn read_first(text: &str) -> Option<FirstValue<'_>> {
    let mut reader = JsonReader { rest: text, doubt: None, first_doubt: None, depth: 0 };
    let value = reader.read_value().ok()??;
    let located = reader.first_doubt.or_else(|| Some((reader.doubt?, reader.rest.len())));
    let located_doubt = located.map(|(kind, rest_len)| LocatedDoubt { kind, end: text.len() - rest_len });
    Some(FirstValue { value, doubt: located_doubt, rest: reader.rest })
}

/// Finds the first key of a JSON text with two different values.
pub(super) fn find_duplicate_key(text: &str) -> Option<RepairDoubt> {
    let located_doubt = read_first(text)?.doubt.filter(|lack| lack.kind == DoubtKind::DuplicateKey)?;
    Some(RepairDoubt {
        kind: located_doubt.kind,
        position: Some(TextPosition::at_end(&text[..located_doubt.end])),
    })
}

/// The text is not a prefix of a JSON text.
struct Malformed;

struct JsonReader<'a> {
    rest: &'a str,
    doubt: Option<DoubtKind>,
    /// The first doubt about a string or a value, with the number of bytes after it.
    first_doubt: Option<(DoubtKind, usize)>,
    depth: usize,
}

/// A string up to its closing quote, or to the end of the text.
struct StringBody<'a> {
    text: String,
    /// The text after the quote; `None` without one.
    rest: Option<&'a str>,
    has_literal_backslash: bool,
    has_lone_surrogate: bool,
}

impl JsonReader<'_> {
    /// Parses a value; `None` if the text ends before it is certain.
    fn read_value(&mut self) -> Result<Option<Value>, Malformed> {
        match self.peek() {
            None => Ok(None),
            Some('{') => self.read_nested(Self::read_object).map(Some),
            Some('[') => self.read_nested(Self::read_array).map(Some),
            Some('"') => {
                let (text, is_whole) = self.read_string();
                if !is_whole {
                    self.doubt = Some(DoubtKind::TruncatedString);
                }
                Ok(Some(Value::String(text)))
            }
            Some('-' | '0'..='9') => self.read_number(),
            Some(_) => self.read_literal().map(Some),
        }
    }

    /// Skips white space and returns the next character.
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start_matches([' ', '\n', '\r', '\t']);
        self.rest.chars().next()
    }

    /// Skips an ASCII character found by [`JsonReader::peek`].
    fn skip_char(&mut self) {
        self.rest = &self.rest[1..];
    }

    fn read_nested(&mut self, read: fn(&mut Self) -> Result<Value, Malformed>) -> Result<Value, Malformed> {
        if self.depth == DEPTH_MAX {
            return Err(Malformed);
        }
        self.depth += 1;
        self.skip_char();
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn read_object(&mut self) -> Result<Value, Malformed> {
        let mut map = Map::new();
        let mut doubt = DoubtKind::UnclosedValue;
        loop {
            match self.peek() {
                None => break,
                Some('}') => {
                    self.skip_char();
                    return Ok(Value::Object(map));
                }
                Some('"') => {}
                Some(_) => return Err(Malformed),
            }
            doubt = DoubtKind::UnclosedValue;
            let (key, is_whole) = self.read_string();
            match self.peek() {
                None => break,
                Some(':') if is_whole => self.skip_char(),
                Some(_) => return Err(Malformed),
            }
            let Some(value) = self.read_value()? else { break };
            if map.get(&key).is_some_and(|first| *first != value) {
                self.first_doubt.get_or_insert((DoubtKind::DuplicateKey, self.rest.len()));
            }
            map.insert(key, value);
            doubt = self.after_item('}')?;
        }
        self.note_open_end(doubt);
        Ok(Value::Object(map))
    }

    fn read_array(&mut self) -> Result<Value, Malformed> {
        let mut items = Vec::new();
        let mut doubt = DoubtKind::UnclosedValue;
        loop {
            match self.peek() {
                None => break,
                Some(']') => {
                    self.skip_char();
                    return Ok(Value::Array(items));
                }
                Some(_) => {}
            }
            doubt = DoubtKind::UnclosedValue;
            let Some(value) = self.read_value()? else { break };
            items.push(value);
            doubt = self.after_item(']')?;
        }
        self.note_open_end(doubt);
        Ok(Value::Array(items))
    }

    /// Records that the text ended before a bracket, unless it ended in a string.
    fn note_open_end(&mut self, doubt: DoubtKind) {
        self.doubt.get_or_insert(doubt);
    }

    /// Reads the separator after an item; returns the doubt if the text ends there.
    fn after_item(&mut self, end: char) -> Result<DoubtKind, Malformed> {
        match self.peek() {
            Some(',') => {
                self.skip_char();
                Ok(DoubtKind::UnclosedValue)
            }
            Some(next) if next != end => Err(Malformed),
            Some(_) | None => Ok(DoubtKind::MissingBrackets),
        }
    }

    /// Parses a string; returns whether it was complete.
    fn read_string(&mut self) -> (String, bool) {
        self.skip_char();
        let source = self.rest;
        let StringBody { text, rest, has_literal_backslash, has_lone_surrogate } = StringBody::read(source);
        self.rest = rest.unwrap_or_default();
        let paths = match rest {
            Some(rest) if has_literal_backslash => {
                paths::escape_windows_paths(&source[..source.len() - rest.len() - 1])
            }
            Some(_) | None => None,
        };
        let is_guess = paths.as_ref().is_some_and(|paths| paths.is_guess);
        if has_lone_surrogate || is_guess {
            let kind = if has_lone_surrogate { DoubtKind::LoneSurrogate } else { DoubtKind::Ambiguous };
            self.first_doubt.get_or_insert((kind, self.rest.len()));
        }
        (paths.map_or(text, |paths| StringBody::read(&paths.source).text), rest.is_some())
    }

    /// A number at the very end may lack digits: it is omitted, since `1` for `120` would be wrong.
    fn read_number(&mut self) -> Result<Option<Value>, Malformed> {
        let ends_number = |char: char| !matches!(char, '0'..='9' | '-' | '+' | '.' | 'e' | 'E');
        let Some(end) = self.rest.find(ends_number) else {
            self.rest = "";
            return Ok(None);
        };
        let (number, rest) = self.rest.split_at(end);
        self.rest = rest;
        serde_json::from_str::<Number>(number)
            .map(|number| Some(Value::Number(number)))
            .map_err(|_| Malformed)
    }

    /// A truncated literal has only one completion.
    fn read_literal(&mut self) -> Result<Value, Malformed> {
        for (word, value) in
            [("true", Value::Bool(true)), ("false", Value::Bool(false)), ("null", Value::Null)]
        {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
            if word.starts_with(self.rest) {
                self.rest = "";
                self.doubt = Some(DoubtKind::UnclosedValue);
                return Ok(value);
            }
        }
        Err(Malformed)
    }
}

impl<'a> StringBody<'a> {
    /// Parses a string after its opening quote.
    fn read(source: &'a str) -> Self {
        let mut body =
            Self { text: String::new(), rest: None, has_literal_backslash: false, has_lone_surrogate: false };
        let mut rest = source;
        while let Some(at) = rest.find(['"', '\\']) {
            body.text.push_str(&rest[..at]);
            rest = &rest[at..];
            if let Some(after) = rest.strip_prefix('"') {
                body.rest = Some(after);
                return body;
            }
            let n_bytes = match parse_escape(rest) {
                StringEscape::Char(char, n_bytes) => {
                    body.text.push(char);
                    n_bytes
                }
                StringEscape::LoneSurrogate(n_bytes) => {
                    body.has_lone_surrogate = true;
                    body.text.push(char::REPLACEMENT_CHARACTER);
                    n_bytes
                }
                StringEscape::Literal => {
                    body.has_literal_backslash = true;
                    body.text.push('\\');
                    1
                }
                StringEscape::Truncated => return body,
            };
            rest = &rest[n_bytes..];
        }
        body.text.push_str(rest);
        body
    }
}
