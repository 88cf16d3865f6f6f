//! The end of a task.

use serde_json::{Map, Value, json};

use super::message::INTERNAL_ERROR;

/// Characters of an error in a description.
const ERROR_CHARS: usize = 200;

/// The end of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct RelayOutcome {
    /// The response to the prompt: an object with `result` or `error`.
    pub response: Map<String, Value>,
    /// The end of the text since the last tool call.
    pub answer: String,
    /// Whether the parent was given every update.
    pub is_complete: bool,
}

impl RelayOutcome {
    /// Creates the outcome of a task that failed without its agent.
    pub fn failed(reason: &str) -> Self {
        Self { response: error_body(reason), answer: String::new(), is_complete: true }
    }

    /// Describes it in a few words.
    pub fn describe(&self) -> String {
        let stop_reason = self.response.get("result").and_then(|result| result.get("stopReason")?.as_str());
        let error = self.response.get("error").and_then(|error| error.get("message")?.as_str());
        match (stop_reason, error) {
            (Some("end_turn"), _) => "done".to_owned(),
            (Some(reason), _) => reason.replace('_', " "),
            (None, Some(error)) => {
                let line: String =
                    error.chars().take(ERROR_CHARS).filter(|char| !char.is_control()).collect();
                format!("failed: {line}")
            }
            (None, None) => "ended".to_owned(),
        }
    }
}

pub(super) fn error_body(reason: &str) -> Map<String, Value> {
    Map::from_iter([("error".to_owned(), json!({ "code": INTERNAL_ERROR, "message": reason }))])
}
