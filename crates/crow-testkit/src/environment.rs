//! Hides what differs between machines and days in the requests of sessions.

use serde_json::Value;

const START: &str = "<resource uri=\"crow:environment\">\nWorking directory: ";
const END: &str = "\n</resource>";

/// Removes the environment that the first prompt of a session tells from a request; later changes stay.
pub(crate) fn hide_environment(request: &mut Value) {
    match request {
        Value::String(text) => {
            if let Some(rest) = without_environment(text) {
                *text = rest;
            }
        }
        Value::Array(items) => {
            items.retain(|item| {
                let text = item["text"].as_str().and_then(without_environment);
                text.is_none_or(|rest| !rest.is_empty())
            });
            items.iter_mut().for_each(hide_environment);
        }
        Value::Object(fields) => fields.values_mut().for_each(hide_environment),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns a text without the environment in it; `None` if there is none.
fn without_environment(text: &str) -> Option<String> {
    let (before, rest) = text.split_once(START)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{}", after.strip_prefix('\n').unwrap_or(after)))
}
