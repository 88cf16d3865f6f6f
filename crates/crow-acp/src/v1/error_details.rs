//! Rewords the SDK's own errors: a kind to branch on, a message to act on, and nothing of the request, which may
//! contain anything.

use serde_json::{Value, json};

use crow_core::FailureKind;

/// Enough for the names of a method and a field; longer text quotes a value.
const QUOTED_CHARS_MAX: usize = 200;

/// Only errors contain this, and answers that quote one.
const ERROR_KEY: &str = r#""error":{"#;

/// Adds a kind and a message to an error line without a kind of ours; every other line is unchanged.
pub(crate) fn with_failure_kind(line: String) -> String {
    if !line.contains(ERROR_KEY) {
        return line;
    }
    let Ok(mut message) = serde_json::from_str::<Value>(&line) else { return line };
    let Some(error) = message.get_mut("error") else { return line };
    if error.pointer("/data/kind").is_some() {
        return line;
    }
    let (kind, details) = describe_error(error);
    error["data"] = json!({ "kind": kind.as_str(), "details": details });
    message.to_string()
}

fn describe_error(error: &Value) -> (FailureKind, String) {
    let data = &error["data"];
    match error["code"].as_i64() {
        Some(-32700) => {
            (FailureKind::InvalidValue, "the line is not JSON; send one JSON-RPC message per line".into())
        }
        Some(-32600) => {
            let reason = data.as_str().unwrap_or("send JSON-RPC 2.0 messages");
            (FailureKind::InvalidValue, format!("the request cannot be answered: {}", shorten_text(reason)))
        }
        Some(-32601) => {
            let method = data.as_str().unwrap_or("of that name");
            let reason = format!(
                "there is no method {}; the response to `initialize` lists the capabilities",
                shorten_text(method)
            );
            (FailureKind::InvalidValue, reason)
        }
        Some(-32602) => {
            let reason =
                data["error"].as_str().or_else(|| data.as_str()).unwrap_or("they have a different structure");
            // The names of our types mean nothing to others.
            let reason = if reason.contains("untagged enum") { "a value has the wrong type" } else { reason };
            let reason = format!("the parameters do not fit the method: {}", shorten_text(reason));
            (FailureKind::InvalidValue, reason)
        }
        _ => {
            let message = error["message"].as_str().unwrap_or("unknown");
            (FailureKind::Internal, format!("the request could not be answered: {message}; see the log"))
        }
    }
}

/// Truncates the SDK's text, which may quote the request.
fn shorten_text(text: &str) -> String {
    text.chars().take(QUOTED_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests;
