//! Text that is no prefix of a JSON text: single quotes, bare keys, Python's words, missing commas.
//! The repair itself is somebody else's; this file watches over what it makes of strings.

mod scan;

use std::collections::HashSet;

use jsonrepair_rs::{RepairOptions, jsonrepair_with_options};
use serde_json::{Map, Value};

use self::scan::MalformedScan;
use super::{LocatedDoubt, PartialRead};
use crate::DoubtKind;

/// Above this a malformed text is no call but an accident; the repair looks back and forth in it.
const BYTES_MAX: usize = 4 << 20;

/// Repairs the object that begins `text`.
pub(super) fn repair_malformed(text: &str) -> Option<PartialRead<'_>> {
    if text.len() > BYTES_MAX {
        return None;
    }
    let scan = MalformedScan::new(text);
    if scan.rest.is_none() && ends_in_number(text) {
        return None;
    }
    let options = RepairOptions::new().with_max_input_bytes(2 * BYTES_MAX);
    let repaired = jsonrepair_with_options(&scan.text, options).ok()?;
    let value: Map<String, Value> = serde_json::from_str(&repaired).ok()?;
    let rest = scan.rest.unwrap_or_default();
    let end = text.len() - rest.len();
    let lack = if let Some(end) = scan.odd_at {
        Some(LocatedDoubt { kind: DoubtKind::Guessed, end })
    } else if let Some((kind, end)) = scan.odd_string {
        Some(LocatedDoubt { kind, end })
    } else if scan.ends_in_string {
        Some(LocatedDoubt { kind: DoubtKind::CutInString, end })
    } else if scan.rest.is_none() && !scan.lacks_brackets_only {
        Some(LocatedDoubt { kind: DoubtKind::NotClosed, end })
    } else if super::find_duplicate_key(&repaired).is_some() {
        Some(LocatedDoubt { kind: DoubtKind::KeyTwice, end })
    } else if !has_only(&value, &scan.words) || (scan.has_single_quotes && rest.contains('\'')) {
        Some(LocatedDoubt { kind: DoubtKind::Guessed, end })
    } else if scan.rest.is_none() {
        Some(LocatedDoubt { kind: DoubtKind::BracketsMissing, end })
    } else {
        None
    };
    Some((value, lack, rest))
}

/// A number at the very end may lack digits, and `1` for `120` would be a lie.
fn ends_in_number(text: &str) -> bool {
    text.trim_end().ends_with(|last: char| last.is_ascii_digit() || matches!(last, '.' | '-'))
}

/// Whatever stands nowhere in the text was put together by the repair.
fn has_only(map: &Map<String, Value>, words: &SourceWords) -> bool {
    map.iter().all(|(key, value)| words.has_key(key) && is_only(value, words))
}

fn is_only(value: &Value, words: &SourceWords) -> bool {
    match value {
        Value::String(text) => words.strings.contains(text),
        Value::Array(items) => items.iter().all(|item| is_only(item, words)),
        Value::Object(map) => has_only(map, words),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

/// What may become a key or a string.
#[derive(Default)]
struct SourceWords {
    /// What stands between quotes, unescaped.
    strings: HashSet<String>,
    /// What stands bare before a colon.
    bare_keys: HashSet<String>,
}

impl SourceWords {
    fn has_key(&self, key: &str) -> bool {
        self.strings.contains(key) || self.bare_keys.contains(key)
    }
}
