//! Repairs text that is no prefix of JSON: single quotes, bare keys, Python literals, missing commas. A library does
//! the repair; this file checks its effect on strings.

mod scan;

use jsonrepair_rs::{RepairOptions, jsonrepair_with_options};
use serde_json::{Map, Value};

use self::scan::{MalformedScan, SourceWords};
use super::doubt::{LocatedDoubt, PartialRead};
use super::json_reader;
use crate::DoubtKind;

/// A longer malformed text is no call; the repair is not linear.
const BYTES_MAX: usize = 4 << 20;

/// Repairs the object at the start of `text`.
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
    let located_doubt = if let Some(end) = scan.ambiguous_at {
        Some(LocatedDoubt { kind: DoubtKind::Ambiguous, end })
    } else if let Some((kind, end)) = scan.string_doubt {
        Some(LocatedDoubt { kind, end })
    } else if scan.ends_in_string {
        Some(LocatedDoubt { kind: DoubtKind::TruncatedString, end })
    } else if scan.rest.is_none() && !scan.lacks_brackets_only {
        Some(LocatedDoubt { kind: DoubtKind::UnclosedValue, end })
    } else if json_reader::find_duplicate_key(&repaired).is_some() {
        Some(LocatedDoubt { kind: DoubtKind::DuplicateKey, end })
    } else if !has_only(&value, &scan.words) || (scan.has_single_quotes && rest.contains('\'')) {
        Some(LocatedDoubt { kind: DoubtKind::Ambiguous, end })
    } else if scan.rest.is_none() {
        Some(LocatedDoubt { kind: DoubtKind::MissingBrackets, end })
    } else {
        None
    };
    Some((value, located_doubt, rest))
}

/// A number at the very end may lack digits, and `1` for `120` would be wrong.
fn ends_in_number(text: &str) -> bool {
    text.trim_end().ends_with(|last: char| last.is_ascii_digit() || matches!(last, '.' | '-'))
}

/// Whether all strings occur in the source, and none was composed by the repair.
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
