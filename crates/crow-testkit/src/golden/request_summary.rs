//! Summaries of the model's last request, one line for each message or item, in any API.

use serde_json::Value;

use crate::client::task_names;

/// The number of characters of a message in a transcript.
const SHOWN_CHARS: usize = 120;

/// Renders one message of a request.
pub(super) fn summarize_message(message: &Value, home: &str) -> String {
    if message["type"].is_string() {
        return summarize_item(message, home);
    }
    let mut line = format!("{}:", message["role"].as_str().unwrap_or_default());
    match &message["content"] {
        Value::String(text) => line += &format!(" {}", quote_text(text, home)),
        Value::Array(blocks) => {
            blocks.iter().for_each(|block| line += &format!(" {}", summarize_block(block, home)));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
    }
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let function = &call["function"];
        line += &format!(" {}({})", function["name"].as_str().unwrap_or_default(), function["arguments"]);
    }
    task_names::mask_task_names(&line)
}

/// A block of `messages`, or a part of `chat/completions`.
fn summarize_block(block: &Value, home: &str) -> String {
    let text = |field: &str| quote_text(block[field].as_str().unwrap_or_default(), home);
    match block["type"].as_str().unwrap_or_default() {
        "text" => text("text"),
        "thinking" => format!("thinking {}", text("thinking")),
        "tool_use" => format!("{}({})", block["name"].as_str().unwrap_or_default(), block["input"]),
        "tool_result" => {
            let kind = if block["is_error"] == true { "failure" } else { "result" };
            let parts = block["content"].as_array().into_iter().flatten();
            let parts: Vec<String> = parts.map(|part| summarize_block(part, home)).collect();
            format!("{kind} {}", parts.join(" "))
        }
        kind => kind.to_owned(),
    }
}

fn quote_text(text: &str, home: &str) -> String {
    let text = task_names::mask_task_names(&text.replace(home, "$HOME"));
    format!("{:?}", text.chars().take(SHOWN_CHARS).collect::<String>())
}

/// Renders an item of `responses`: its type and content.
fn summarize_item(item: &Value, home: &str) -> String {
    let field = |name: &str| item[name].as_str().unwrap_or_default();
    let line = match field("type") {
        "message" => {
            let parts = item["content"].as_array().into_iter().flatten();
            let texts: Vec<&str> = parts.filter_map(|part| part["text"].as_str()).collect();
            let author = format!("{} {}", field("role"), field("id"));
            format!("{} {:?}", author.trim_end(), texts.concat())
        }
        "function_call" => {
            format!("call {} {} {}({})", field("id"), field("call_id"), field("name"), item["arguments"])
        }
        "function_call_output" => format!("output {} {}", field("call_id"), item["output"]),
        kind => format!("{kind} {} {:?}", field("id"), field("encrypted_content")),
    };
    let line = line.replace(home, "$HOME").chars().take(SHOWN_CHARS).collect::<String>();
    task_names::mask_task_names(&line)
}
