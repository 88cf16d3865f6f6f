//! The escapes in a JSON string.

/// The meaning of a backslash in a string.
pub(super) enum StringEscape {
    /// This character, with its source length in bytes.
    Char(char, usize),
    /// A backslash of the text.
    Literal,
    /// Half a surrogate pair, with its source length in bytes.
    LoneSurrogate(usize),
    /// Incomplete at the end of the text.
    Truncated,
}

/// Parses the escape at the start of `text`.
pub(super) fn parse_escape(text: &str) -> StringEscape {
    let Some(kind) = text[1..].chars().next() else { return StringEscape::Truncated };
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
        Err(EndOfText) => return StringEscape::Truncated,
    };
    if let Some(char) = char::from_u32(u32::from(high)) {
        return StringEscape::Char(char, UNIT_LEN);
    }
    match parse_utf16_unit(&text[UNIT_LEN..]) {
        Ok(Some(low)) => match char::decode_utf16([high, low]).next() {
            Some(Ok(char)) => StringEscape::Char(char, 2 * UNIT_LEN),
            Some(Err(_)) | None => StringEscape::LoneSurrogate(UNIT_LEN),
        },
        Ok(None) => StringEscape::LoneSurrogate(UNIT_LEN),
        Err(EndOfText) => StringEscape::Truncated,
    }
}

/// The continuation of the text may change its meaning.
struct EndOfText;

/// Parses a `\uXXXX`; `None` if the text begins with something else.
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
