//! Characters that arrive in halves. JSON can spell one half of a surrogate pair, and servers that cut their text between
//! the two send one in each event; text in memory can hold neither. So a half is marked before the JSON is read, and
//! joined, or given up, where the text of the events is put together.

use std::borrow::Cow;

use serde_json::Value;

/// What a mark begins with: a noncharacter, which no text has.
const MARK: char = '\u{10FFFE}';

/// What follows it where bytes were no UTF-8.
const DAMAGE: char = '\u{10FFFF}';

/// How far a half is moved to be a character behind the mark.
const MOVED: u32 = 0x10_0000;

/// Bytes of `\uXXXX`.
const ESCAPE_LEN: usize = 6;

/// How damage is spelled in JSON: whatever stands around it, one of these stays alone.
const DAMAGE_ESCAPED: &str = r"\ud800\ud800";

/// Text that comes in pieces, and what is waiting between two of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct SurrogateJoiner {
    high: Option<u16>,
    alone: LoneSurrogatePolicy,
}

/// What becomes of a half that stays alone.
#[derive(Debug, Clone, Copy, Default)]
enum LoneSurrogatePolicy {
    /// The character that says that one is missing.
    #[default]
    Replaced,
    /// An escape: who reads the JSON decides.
    Escaped,
}

/// What a mark stands for.
enum SurrogateMark {
    Half(u16),
    Damage,
}

/// Marks what is half a character in the JSON of an event.
pub(crate) fn mark_surrogates(data: &[u8]) -> Cow<'_, str> {
    let text = match std::str::from_utf8(data) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => {
            Cow::Owned(data.utf8_chunks().fold(String::with_capacity(data.len()), |mut text, chunk| {
                text.push_str(chunk.valid());
                if !chunk.invalid().is_empty() {
                    text.extend([MARK, DAMAGE]);
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

/// Makes text that came at once whole.
pub(crate) fn resolve_marks(text: &str) -> Cow<'_, str> {
    SurrogateJoiner::default().join_all(text)
}

/// Spells halves in JSON text as the escapes that they are: side by side they are a character again.
pub(crate) fn escape_marks(json: &str) -> Cow<'_, str> {
    SurrogateJoiner::for_json().join_all(json)
}

/// Makes all texts in a value whole.
pub(crate) fn resolve_value_marks(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(whole) = resolve_marks(text) {
                *text = whole;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(resolve_value_marks),
        Value::Object(fields) => fields.values_mut().for_each(resolve_value_marks),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl SurrogateJoiner {
    /// Starts on text that is JSON itself.
    pub(crate) fn for_json() -> Self {
        Self { high: None, alone: LoneSurrogatePolicy::Escaped }
    }

    /// Gives the next piece with whole characters; half of one at its end waits.
    pub(crate) fn join_next<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        if text.is_empty() || (self.high.is_none() && !text.contains(MARK)) {
            return Cow::Borrowed(text);
        }
        let mut joined = String::with_capacity(text.len());
        let mut chars = text.chars();
        while let Some(char) = chars.next() {
            match parse_mark(char, chars.clone().next()) {
                Some(marked) => {
                    chars.next();
                    self.take_mark(&marked, &mut joined);
                }
                None => {
                    joined.push_str(&self.flush());
                    joined.push(char);
                }
            }
        }
        Cow::Owned(joined)
    }

    /// Gives up what waits.
    pub(crate) fn flush(&mut self) -> Cow<'static, str> {
        self.high.take().map_or(Cow::Borrowed(""), |high| self.render_lone(high))
    }

    fn join_all<'t>(mut self, text: &'t str) -> Cow<'t, str> {
        match (self.join_next(text), self.flush()) {
            (joined, end) if end.is_empty() => joined,
            (joined, end) => joined + end,
        }
    }

    fn take_mark(&mut self, marked: &SurrogateMark, joined: &mut String) {
        let half = match (self.high, marked) {
            (Some(high), SurrogateMark::Half(low)) if is_low(*low) => {
                self.high = None;
                joined.extend(char::decode_utf16([high, *low]).flatten());
                return;
            }
            (_, SurrogateMark::Half(half)) => Some(*half),
            (_, SurrogateMark::Damage) => None,
        };
        joined.push_str(&self.flush());
        match half {
            Some(high) if !is_low(high) => self.high = Some(high),
            Some(low) => joined.push_str(&self.render_lone(low)),
            None => joined.push_str(match self.alone {
                LoneSurrogatePolicy::Replaced => "\u{FFFD}",
                LoneSurrogatePolicy::Escaped => DAMAGE_ESCAPED,
            }),
        }
    }

    fn render_lone(&self, half: u16) -> Cow<'static, str> {
        match self.alone {
            LoneSurrogatePolicy::Replaced => Cow::Borrowed("\u{FFFD}"),
            LoneSurrogatePolicy::Escaped => Cow::Owned(format!("\\u{half:04x}")),
        }
    }
}

/// Marks the halves of surrogate pairs that stand alone in JSON, if there are any.
fn mark_lone_surrogates(json: &str) -> Option<String> {
    let mut marked = String::new();
    let mut rest = json;
    let mut n_kept = 0;
    while let Some(at) = rest[n_kept..].find('\\') {
        let escape = &rest[n_kept + at..];
        let (half, escape_len) = match parse_unit_escape(escape) {
            Some(high) if is_high(high) && parse_unit_escape(&escape[ESCAPE_LEN..]).is_some_and(is_low) => {
                (None, 2 * ESCAPE_LEN)
            }
            Some(half) if is_high(half) || is_low(half) => (Some(half), ESCAPE_LEN),
            Some(_) => (None, ESCAPE_LEN),
            None => (None, 1 + escape[1..].chars().next().map_or(0, char::len_utf8)),
        };
        match half.and_then(|half| char::from_u32(MOVED + u32::from(half))) {
            Some(moved) => {
                marked.push_str(&rest[..n_kept + at]);
                marked.extend([MARK, moved]);
                rest = &escape[escape_len..];
                n_kept = 0;
            }
            None => n_kept += at + escape_len,
        }
    }
    (!marked.is_empty()).then(|| marked + rest)
}

fn parse_mark(mark: char, next: Option<char>) -> Option<SurrogateMark> {
    let next = next.filter(|_| mark == MARK)?;
    if next == DAMAGE {
        return Some(SurrogateMark::Damage);
    }
    let half = u16::try_from(u32::from(next).checked_sub(MOVED)?).ok()?;
    (is_high(half) || is_low(half)).then_some(SurrogateMark::Half(half))
}

/// Reads the `\uXXXX` that a text begins with.
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
