//! Text that is no prefix of a JSON text: single quotes, bare keys, Python's words, missing commas.
//! The repair itself is somebody else's; this file watches over what it does to strings.

use std::collections::HashSet;

use jsonrepair_rs::{RepairOptions, jsonrepair_with_options};
use serde_json::{Map, Value};

use super::closer::{self, Escape};

/// Above this a malformed text is no call but an accident; the repair looks back and forth in it.
const BYTES_MAX: usize = 4 << 20;

/// Repairs the object that begins `text`; tells whether a string's end had to be guessed.
pub(super) fn repair(text: &str) -> Option<(Map<String, Value>, bool)> {
    let scan = Scan::of(text);
    let ends_in_number =
        text.trim_end().ends_with(|last: char| last.is_ascii_digit() || matches!(last, '.' | '-'));
    if scan.rest.is_none() && ends_in_number {
        return None;
    }
    let options = RepairOptions::new().with_max_input_bytes(BYTES_MAX);
    let repaired = jsonrepair_with_options(&scan.text, options).ok()?;
    let value: Map<String, Value> = serde_json::from_str(&repaired).ok()?;
    let has_guess = scan.ends_in_string
        || scan.rest.is_some_and(|rest| rest.contains('"'))
        || !value.values().all(|value| has_only(value, &scan.strings));
    Some((value, has_guess))
}

/// A string that stands nowhere between quotes was put together by the repair.
fn has_only(value: &Value, strings: &HashSet<String>) -> bool {
    match value {
        Value::String(text) => strings.contains(text),
        Value::Array(items) => items.iter().all(|item| has_only(item, strings)),
        Value::Object(map) => map.values().all(|item| has_only(item, strings)),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

/// What lies between quotes, read in the plainest way.
struct Scan<'a> {
    /// The text up to the bracket that closes the first one, with each backslash that escapes nothing doubled:
    /// the repair would drop it, and a regex would silently become another.
    text: String,
    /// Every string, unescaped.
    strings: HashSet<String>,
    ends_in_string: bool,
    /// What follows the closing bracket, when it is there.
    rest: Option<&'a str>,
}

impl<'a> Scan<'a> {
    fn of(text: &'a str) -> Self {
        let mut scan = Self {
            text: String::with_capacity(text.len()),
            strings: HashSet::new(),
            ends_in_string: false,
            rest: None,
        };
        let mut rest = text;
        let mut n_open = 0_usize;
        while let Some(char) = rest.chars().next() {
            rest = &rest[char.len_utf8()..];
            scan.text.push(char);
            match char {
                '"' | '\'' => rest = scan.string(rest, char),
                '{' | '[' => n_open += 1,
                '}' | ']' => {
                    n_open = n_open.saturating_sub(1);
                    if n_open == 0 {
                        scan.rest = Some(rest);
                        break;
                    }
                }
                _ => {}
            }
        }
        scan
    }

    /// Takes in a string whose opening quote was read; gives back what follows it.
    fn string(&mut self, mut rest: &'a str, quote: char) -> &'a str {
        let mut string = String::new();
        while let Some(char) = rest.chars().next() {
            if char == '\\' {
                let Some(after) = self.escape(rest, quote, &mut string) else { break };
                rest = after;
                continue;
            }
            rest = &rest[char.len_utf8()..];
            self.text.push(char);
            if char == quote {
                self.strings.insert(string);
                return rest;
            }
            string.push(char);
        }
        self.ends_in_string = true;
        ""
    }

    fn escape(&mut self, rest: &'a str, quote: char, string: &mut String) -> Option<&'a str> {
        let n_bytes = match closer::escape(rest) {
            Escape::Cut => return None,
            Escape::Literal if rest[1..].starts_with(quote) => {
                string.push(quote);
                1 + quote.len_utf8()
            }
            Escape::Literal => {
                string.push('\\');
                self.text.push('\\');
                1
            }
            Escape::Char(char, n_bytes) => {
                string.push(char);
                n_bytes
            }
        };
        self.text.push_str(&rest[..n_bytes]);
        Some(&rest[n_bytes..])
    }
}
