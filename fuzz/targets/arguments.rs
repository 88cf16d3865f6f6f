//! Arguments of tool calls: any text is parsed without harm.
//!
//! The first line of the input is the JSON schema of a server, the rest the arguments; the first two bytes of the line
//! are the offset of a truncation.
#![no_main]

use crow_core::{
    ToolArguments, DoubtKind,
    repair::{check_against_schema, read_arguments, resolve_names},
};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};

/// A schema with all supported keywords.
fn schema() -> Value {
    json!({
        "properties": {
            "a": {"type": "string"},
            "b": {"type": ["integer", "null"]},
            "c": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}},
            "d": {"enum": ["one", "two", "Two"]},
            "e": {"anyOf": [{"type": "integer"}, {"type": "boolean"}, {"type": "array", "items": {"type": "string"}}]},
        },
        "required": ["a"],
    })
}

/// Whether two values are equal, except for the last digit of a float.
fn agree(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => match (one.as_f64(), other.as_f64()) {
            (Some(a), Some(b)) => one == other || (a - b).abs() <= a.abs() * 1e-12,
            _ => one == other,
        },
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| agree(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len() && pairs.all(|(one, other)| one.0 == other.0 && agree(one.1, other.1))
        }
        _ => one == other,
    }
}

fn is_runnable(arguments: &ToolArguments) -> bool {
    match arguments {
        ToolArguments::Valid(map) | ToolArguments::Repaired { value: map, doubt: None } => !map.is_empty(),
        ToolArguments::Repaired { doubt: Some(_), .. } | ToolArguments::Unreadable { .. } => false,
    }
}

fn check_text(text: &str) -> Map<String, Value> {
    let value = read_arguments(text).to_object();
    let written = Value::Object(value.clone()).to_string();
    match read_arguments(&written) {
        ToolArguments::Valid(again) => {
            assert!(agree(&Value::Object(again), &Value::Object(value.clone())), "{written}");
        }
        other => panic!("{written} is parsed as {other:?}"),
    }
    value
}

/// Closes the open brackets of a text.
fn closed(text: &str) -> String {
    let (mut open, mut in_string, mut is_escaped) = (Vec::new(), false, false);
    for char in text.chars() {
        match char {
            _ if std::mem::take(&mut is_escaped) => {}
            '\\' if in_string => is_escaped = true,
            '"' => in_string = !in_string,
            '{' if !in_string => open.push('}'),
            '[' if !in_string => open.push(']'),
            '}' | ']' if !in_string => drop(open.pop()),
            _ => {}
        }
    }
    open.iter().rev().fold(text.to_owned(), |text, bracket| text + &bracket.to_string())
}

/// If only brackets are missing after a prefix of JSON, adding them gives the same object.
fn check_brackets(beginning: &str, read: &ToolArguments) {
    if let ToolArguments::Repaired { value, doubt: Some(doubt) } = read
        && doubt.kind == DoubtKind::MissingBrackets
    {
        let closed = closed(beginning);
        let ToolArguments::Valid(again) = read_arguments(&closed) else { panic!("{closed} is not valid") };
        assert!(agree(&Value::Object(again), &Value::Object(value.clone())), "{closed}");
    }
}

/// A prefix of JSON is doubtful wherever it ends, also if the JSON was encoded again or follows a fence.
fn check_beginnings(object: &str, cut: usize) {
    let encoded = Value::from(object).to_string();
    for whole in [object.to_owned(), format!("```json\n{object}"), encoded] {
        let cut = (0..=cut % whole.len()).rev().find(|cut| whole.is_char_boundary(*cut)).unwrap_or_default();
        let beginning = read_arguments(&whole[..cut]);
        assert!(!is_runnable(&beginning), "{:?} is parsed as {beginning:?}", &whole[..cut]);
        if whole.starts_with('{') {
            check_brackets(&whole[..cut], &beginning);
        }
    }
}

/// The parameters of one of Crow's tools.
fn edit_schema() -> Value {
    let text = json!({"type": "string"});
    json!({"properties": {"file_path": text, "old_string": text, "new_string": text, "replace_all": {"type": "boolean"}}})
}

/// Each argument is resolved or the call is rejected; resolving again changes nothing.
fn check_names(value: &Map<String, Value>) {
    let Ok(resolved) = resolve_names("edit", &edit_schema(), value) else { return };
    assert!(resolved.len() <= value.len());
    assert_eq!(resolve_names("edit", &edit_schema(), &resolved), Ok(resolved.clone()));
    for (name, given) in &edit_schema()["properties"].as_object().cloned().unwrap_or_default() {
        assert!(!value.contains_key(name) || value[name].is_null() || resolved.contains_key(name), "{given}");
    }
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (head, text) = text.split_once('\n').unwrap_or(("", text));
    let value = check_text(text);
    check_names(&value);
    if let Ok(fitting) = check_against_schema(&schema(), &value) {
        assert_eq!(check_against_schema(&schema(), &fitting), Ok(fitting));
    }
    if let Ok(schema) = serde_json::from_str(head) {
        drop(check_against_schema(&schema, &value));
    }
    let cut = head.bytes().take(2).fold(0, |cut, byte| cut * 256 + usize::from(byte));
    let object = text.trim();
    if object.starts_with('{') && serde_json::from_str::<Map<String, Value>>(object).is_ok() {
        check_beginnings(object, cut);
    }
});
