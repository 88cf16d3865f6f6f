//! Says in our words what the SDK refuses by itself: a kind to branch on, a sentence to act on, and nothing of
//! the request, which may hold anything.

use serde_json::{Value, json};

use crow_core::FailureKind;

/// Enough for the names of a method and a field; what is longer quotes a value.
const QUOTED_CHARS_MAX: usize = 200;

/// Only errors hold this, and answers that quote one.
const MARK: &str = r#""error":{"#;

/// Gives an error line without a kind of ours its kind and its sentence; every other line stays as it is.
pub(crate) fn with_failure_kind(line: String) -> String {
    if !line.contains(MARK) {
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
            (FailureKind::InvalidValue, "The line is no JSON. Send one JSON-RPC message a line.".into())
        }
        Some(-32600) => {
            let why = data.as_str().unwrap_or("send JSON-RPC 2.0 messages");
            (
                FailureKind::InvalidValue,
                format!("It is no request that can be answered here: {}.", shorten_text(why)),
            )
        }
        Some(-32601) => {
            let method = data.as_str().unwrap_or("of that name");
            let why =
                format!("There is no method {}. `initialize` tells what there is.", shorten_text(method));
            (FailureKind::InvalidValue, why)
        }
        Some(-32602) => {
            let why = data["error"].as_str().or_else(|| data.as_str()).unwrap_or("they have another shape");
            // The names of our types say nothing to anybody else.
            let why =
                if why.contains("untagged enum") { "a value has another type than is wanted" } else { why };
            let why = format!("The parameters do not fit the method: {}.", shorten_text(why));
            (FailureKind::InvalidValue, why)
        }
        _ => {
            let message = error["message"].as_str().unwrap_or("unknown");
            (
                FailureKind::Internal,
                format!("The request could not be answered: {message}. The log says more."),
            )
        }
    }
}

/// Bounds what the SDK says: it may quote the request.
fn shorten_text(text: &str) -> String {
    text.chars().take(QUOTED_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests;
