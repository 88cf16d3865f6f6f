//! Finds the end of a JSON object, and whether it can be a call. Strings are parsed when the object is complete.

use super::text_cursor::{ScanResult, ScanStop, TextCursor};
use crate::ToolSpec;

/// Deeper than the arguments of any tool.
const DEPTH_MAX: usize = 100;

/// The meaning of an object.
#[derive(Debug, Clone, Copy)]
pub(super) enum ObjectRole<'a> {
    /// A call of one of these tools.
    Call(&'a [ToolSpec]),
    /// The object of a call with the tool's name and the arguments.
    Function(&'a [ToolSpec]),
    /// Any object, such as arguments.
    Value,
}

/// Keys of the tool's name.
pub(super) const NAME_KEYS: [&str; 4] = ["name", "tool", "tool_name", FUNCTION_KEY];

/// Keys of the arguments.
pub(super) const ARGUMENT_KEYS: [&str; 4] = ["arguments", "parameters", "args", "input"];

/// The key of the tool's name, or of an object with name and arguments.
pub(super) const FUNCTION_KEY: &str = "function";

/// The value is always `function`, as in provider APIs.
const TYPE_KEY: &str = "type";

const ID_KEY: &str = "id";

/// Reads an object inside `depth` brackets.
pub(super) fn read_object(cursor: &mut TextCursor<'_>, role: ObjectRole<'_>, depth: usize) -> ScanResult {
    if read_byte(cursor)? != b'{' || depth == DEPTH_MAX {
        return Err(ScanStop::Mismatch);
    }
    loop {
        match read_byte(cursor)? {
            b'}' => return Ok(()),
            b'"' => {}
            _ => return Err(ScanStop::Mismatch),
        }
        let key = match role {
            ObjectRole::Value => read_string(cursor)?,
            ObjectRole::Call(_) | ObjectRole::Function(_) => {
                let other_keys = [TYPE_KEY, ID_KEY];
                read_word(cursor, NAME_KEYS.into_iter().chain(ARGUMENT_KEYS).chain(other_keys))?
            }
        };
        if read_byte(cursor)? != b':' {
            return Err(ScanStop::Mismatch);
        }
        read_member(cursor, role, key, depth + 1)?;
        if ends_items(cursor, b'}')? {
            return Ok(());
        }
    }
}

/// Reads the value of a key.
fn read_member(cursor: &mut TextCursor<'_>, role: ObjectRole<'_>, key: &str, depth: usize) -> ScanResult {
    let (ObjectRole::Call(tools) | ObjectRole::Function(tools)) = role else {
        return read_value(cursor, depth);
    };
    let is_argument = ARGUMENT_KEYS.contains(&key);
    match peek_byte(cursor)? {
        b'"' if key == ID_KEY || is_argument => read_value(cursor, depth),
        b'"' => {
            cursor.n_read += 1;
            let names = tools.iter().map(|tool| tool.name.as_str()).filter(|_| key != TYPE_KEY);
            let kind = (key == TYPE_KEY).then_some("function");
            read_word(cursor, names.chain(kind)).map(drop)
        }
        b'{' if is_argument => read_object(cursor, ObjectRole::Value, depth),
        b'{' if key == FUNCTION_KEY && matches!(role, ObjectRole::Call(_)) => {
            read_object(cursor, ObjectRole::Function(tools), depth)
        }
        byte if key == ID_KEY && !b"{[".contains(&byte) => read_value(cursor, depth),
        _ => Err(ScanStop::Mismatch),
    }
}

fn read_value(cursor: &mut TextCursor<'_>, depth: usize) -> ScanResult {
    match peek_byte(cursor)? {
        b'{' => read_object(cursor, ObjectRole::Value, depth),
        b'[' => read_array(cursor, depth),
        b'"' => {
            cursor.n_read += 1;
            read_string(cursor).map(drop)
        }
        b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
            cursor.skip_while(|char| char.is_ascii_alphanumeric() || "+-.".contains(char))
        }
        _ => Err(ScanStop::Mismatch),
    }
}

fn read_array(cursor: &mut TextCursor<'_>, depth: usize) -> ScanResult {
    if depth == DEPTH_MAX {
        return Err(ScanStop::Mismatch);
    }
    cursor.n_read += 1;
    loop {
        if peek_byte(cursor)? == b']' {
            cursor.n_read += 1;
            return Ok(());
        }
        read_value(cursor, depth + 1)?;
        if ends_items(cursor, b']')? {
            return Ok(());
        }
    }
}

/// Reads what follows an item: a comma, or the closing bracket.
fn ends_items(cursor: &mut TextCursor<'_>, bracket: u8) -> ScanResult<bool> {
    match read_byte(cursor)? {
        b',' => Ok(false),
        byte if byte == bracket => Ok(true),
        _ => Err(ScanStop::Mismatch),
    }
}

/// Skips white space and returns the next byte.
fn peek_byte(cursor: &mut TextCursor<'_>) -> ScanResult<u8> {
    cursor.skip_while(|char| " \n\r\t".contains(char))?;
    cursor.rest().bytes().next().ok_or(ScanStop::NeedMore)
}

/// Reads a byte that must be ASCII.
fn read_byte(cursor: &mut TextCursor<'_>) -> ScanResult<u8> {
    let byte =
        peek_byte(cursor).and_then(|byte| byte.is_ascii().then_some(byte).ok_or(ScanStop::Mismatch))?;
    cursor.n_read += 1;
    Ok(byte)
}

/// Reads a string after its opening quote; the cursor stays if it is incomplete.
fn read_string<'t>(cursor: &mut TextCursor<'t>) -> ScanResult<&'t str> {
    let source = cursor.rest();
    let mut at = 0;
    while let Some(n_plain) = source[at..].find(['"', '\\']) {
        at += n_plain;
        if source[at..].starts_with('"') {
            cursor.n_read += at + 1;
            return Ok(&source[..at]);
        }
        let escaped = source[at + 1..].chars().next().ok_or(ScanStop::NeedMore)?;
        at += 1 + escaped.len_utf8();
    }
    Err(ScanStop::NeedMore)
}

/// Reads a string that is one of these words, as they are written.
fn read_word<'t, 'w>(
    cursor: &mut TextCursor<'t>,
    mut words: impl Iterator<Item = &'w str>,
) -> ScanResult<&'t str> {
    let is_possible = match read_string(cursor) {
        Ok(text) if words.any(|word| word == text) => return Ok(text),
        Ok(_) => false,
        Err(_) => words.any(|word| word.starts_with(cursor.rest())),
    };
    Err(if is_possible { ScanStop::NeedMore } else { ScanStop::Mismatch })
}
