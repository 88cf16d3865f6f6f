//! Reads JSON that may stop anywhere, and completes it without guessing: what is not certain is left out.
//! Must never know of any malformation but three that models make in strings all the time: raw control
//! characters, backslashes that escape nothing, and half a character.

use serde_json::{Map, Number, Value};

use super::{LocatedDoubt, paths};
use crate::DoubtKind;

/// As deep as `serde_json` reads what is kept; deeper text is no argument of any tool, and recursion has to end.
const DEPTH_MAX: usize = 127;

/// The first value of a text.
pub(super) struct FirstValue<'a> {
    /// What it came to.
    pub(super) value: Value,
    /// What is not certain of it.
    pub(super) lack: Option<LocatedDoubt>,
    /// What follows the value.
    pub(super) rest: &'a str,
}

/// What a backslash in a string stands for.
pub(super) enum StringEscape {
    /// This character, spelled in that many bytes.
    Char(char, usize),
    /// Nothing: it is a backslash of the text.
    Literal,
    /// Half a surrogate pair, spelled in that many bytes.
    Lone(usize),
    /// The text ends before that can be told.
    Cut,
}

/// Reads the first value of a text, completing it when the text ends too early.
pub(super) fn read_first(text: &str) -> Option<FirstValue<'_>> {
    let mut reader = JsonReader { rest: text, lack: None, odd: None, depth: 0 };
    let value = reader.read_value().ok()??;
    let odd = reader.odd.or_else(|| Some((reader.lack?, reader.rest.len())));
    let lack = odd.map(|(kind, rest_len)| LocatedDoubt { kind, end: text.len() - rest_len });
    Some(FirstValue { value, lack, rest: reader.rest })
}

/// Tells what the backslash that begins `text` stands for.
pub(super) fn parse_escape(text: &str) -> StringEscape {
    let Some(kind) = text[1..].chars().next() else { return StringEscape::Cut };
    let char = match kind {
        '"' | '\\' | '/' => kind,
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => return parse_unicode_escape(text),
        _ => return StringEscape::Literal,
    };
    StringEscape::Char(char, 2)
}

/// Bytes of one `\uXXXX`.
const UNIT_LEN: usize = 6;

fn parse_unicode_escape(text: &str) -> StringEscape {
    let high = match parse_utf16_unit(text) {
        Ok(Some(unit)) => unit,
        Ok(None) => return StringEscape::Literal,
        Err(EndOfText) => return StringEscape::Cut,
    };
    if let Some(char) = char::from_u32(u32::from(high)) {
        return StringEscape::Char(char, UNIT_LEN);
    }
    match parse_utf16_unit(&text[UNIT_LEN..]) {
        Ok(Some(low)) => match char::decode_utf16([high, low]).next() {
            Some(Ok(char)) => StringEscape::Char(char, 2 * UNIT_LEN),
            Some(Err(_)) | None => StringEscape::Lone(UNIT_LEN),
        },
        Ok(None) => StringEscape::Lone(UNIT_LEN),
        Err(EndOfText) => StringEscape::Cut,
    }
}

/// The text may go on in a way that changes what it means.
struct EndOfText;

/// Reads a `\uXXXX`; `None` when the text begins with something else.
fn parse_utf16_unit(text: &str) -> Result<Option<u16>, EndOfText> {
    let mut bytes = text.bytes();
    for expected in [b'\\', b'u'] {
        if bytes.next().ok_or(EndOfText)? != expected {
            return Ok(None);
        }
    }
    let mut unit = 0;
    for _ in 0..4 {
        match char::from(bytes.next().ok_or(EndOfText)?).to_digit(16) {
            Some(digit) => unit = unit * 16 + digit,
            None => return Ok(None),
        }
    }
    Ok(u16::try_from(unit).ok())
}

/// The text is not the beginning of a JSON text.
struct Malformed;

struct JsonReader<'a> {
    rest: &'a str,
    lack: Option<DoubtKind>,
    /// What is not certain in the first string or value of which something is not, and how much followed it.
    odd: Option<(DoubtKind, usize)>,
    depth: usize,
}

/// A string up to its closing quote, or to the end of the text.
struct StringBody<'a> {
    text: String,
    /// What follows the quote; `None` where there is none.
    rest: Option<&'a str>,
    has_literal: bool,
    has_lone: bool,
}

impl JsonReader<'_> {
    /// Reads a value; `None` when the text ends before it is certain.
    fn read_value(&mut self) -> Result<Option<Value>, Malformed> {
        match self.peek() {
            None => Ok(None),
            Some('{') => self.read_nested(Self::read_object).map(Some),
            Some('[') => self.read_nested(Self::read_array).map(Some),
            Some('"') => {
                let (text, is_whole) = self.read_string();
                if !is_whole {
                    self.lack = Some(DoubtKind::CutInString);
                }
                Ok(Some(Value::String(text)))
            }
            Some('-' | '0'..='9') => self.read_number(),
            Some(_) => self.read_literal().map(Some),
        }
    }

    /// Skips whitespace and shows what comes next.
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start_matches([' ', '\n', '\r', '\t']);
        self.rest.chars().next()
    }

    /// Skips a character that [`JsonReader::peek`] showed to be ASCII.
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
        let mut lack = DoubtKind::NotClosed;
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
            lack = DoubtKind::NotClosed;
            let (key, is_whole) = self.read_string();
            match self.peek() {
                None => break,
                Some(':') if is_whole => self.skip_char(),
                Some(_) => return Err(Malformed),
            }
            let Some(value) = self.read_value()? else { break };
            if map.get(&key).is_some_and(|first| *first != value) {
                self.odd.get_or_insert((DoubtKind::KeyTwice, self.rest.len()));
            }
            map.insert(key, value);
            lack = self.after_item('}')?;
        }
        self.note_open_end(lack);
        Ok(Value::Object(map))
    }

    fn read_array(&mut self) -> Result<Value, Malformed> {
        let mut items = Vec::new();
        let mut lack = DoubtKind::NotClosed;
        loop {
            match self.peek() {
                None => break,
                Some(']') => {
                    self.skip_char();
                    return Ok(Value::Array(items));
                }
                Some(_) => {}
            }
            lack = DoubtKind::NotClosed;
            let Some(value) = self.read_value()? else { break };
            items.push(value);
            lack = self.after_item(']')?;
        }
        self.note_open_end(lack);
        Ok(Value::Array(items))
    }

    /// Takes in that the text ended before a bracket did; a string that it ended in says more.
    fn note_open_end(&mut self, lack: DoubtKind) {
        self.lack.get_or_insert(lack);
    }

    /// Reads what follows an item; tells what is missing where the text ends there.
    fn after_item(&mut self, end: char) -> Result<DoubtKind, Malformed> {
        match self.peek() {
            Some(',') => {
                self.skip_char();
                Ok(DoubtKind::NotClosed)
            }
            Some(next) if next != end => Err(Malformed),
            Some(_) | None => Ok(DoubtKind::BracketsMissing),
        }
    }

    /// Reads a string; tells whether its end was there.
    fn read_string(&mut self) -> (String, bool) {
        self.skip_char();
        let source = self.rest;
        let StringBody { text, rest, has_literal, has_lone } = StringBody::read(source);
        self.rest = rest.unwrap_or_default();
        let paths = match rest {
            Some(rest) if has_literal => {
                paths::escape_windows_paths(&source[..source.len() - rest.len() - 1])
            }
            Some(_) | None => None,
        };
        let is_guess = paths.as_ref().is_some_and(|paths| paths.is_guess);
        if has_lone || is_guess {
            let kind = if has_lone { DoubtKind::LoneSurrogate } else { DoubtKind::Guessed };
            self.odd.get_or_insert((kind, self.rest.len()));
        }
        (paths.map_or(text, |paths| StringBody::read(&paths.source).text), rest.is_some())
    }

    /// A number at the very end may lack digits, and `1` for `120` would be a lie: it is left out.
    fn read_number(&mut self) -> Result<Option<Value>, Malformed> {
        let is_other = |char: char| !matches!(char, '0'..='9' | '-' | '+' | '.' | 'e' | 'E');
        let Some(end) = self.rest.find(is_other) else {
            self.rest = "";
            return Ok(None);
        };
        let (number, rest) = self.rest.split_at(end);
        self.rest = rest;
        serde_json::from_str::<Number>(number)
            .map(|number| Some(Value::Number(number)))
            .map_err(|_| Malformed)
    }

    /// A cut literal can be completed in one way only.
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
                self.lack = Some(DoubtKind::NotClosed);
                return Ok(value);
            }
        }
        Err(Malformed)
    }
}

impl<'a> StringBody<'a> {
    /// Reads a string behind its opening quote.
    fn read(source: &'a str) -> Self {
        let mut body = Self { text: String::new(), rest: None, has_literal: false, has_lone: false };
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
                StringEscape::Lone(n_bytes) => {
                    body.has_lone = true;
                    body.text.push(char::REPLACEMENT_CHARACTER);
                    n_bytes
                }
                StringEscape::Literal => {
                    body.has_literal = true;
                    body.text.push('\\');
                    1
                }
                StringEscape::Cut => return body,
            };
            rest = &rest[n_bytes..];
        }
        body.text.push_str(rest);
        body
    }
}
