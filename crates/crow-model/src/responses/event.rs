//! An event of `responses` as servers really send it, borrowed from its bytes.
//!
//! Parses leniently: a field of an unexpected type is no reason to lose a reply.

use std::borrow::Cow;

use crow_core::TokenUsage;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::item::OutputItemKind;
use crate::surrogates::{escape_marks, resolve_marks, resolve_value_marks};

/// One event, or a whole reply that was not streamed.
#[derive(Debug, Deserialize)]
pub(super) struct ResponsesEvent<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) output_index: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) item_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) content_index: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) summary_index: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) delta: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) refusal: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

/// A reply at the end of a stream, or alone.
#[derive(Debug, Deserialize)]
pub(super) struct ResponseObject<'a> {
    #[serde(borrow, default)]
    pub(super) status: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) incomplete_details: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
}

/// Parses an item of a known kind.
pub(super) fn parse_item(raw: Option<&RawValue>) -> Option<(OutputItemKind, Value)> {
    let mut item: Value = serde_json::from_str(raw?.get()).ok()?;
    resolve_item_marks(&mut item);
    Some((OutputItemKind::from_item(&item)?, item))
}

/// Resolves the marks in an item. Its arguments are JSON themselves, and keep lone halves as escapes.
pub(super) fn resolve_item_marks(item: &mut Value) {
    let arguments = item.get_mut("arguments").map(|arguments| match arguments.take() {
        Value::String(text) => Value::String(escape_marks(&text).into_owned()),
        Value::Null => Value::Null,
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Value::String(escape_marks(&other.to_string()).into_owned())
        }
    });
    resolve_value_marks(item);
    if let Some(arguments) = arguments {
        item["arguments"] = arguments;
    }
}

/// Arguments should be a string; some servers send the object itself, which [`parse_item`] has encoded.
pub(super) fn item_arguments(item: &Value) -> &str {
    item["arguments"].as_str().unwrap_or_default()
}

/// A string as it is, and anything else as JSON.
pub(super) fn json_text(raw: Option<&RawValue>) -> Cow<'_, str> {
    match raw.map(RawValue::get) {
        Some(text) if !text.starts_with('"') => escape_marks(text),
        Some(_) | None => Cow::Owned(escape_marks(&string_value(raw)).into_owned()),
    }
}

/// A complete text.
pub(super) fn complete_text(raw: Option<&RawValue>) -> String {
    resolve_marks(&string_value(raw)).into_owned()
}

/// A string; anything else is empty.
pub(super) fn string_value(raw: Option<&RawValue>) -> Cow<'_, str> {
    #[derive(Deserialize)]
    struct BorrowedStr<'a>(#[serde(borrow)] Cow<'a, str>);
    let text = raw.and_then(|raw| serde_json::from_str(raw.get()).ok());
    text.map(|BorrowedStr(text)| text).unwrap_or_default()
}

/// Parses a number.
pub(super) fn parse_index(raw: Option<&RawValue>) -> Option<usize> {
    raw.and_then(|raw| raw.get().parse().ok())
}

/// Parses a number; 0 if there is none.
pub(super) fn index_or_zero(raw: Option<&RawValue>) -> usize {
    parse_index(raw).unwrap_or(0)
}

/// The reason why the reply is incomplete.
pub(super) fn read_reason(raw: &RawValue) -> String {
    let details: Value = serde_json::from_str(raw.get()).unwrap_or_default();
    details["reason"].as_str().unwrap_or_default().to_owned()
}

/// Parses the usage.
pub(super) fn read_usage(raw: &RawValue) -> Option<TokenUsage> {
    let wire: Value = serde_json::from_str(raw.get()).ok()?;
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let details = &wire["input_tokens_details"];
    let usage = TokenUsage {
        cached: number(&details["cached_tokens"]),
        cache_written: number(&details["cache_write_tokens"]),
        ..TokenUsage::new(number(&wire["input_tokens"]), number(&wire["output_tokens"]))
    };
    // Some servers send zeros until they know.
    (usage.total_tokens() > 0).then_some(usage)
}

/// Whether it is `{"object": "error", "message": …}` or similar, without an `error` around it.
pub(super) fn is_bare_error(data: &[u8]) -> bool {
    let Ok(value) = serde_json::from_slice::<Value>(data) else { return false };
    value["object"] == "error" || value["detail"].is_string()
}
