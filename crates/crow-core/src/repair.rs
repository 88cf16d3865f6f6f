//! Reads a call's arguments as models really write them. Repairs syntax only, and must never know which tool
//! is called: it says what was certain, and the caller decides what may run.

mod closer;
mod malformed;
mod schema;

use serde_json::{Map, Value};

use crate::Arguments;

pub use schema::check_against;

/// Reads the text of a call's arguments; repairs syntax only.
pub fn read_arguments(text: &str) -> Arguments {
    // A tool without arguments is called with no text at all.
    if text.trim().is_empty() {
        return Arguments::Valid(Map::new());
    }
    let error = match serde_json::from_str(text) {
        Ok(map) => return Arguments::Valid(map),
        Err(error) => error,
    };
    match read_encoded(text).or_else(|| read_object(text)) {
        Some((value, string_closed)) => Arguments::Repaired { value, string_closed },
        None => Arguments::Unreadable { why: format!("the arguments are not a JSON object: {error}") },
    }
}

/// An object, and whether the end of a string in it was missing.
type Repaired = (Map<String, Value>, bool);

/// Reads an object that was encoded twice: as a JSON string.
fn read_encoded(text: &str) -> Option<Repaired> {
    match closer::read_first(text)? {
        closer::First { value: Value::String(inner), rest, .. } if rest.trim().is_empty() => {
            read_object(&inner)
        }
        _ => None,
    }
}

fn read_object(text: &str) -> Option<Repaired> {
    if let Some(first) = closer::read_first(text)
        && !first.value.is_object()
        && first.rest.trim().is_empty()
    {
        // A list or a number is what was meant, and an object inside it is not.
        return None;
    }
    // Before the object there may be a BOM, a code fence, markup or words.
    let text = &text[text.find('{')?..];
    match closer::read_first(text) {
        Some(closer::First { value: Value::Object(map), string_cut, rest }) => {
            Some((map, string_cut || !is_harmless(rest)))
        }
        _ => malformed::repair(text),
    }
}

/// Tells whether what follows an object leaves no doubt that the object ended there. A quote in it does:
/// the object may have ended inside a string whose quotes were not escaped.
fn is_harmless(mut rest: &str) -> bool {
    while rest.trim_start().starts_with('{') {
        match closer::read_first(rest) {
            Some(first) => rest = first.rest,
            None => return false,
        }
    }
    !rest.contains('"')
}

#[cfg(test)]
mod tests;
