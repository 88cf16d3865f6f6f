//! Characters that arrive in halves. JSON can encode one half of a surrogate pair, and servers that split their text
//! between the two send one in each event; a Rust string can contain neither. So a half is replaced by a mark before
//! the JSON is parsed, and joined, or replaced, where the text of the events is assembled.

use std::borrow::Cow;

use serde_json::Value;

/// The beginning of a mark: a noncharacter, which no text contains.
const MARK: char = '\u{10FFFE}';

/// Follows it for bytes that were not UTF-8.
const INVALID_BYTE: char = '\u{10FFFF}';

/// The offset that turns a half into a valid character after the mark.
const UNIT_OFFSET: u32 = 0x10_0000;

/// Bytes of `\uXXXX`.
const ESCAPE_LEN: usize = 6;

/// The encoding of damage in JSON: in any context, one of these stays alone.
const INVALID_BYTE_ESCAPE: &str = r"\ud800\ud800";

/// Text that arrives in pieces, with the half that is pending between two of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct SurrogateJoiner {
    pending_high: Option<u16>,
    lone_policy: LoneSurrogatePolicy,
}

/// The replacement of a lone half.
#[derive(Debug, Clone, Copy, Default)]
enum LoneSurrogatePolicy {
    /// The replacement character.
    #[default]
    Replace,
    /// An escape: the parser of the JSON decides.
    Escape,
}

/// The meaning of a mark.
enum SurrogateMark {
    Surrogate(u16),
    InvalidByte,
}

/// Replaces lone halves in the JSON of an event by marks.
pub(crate) fn mark_surrogates(data: &[u8]) -> Cow<'_, str> {
    let text = match std::str::from_utf8(data) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => {
            Cow::Owned(data.utf8_chunks().fold(String::with_capacity(data.len()), |mut text, chunk| {
                text.push_str(chunk.valid());
                if !chunk.invalid().is_empty() {
                    text.extend([MARK, INVALID_BYTE]);
                }
                text
            }))
        }
    };
    match mark_lone_surrogates(&text) {
        Some(marked) => Cow::Owned(marked),
        None => text,
    }
}

/// Resolves the marks in a complete text.
pub(crate) fn resolve_marks(text: &str) -> Cow<'_, str> {
    SurrogateJoiner::default().join_all(text)
}

/// Encodes halves in JSON text as escapes: side by side they form a character again.
pub(crate) fn escape_marks(json: &str) -> Cow<'_, str> {
    SurrogateJoiner::for_json().join_all(json)
}

/// Resolves the marks in all strings of a value.
pub(crate) fn resolve_value_marks(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(resolved) = resolve_marks(text) {
                *text = resolved;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(resolve_value_marks),
        Value::Object(fields) => fields.values_mut().for_each(resolve_value_marks),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl SurrogateJoiner {
    /// For text that is JSON itself.
    pub(crate) fn for_json() -> Self {
        Self { pending_high: None, lone_policy: LoneSurrogatePolicy::Escape }
    }

    /// Returns the next piece with complete characters; a half at its end is kept back.
    pub(crate) fn join_next<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        if text.is_empty() || (self.pending_high.is_none() && !text.contains(MARK)) {
            return Cow::Borrowed(text);
        }
        let mut joined = String::with_capacity(text.len());
        let mut chars = text.chars();
        while let Some(char) = chars.next() {
            match parse_mark(char, chars.clone().next()) {
                Some(mark) => {
                    chars.next();
                    self.take_mark(&mark, &mut joined);
                }
                None => {
                    joined.push_str(&self.flush());
                    joined.push(char);
                }
            }
        }
        Cow::Owned(joined)
    }

    /// Returns what is pending.
    pub(crate) fn flush(&mut self) -> Cow<'static, str> {
        self.pending_high.take().map_or(Cow::Borrowed(""), |high| self.render_lone(high))
    }

    fn join_all<'t>(mut self, text: &'t str) -> Cow<'t, str> {
        match (self.join_next(text), self.flush()) {
            (joined, end) if end.is_empty() => joined,
            (joined, end) => joined + end,
        }
    }

    fn take_mark(&mut self, mark: &SurrogateMark, joined: &mut String) {
        let unit = match (self.pending_high, mark) {
            (Some(high), SurrogateMark::Surrogate(low)) if is_low(*low) => {
                self.pending_high = None;
                joined.extend(char::decode_utf16([high, *low]).flatten());
                return;
            }
            (_, SurrogateMark::Surrogate(unit)) => Some(*unit),
            (_, SurrogateMark::InvalidByte) => None,
        };
        joined.push_str(&self.flush());
        match unit {
            Some(high) if !is_low(high) => self.pending_high = Some(high),
            Some(low) => joined.push_str(&self.render_lone(low)),
            None => joined.push_str(match self.lone_policy {
                LoneSurrogatePolicy::Replace => "\u{FFFD}",
                LoneSurrogatePolicy::Escape => INVALID_BYTE_ESCAPE,
            }),
        }
    }

    fn render_lone(&self, unit: u16) -> Cow<'static, str> {
        match self.lone_policy {
            LoneSurrogatePolicy::Replace => Cow::Borrowed("\u{FFFD}"),
            LoneSurrogatePolicy::Escape => Cow::Owned(format!("\\u{unit:04x}")),
        }
    }
}

/// Marks lone surrogates in JSON, if there are any.
fn mark_lone_surrogates(json: &str) -> Option<String> {
    let mut marked = String::new();
    let mut rest = json;
    let mut n_scanned = 0;
    while let Some(offset) = rest[n_scanned..].find('\\') {
        let escape = &rest[n_scanned + offset..];
        let (unit, escape_len) = match parse_unit_escape(escape) {
            Some(high) if is_high(high) && parse_unit_escape(&escape[ESCAPE_LEN..]).is_some_and(is_low) => {
                (None, 2 * ESCAPE_LEN)
            }
            Some(unit) if is_high(unit) || is_low(unit) => (Some(unit), ESCAPE_LEN),
            Some(_) => (None, ESCAPE_LEN),
            None => (None, 1 + escape[1..].chars().next().map_or(0, char::len_utf8)),
        };
        match unit.and_then(|unit| char::from_u32(UNIT_OFFSET + u32::from(unit))) {
            Some(marker) => {
                marked.push_str(&rest[..n_scanned + offset]);
                marked.extend([MARK, marker]);
                rest = &escape[escape_len..];
                n_scanned = 0;
            }
            None => n_scanned += offset + escape_len,
        }
    }
    (!marked.is_empty()).then(|| marked + rest)
}

fn parse_mark(mark: char, next: Option<char>) -> Option<SurrogateMark> {
    let next = next.filter(|_| mark == MARK)?;
    if next == INVALID_BYTE {
        return Some(SurrogateMark::InvalidByte);
    }
    let unit = u16::try_from(u32::from(next).checked_sub(UNIT_OFFSET)?).ok()?;
    (is_high(unit) || is_low(unit)).then_some(SurrogateMark::Surrogate(unit))
}

/// Parses the `\uXXXX` at the beginning of a text.
fn parse_unit_escape(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}

fn is_high(unit: u16) -> bool {
    (0xD800..0xDC00).contains(&unit)
}

fn is_low(unit: u16) -> bool {
    (0xDC00..0xE000).contains(&unit)
}

#[cfg(test)]
mod tests;
