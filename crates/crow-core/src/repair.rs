//! Reads a call's arguments as models really write them. Repairs syntax only, and must never know which tool
//! is called: it says what was certain, and the caller decides what may run.

mod aliases;
mod closer;
mod malformed;
mod markup;
mod names;
mod paths;
mod schema;

use serde_json::{Map, Value, error::Category};

use crate::{DoubtKind, RepairDoubt, TextPosition, ToolArguments};

pub use names::resolve_names;
pub use schema::check_against_schema;

/// Objects were seen encoded twice; beyond that nobody means an object.
const ENCODINGS_MAX: usize = 3;

/// Reads the text of a call's arguments; repairs syntax only.
pub fn read_arguments(text: &str) -> ToolArguments {
    // A tool without arguments is called with no text at all.
    if text.trim().is_empty() {
        return ToolArguments::Valid(Map::new());
    }
    let error = match serde_json::from_str(text) {
        Ok(value) => {
            return match find_duplicate_key(text) {
                None => ToolArguments::Valid(value),
                doubt => ToolArguments::Repaired { value, doubt },
            };
        }
        Err(error) => error,
    };
    match read_encoded(text, ENCODINGS_MAX).or_else(|| read_object(text)) {
        Some(ObjectReading { value, doubt }) => ToolArguments::Repaired { value, doubt },
        None => ToolArguments::Unreadable { why: describe_error(text, &error) },
    }
}

/// Finds the first key of a JSON text that has two values which are not the same.
fn find_duplicate_key(text: &str) -> Option<RepairDoubt> {
    let lack = closer::read_first(text)?.lack.filter(|lack| lack.kind == DoubtKind::KeyTwice)?;
    Some(RepairDoubt { kind: lack.kind, place: Some(TextPosition::at_end(&text[..lack.end])) })
}

/// An object, and what is not certain of it.
struct ObjectReading {
    value: Map<String, Value>,
    doubt: Option<RepairDoubt>,
}

/// Reads an object that was encoded again: as a JSON string, or as one that lost its quotes.
fn read_encoded(text: &str, n_left: usize) -> Option<ObjectReading> {
    let bare = text.trim_start_matches(is_blank).trim_end();
    let quoted;
    let encoded = match bare.strip_prefix('{').map(str::trim_start) {
        Some(members) if members.starts_with("\\\"") => {
            quoted = format!("\"{bare}\"");
            quoted.as_str()
        }
        _ => bare,
    };
    let closer::FirstValue { value: Value::String(inner), lack, rest } = closer::read_first(encoded)? else {
        return None;
    };
    if n_left == 0 || !rest.is_empty() {
        return None;
    }
    let reading = read_encoded(&inner, n_left - 1).or_else(|| read_object(&inner))?;
    let doubt = reading.doubt.map(|doubt| RepairDoubt {
        // Places of what was encoded are none of the text.
        place: is_at_end(doubt.kind).then(|| TextPosition::at_end(text)),
        ..doubt
    });
    let of_encoding =
        lack.map(|LocatedDoubt { kind, .. }| RepairDoubt { kind, place: Some(TextPosition::at_end(text)) });
    Some(ObjectReading { doubt: of_encoding.or(doubt), ..reading })
}

fn is_blank(char: char) -> bool {
    char.is_whitespace() || char == '\u{feff}'
}

fn is_at_end(kind: DoubtKind) -> bool {
    match kind {
        DoubtKind::NotClosed | DoubtKind::BracketsMissing | DoubtKind::CutInString => true,
        DoubtKind::Several
        | DoubtKind::TextBehind
        | DoubtKind::LoneSurrogate
        | DoubtKind::KeyTwice
        | DoubtKind::Guessed => false,
    }
}

fn read_object(text: &str) -> Option<ObjectReading> {
    if let Some(first) = closer::read_first(text)
        && !first.value.is_object()
        && first.rest.trim().is_empty()
    {
        // A list or a number is what was meant, and an object inside it is not.
        return None;
    }
    let start = text.find('{').filter(|start| markup::is_markup(&text[..*start]))?;
    let object = &text[start..];
    let (value, lack, rest) = match read_strictly(object) {
        Some(read) => read,
        None => malformed::repair_malformed(object)?,
    };
    let lack = lack.or_else(|| {
        let kind = doubt_about_rest(&value, rest)?;
        Some(LocatedDoubt { kind, end: object.len() - rest.len() })
    });
    let doubt = lack.map(|LocatedDoubt { kind, end }| RepairDoubt {
        kind,
        place: Some(TextPosition::at_end(&text[..start + end])),
    });
    Some(ObjectReading { value, doubt })
}

/// What is not certain of an object, and how far it goes up to there.
struct LocatedDoubt {
    kind: DoubtKind,
    end: usize,
}

/// An object, what is not certain in it, and what follows it.
type PartialRead<'a> = (Map<String, Value>, Option<LocatedDoubt>, &'a str);

fn read_strictly(object: &str) -> Option<PartialRead<'_>> {
    let mut first = closer::read_first(object)?;
    let mut n_before = 0;
    // Some servers send an empty object before the pieces of the real one.
    while first.value.as_object().is_some_and(Map::is_empty) && first.rest.trim_start().starts_with('{') {
        n_before = object.len() - first.rest.len();
        first = closer::read_first(first.rest)?;
    }
    let closer::FirstValue { value: Value::Object(value), lack, rest } = first else { return None };
    // Its end was counted in the text that the last of them began.
    let lack = lack.map(|LocatedDoubt { kind, end }| LocatedDoubt { kind, end: n_before + end });
    Some((value, lack, rest))
}

/// Says what follows an object that leaves a doubt of it. A quote does: the object may have ended inside a
/// string whose quotes were not escaped. More members do, and an object that is another.
fn doubt_about_rest(value: &Map<String, Value>, mut rest: &str) -> Option<DoubtKind> {
    while rest.trim_start().starts_with('{') {
        match closer::read_first(rest) {
            Some(closer::FirstValue { value: Value::Object(other), lack: None, rest: after })
                if other == *value || other.is_empty() =>
            {
                rest = after;
            }
            Some(_) => return Some(DoubtKind::Several),
            None => return Some(DoubtKind::Guessed),
        }
    }
    if rest.contains('"') || has_more_members(rest) {
        return Some(DoubtKind::Guessed);
    }
    (!markup::is_markup(rest)).then_some(DoubtKind::TextBehind)
}

/// Tells whether more members follow: the bracket before them was one too many.
fn has_more_members(rest: &str) -> bool {
    let is_filler = |char: char| char.is_whitespace() || matches!(char, ',' | '}' | ']');
    let rest = rest.trim_start_matches(|char: char| char.is_whitespace() || matches!(char, '}' | ']'));
    rest.starts_with(',') && !rest.chars().all(is_filler)
}

fn describe_error(text: &str, error: &serde_json::Error) -> String {
    let has_words_before = text.find('{').is_some_and(|start| !markup::is_markup(&text[..start]));
    let what = match error.classify() {
        Category::Syntax if has_words_before => "words stand before it".to_owned(),
        // It is JSON, as far as it is there, and something else than an object.
        Category::Data => match text.trim_start().bytes().next() {
            Some(b'[') => "they are a list".to_owned(),
            Some(b'"') => "they are a string".to_owned(),
            _ => "they are a single value".to_owned(),
        },
        Category::Syntax | Category::Eof | Category::Io => error.to_string(),
    };
    format!("the arguments are not a JSON object: {what}; send the call again with one")
}

#[cfg(test)]
mod tests;
