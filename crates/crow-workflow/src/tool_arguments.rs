//! The arguments of the workflow's tools, and how their calls are shown.

use crow_core::{ToolAccess, ToolCallInfo, ToolKind, escape_hidden_start};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A title is one line in a list.
const TITLE_CHARS_MAX: usize = 120;

/// Returns the info of a call that changes nothing outside the step.
pub(crate) fn call_info(title: &str) -> ToolCallInfo {
    ToolCallInfo {
        title: escape_hidden_start(&single_line(title), TITLE_CHARS_MAX),
        kind: ToolKind::Think,
        locations: Vec::new(),
        access: ToolAccess::Nothing,
    }
}

/// Makes one line from any text.
pub(crate) fn single_line(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Parses arguments into a tool's own type.
pub(crate) fn parse_arguments<T: DeserializeOwned>(arguments: &Map<String, Value>) -> Result<T, String> {
    serde_json::from_value(Value::Object(arguments.clone()))
        .map_err(|error| format!("the arguments do not fit: {error}"))
}
