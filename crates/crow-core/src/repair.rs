//! Parses tool call arguments as models write them. Repairs syntax only, and knows no tools: it reports doubts, and
//! the caller decides what may run.

mod aliases;
mod doubt;
mod json_reader;
mod malformed;
mod markup;
mod parameter_names;
mod paths;
mod schema;
mod string_escape;

use serde_json::{Map, Value, error::Category};

use self::doubt::{LocatedDoubt, PartialRead};
use crate::{DoubtKind, RepairDoubt, TextPosition, ToolArguments};

pub use parameter_names::resolve_names;
pub use schema::check_against_schema;

/// Objects encoded twice occur in practice; with more levels no object is meant.
const ENCODINGS_MAX: usize = 3;

/// Parses the text of a call's arguments; repairs syntax only.
pub fn read_arguments(text: &str) -> ToolArguments {
    // A tool without arguments is called with an empty text.
    if text.trim().is_empty() {
        return ToolArguments::Valid(Map::new());
    }
    let error = match serde_json::from_str(text) {
        Ok(value) => {
            return match json_reader::find_duplicate_key(text) {
                None => ToolArguments::Valid(value),
                doubt => ToolArguments::Repaired { value, doubt },
            };
        }
        Err(error) => error,
    };
    match read_encoded(text, ENCODINGS_MAX).or_else(|| read_object(text)) {
        Some(ObjectReading { value, doubt }) => ToolArguments::Repaired { value, doubt },
        None => ToolArguments::Unreadable { reason: describe_error(text, &error) },
    }
}

/// A parsed object, with its doubt.
struct ObjectReading {
    value: Map<String, Value>,
    doubt: Option<RepairDoubt>,
}

/// Parses an object that was encoded again: as a JSON string, or as one that lost its quotes.
fn read_encoded(text: &str, n_encodings_left: usize) -> Option<ObjectReading> {
    let bare = text.trim_start_matches(markup::is_blank).trim_end();
    let quoted;
    let encoded = match bare.strip_prefix('{').map(str::trim_start) {
        Some(members) if members.starts_with("\\\"") => {
            quoted = format!("\"{bare}\"");
            quoted.as_str()
        }
        _ => bare,
    };
    let json_reader::FirstValue { value: Value::String(inner), doubt: located_doubt, rest } =
        json_reader::read_first(encoded)?
    else {
        return None;
    };
    if n_encodings_left == 0 || !rest.is_empty() {
        return None;
    }
    let reading = read_encoded(&inner, n_encodings_left - 1).or_else(|| read_object(&inner))?;
    let doubt = reading.doubt.map(|doubt| RepairDoubt {
        // Positions in the decoded text do not apply to the source.
        position: is_at_end(doubt.kind).then(|| TextPosition::at_end(text)),
        ..doubt
    });
    let encoding_doubt = located_doubt
        .map(|LocatedDoubt { kind, .. }| RepairDoubt { kind, position: Some(TextPosition::at_end(text)) });
    Some(ObjectReading { doubt: encoding_doubt.or(doubt), ..reading })
}

fn is_at_end(kind: DoubtKind) -> bool {
    match kind {
        DoubtKind::UnclosedValue | DoubtKind::MissingBrackets | DoubtKind::TruncatedString => true,
        DoubtKind::SeveralObjects
        | DoubtKind::TrailingText
        | DoubtKind::LoneSurrogate
        | DoubtKind::DuplicateKey
        | DoubtKind::Ambiguous => false,
    }
}

fn read_object(text: &str) -> Option<ObjectReading> {
    if let Some(first) = json_reader::read_first(text)
        && !first.value.is_object()
        && first.rest.trim().is_empty()
    {
        // A list or a number is the intended value, not an object inside it.
        return None;
    }
    let start = text.find('{').filter(|start| markup::is_markup(&text[..*start]))?;
    let object = &text[start..];
    let (value, located_doubt, rest) = match read_strictly(object) {
        Some(partial_read) => partial_read,
        None => malformed::repair_malformed(object)?,
    };
    let located_doubt = located_doubt.or_else(|| {
        let kind = doubt_about_rest(&value, rest)?;
        Some(LocatedDoubt { kind, end: object.len() - rest.len() })
    });
    let doubt = located_doubt.map(|LocatedDoubt { kind, end }| RepairDoubt {
        kind,
        position: Some(TextPosition::at_end(&text[..start + end])),
    });
    Some(ObjectReading { value, doubt })
}

fn read_strictly(object: &str) -> Option<PartialRead<'_>> {
    let mut first = json_reader::read_first(object)?;
    let mut n_before = 0;
    // Some servers send an empty object before the pieces of the real one.
    while first.value.as_object().is_some_and(Map::is_empty) && first.rest.trim_start().starts_with('{') {
        n_before = object.len() - first.rest.len();
        first = json_reader::read_first(first.rest)?;
    }
    let json_reader::FirstValue { value: Value::Object(value), doubt: located_doubt, rest } = first else {
        return None;
    };
    // The offset is relative to the last parsed text.
    let located_doubt =
        located_doubt.map(|LocatedDoubt { kind, end }| LocatedDoubt { kind, end: n_before + end });
    Some((value, located_doubt, rest))
}

/// Returns the doubt about an object by the text after it: a quote (the object may have ended inside a string with
/// unescaped quotes), more members, or a different object.
fn doubt_about_rest(value: &Map<String, Value>, mut rest: &str) -> Option<DoubtKind> {
    while rest.trim_start().starts_with('{') {
        match json_reader::read_first(rest) {
            Some(json_reader::FirstValue { value: Value::Object(other), doubt: None, rest: after })
                if other == *value || other.is_empty() =>
            {
                rest = after;
            }
            Some(_) => return Some(DoubtKind::SeveralObjects),
            None => return Some(DoubtKind::Ambiguous),
        }
    }
    if rest.contains('"') || has_more_members(rest) {
        return Some(DoubtKind::Ambiguous);
    }
    (!markup::is_markup(rest)).then_some(DoubtKind::TrailingText)
}

/// Whether more members follow, after a superfluous bracket.
fn has_more_members(rest: &str) -> bool {
    let is_filler = |char: char| char.is_whitespace() || matches!(char, ',' | '}' | ']');
    let rest = rest.trim_start_matches(|char: char| char.is_whitespace() || matches!(char, '}' | ']'));
    rest.starts_with(',') && !rest.chars().all(is_filler)
}

fn describe_error(text: &str, error: &serde_json::Error) -> String {
    let has_words_before = text.find('{').is_some_and(|start| !markup::is_markup(&text[..start]));
    let what = match error.classify() {
        Category::Syntax if has_words_before => "other text precedes it".to_owned(),
        // Valid JSON so far, but no object.
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
