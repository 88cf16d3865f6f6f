//! The JSON encoding of OTLP: hexadecimal IDs, enums as numbers, 64-bit integers as strings. Pure.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::span::{AttributeValue, FinishedSpan};

/// The status of a span with an `error.type`.
const STATUS_ERROR: u8 = 2;
const STATUS_UNSET: u8 = 0;

/// Encodes a request to export spans.
pub(crate) fn encode_request(resource: &[(String, String)], version: &str, spans: &[FinishedSpan]) -> String {
    let resource: Vec<Value> =
        resource.iter().map(|(name, value)| json!({"key": name, "value": {"stringValue": value}})).collect();
    let spans: Vec<Value> = spans.iter().map(encode_span).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": resource},
        "scopeSpans": [{"scope": {"name": "crow-cli", "version": version}, "spans": spans}],
    }]})
    .to_string()
}

fn encode_span(span: &FinishedSpan) -> Value {
    let attributes: Vec<Value> = span
        .attributes
        .iter()
        .map(|(name, value)| json!({"key": name, "value": encode_value(value)}))
        .collect();
    let has_failed = span.attributes.iter().any(|(name, _)| *name == "error.type");
    let mut encoded = json!({
        "traceId": encode_hex(&span.ids.trace),
        "spanId": encode_hex(&span.ids.span),
        "name": span.name,
        "kind": span.kind as u8,
        "startTimeUnixNano": span.start_ns.to_string(),
        "endTimeUnixNano": span.end_ns.to_string(),
        "attributes": attributes,
        "status": {"code": if has_failed { STATUS_ERROR } else { STATUS_UNSET }},
    });
    if let Some(parent) = &span.parent {
        encoded["parentSpanId"] = Value::String(encode_hex(parent));
    }
    encoded
}

fn encode_value(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::Text(text) => json!({"stringValue": text}),
        AttributeValue::TextList(text) => json!({"arrayValue": {"values": [{"stringValue": text}]}}),
        AttributeValue::Integer(integer) => json!({"intValue": integer.to_string()}),
        AttributeValue::Number(number) => json!({"doubleValue": number}),
        AttributeValue::Flag(flag) => json!({"boolValue": flag}),
    }
}

fn encode_hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Returns the warning of a collector that rejected some spans.
pub(crate) fn partial_success(body: &[u8]) -> Option<String> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    let partial = answer.get("partialSuccess")?;
    let rejected = &partial["rejectedSpans"];
    let rejected = rejected.as_u64().or_else(|| rejected.as_str()?.parse().ok())?;
    (rejected > 0).then(|| format!("it rejected {rejected} spans"))
}
