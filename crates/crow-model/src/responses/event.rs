//! An event of `responses` as servers really spell it, borrowed from its bytes.
//!
//! Reads leniently: a field of an odd type is no reason to lose a reply.

use std::borrow::Cow;

use crow_core::Usage;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::item::Kind;
use crate::halves::{escaped, make_whole, whole};

/// One event, or the whole of a reply that was not streamed.
#[derive(Debug, Deserialize)]
pub(super) struct Event<'a> {
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

/// A reply as it stands at the end of a stream, or alone.
#[derive(Debug, Deserialize)]
pub(super) struct Response<'a> {
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

/// Reads an item of a kind that matters.
pub(super) fn read_item(raw: Option<&RawValue>) -> Option<(Kind, Value)> {
    let mut item: Value = serde_json::from_str(raw?.get()).ok()?;
    make_item_whole(&mut item);
    Some((Kind::of(&item)?, item))
}

/// Makes the texts of an item whole. Its arguments are JSON themselves, and keep what was cut as escapes.
pub(super) fn make_item_whole(item: &mut Value) {
    let spelled = item.get_mut("arguments").map(|arguments| match arguments.take() {
        Value::String(text) => Value::String(escaped(&text).into_owned()),
        Value::Null => Value::Null,
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Value::String(escaped(&other.to_string()).into_owned())
        }
    });
    make_whole(item);
    if let Some(spelled) = spelled {
        item["arguments"] = spelled;
    }
}

/// Arguments are text by the book; some servers send the object itself, which [`read_item`] has spelled.
pub(super) fn arguments(item: &Value) -> &str {
    item["arguments"].as_str().unwrap_or_default()
}

/// Text as it is, and anything else in its spelling.
pub(super) fn json(raw: Option<&RawValue>) -> Cow<'_, str> {
    match raw.map(RawValue::get) {
        Some(text) if !text.starts_with('"') => escaped(text),
        Some(_) | None => Cow::Owned(escaped(&words(raw)).into_owned()),
    }
}

/// Text that is there as a whole.
pub(super) fn whole_words(raw: Option<&RawValue>) -> String {
    whole(&words(raw)).into_owned()
}

/// Text where there is text; anything else is silence.
pub(super) fn words(raw: Option<&RawValue>) -> Cow<'_, str> {
    #[derive(Deserialize)]
    struct Borrowed<'a>(#[serde(borrow)] Cow<'a, str>);
    let text = raw.and_then(|raw| serde_json::from_str(raw.get()).ok());
    text.map(|Borrowed(text)| text).unwrap_or_default()
}

/// Reads a number.
pub(super) fn index(raw: Option<&RawValue>) -> Option<usize> {
    raw.and_then(|raw| raw.get().parse().ok())
}

/// Reads a number; the first where there is none.
pub(super) fn number(raw: Option<&RawValue>) -> usize {
    index(raw).unwrap_or(0)
}

/// Why the reply is not complete.
pub(super) fn read_reason(raw: &RawValue) -> String {
    let details: Value = serde_json::from_str(raw.get()).unwrap_or_default();
    details["reason"].as_str().unwrap_or_default().to_owned()
}

/// Reads what the reply cost.
pub(super) fn read_usage(raw: &RawValue) -> Option<Usage> {
    let wire: Value = serde_json::from_str(raw.get()).ok()?;
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let details = &wire["input_tokens_details"];
    let usage = Usage {
        cached: number(&details["cached_tokens"]),
        cache_written: number(&details["cache_write_tokens"]),
        ..Usage::new(number(&wire["input_tokens"]), number(&wire["output_tokens"]))
    };
    // Some servers send zeros until they know.
    (usage.total() > 0).then_some(usage)
}

/// `{"object": "error", "message": …}` and its like, without an `error` around it.
pub(super) fn is_bare_error(data: &[u8]) -> bool {
    let Ok(value) = serde_json::from_slice::<Value>(data) else { return false };
    value["object"] == "error" || value["detail"].is_string()
}
