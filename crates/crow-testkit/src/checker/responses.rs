//! Checks requests as OpenAI does for `responses`.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// The known fields of a request; any other is a violation.
const FIELDS: [&str; 26] = [
    "background",
    "conversation",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_p",
    "truncation",
];

/// The length of an item's id, a call id or a tool name.
const NAME_MAX: usize = 64;

/// Lists the violations in a body of `responses`.
pub fn responses_violations(request: &Value) -> Vec<String> {
    let mut checker =
        ResponsesChecker { is_stored: request["store"] != false, ..ResponsesChecker::default() };
    checker.check_fields(request);
    checker.check_tools(request);
    match request.get("input") {
        Some(Value::Array(items)) if !items.is_empty() => checker.check_items(items),
        Some(Value::String(text)) if !text.trim().is_empty() => {}
        _ => checker.add_violation("`input` is missing or empty"),
    }
    checker.violations
}

#[derive(Default)]
struct ResponsesChecker<'a> {
    is_stored: bool,
    index: Option<usize>,
    /// The ids of items so far.
    ids: BTreeSet<&'a str>,
    /// Calls so far, and whether they have an output.
    calls: Vec<(&'a str, bool)>,
    /// Reasoning that is not followed by an item yet.
    open_reasoning: Option<&'a str>,
    violations: Vec<String>,
}

impl<'a> ResponsesChecker<'a> {
    fn add_violation(&mut self, reason: impl AsRef<str>) {
        let reason = reason.as_ref();
        self.violations.push(match self.index {
            Some(index) => format!("input[{index}]: {reason}"),
            None => reason.to_owned(),
        });
    }

    fn check_fields(&mut self, request: &Value) {
        if request["model"].as_str().is_none_or(str::is_empty) {
            self.add_violation("`model` is missing");
        }
        for name in request.as_object().iter().flat_map(|fields| fields.keys()) {
            if !FIELDS.contains(&name.as_str()) {
                self.add_violation(format!("unknown parameter `{name}`"));
            }
        }
        if request["max_output_tokens"].as_u64().is_some_and(|tokens| tokens < 16) {
            self.add_violation("`max_output_tokens` is below 16");
        }
        if request["prompt_cache_key"].as_str().is_some_and(|key| key.len() > NAME_MAX) {
            self.add_violation("`prompt_cache_key` is too long");
        }
        let reasoning = &request["reasoning"];
        let is_one_of =
            |value: &Value, allowed: &[&str]| value.as_str().is_none_or(|word| allowed.contains(&word));
        if !is_one_of(&reasoning["effort"], &["none", "minimal", "low", "medium", "high", "xhigh"]) {
            self.add_violation("there is no such `reasoning.effort`");
        }
        if !is_one_of(&reasoning["summary"], &["auto", "concise", "detailed"]) {
            self.add_violation("there is no such `reasoning.summary`");
        }
    }

    fn check_tools(&mut self, request: &Value) {
        let mut names = BTreeSet::new();
        for tool in request["tools"].as_array().into_iter().flatten() {
            let name = tool["name"].as_str().unwrap_or_default();
            if tool["type"] != "function" || !is_tool_name(name) {
                self.add_violation("a tool is not a named function");
            }
            if !tool["parameters"].is_object() {
                self.add_violation(format!("the parameters of tool `{name}` are no object"));
            }
            if !names.insert(name) {
                self.add_violation(format!("tool `{name}` is there twice"));
            }
        }
    }

    fn check_items(&mut self, items: &'a [Value]) {
        for (index, item) in items.iter().enumerate() {
            self.index = Some(index);
            match item.as_object() {
                Some(fields) => self.check_item(fields),
                None => self.add_violation("is no object"),
            }
        }
        self.end_reasoning(false);
        let open_calls: Vec<_> =
            self.calls.iter().filter(|(_, has_output)| !has_output).map(|(id, _)| *id).collect();
        for id in open_calls {
            self.add_violation(format!("no output found for call `{id}`"));
        }
        let last = items.last();
        let is_answered =
            last.is_some_and(|item| item["role"] != "user" && item["type"] != "function_call_output");
        if is_answered {
            self.add_violation("the last item leaves nothing to answer");
        }
    }

    fn check_item(&mut self, item: &'a Map<String, Value>) {
        let field = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
        let kind = if item.contains_key("type") { field("type") } else { "message" };
        let prefix = match kind {
            "message" => "msg",
            "reasoning" => "rs",
            "function_call" => "fc",
            "function_call_output" => "fc",
            _ => return self.add_violation(format!("unknown type `{kind}`")),
        };
        if item.contains_key("id") {
            self.check_id(field("id"), prefix);
        }
        if kind != "reasoning" {
            self.end_reasoning(
                kind == "function_call" || (kind == "message" && field("role") == "assistant"),
            );
        }
        match kind {
            "message" => self.check_message(item),
            "reasoning" => self.check_reasoning(item),
            "function_call" => self.check_call(field("call_id"), field("name"), field("arguments")),
            _ => self.check_output(field("call_id"), item.get("output")),
        }
    }

    fn check_id(&mut self, id: &'a str, prefix: &str) {
        if !id.starts_with(prefix) {
            self.add_violation(format!("id `{id}` does not begin with `{prefix}`"));
        }
        if id.len() > NAME_MAX {
            self.add_violation(format!("id `{id}` is too long"));
        }
        if !self.ids.insert(id) {
            self.add_violation(format!("item `{id}` is there twice"));
        }
    }

    /// Checks the open reasoning when another item or the end follows.
    fn end_reasoning(&mut self, is_required_item: bool) {
        if let Some(id) = self.open_reasoning.take().filter(|_| !is_required_item) {
            self.add_violation(format!("reasoning `{id}` is without the item that has to follow it"));
        }
    }

    fn check_message(&mut self, item: &Map<String, Value>) {
        let role = item.get("role").and_then(Value::as_str).unwrap_or_default();
        let allowed: &[&str] = match role {
            "user" | "system" | "developer" => &["input_text", "input_image", "input_file"],
            "assistant" => &["output_text", "refusal"],
            _ => return self.add_violation(format!("unknown role `{role}`")),
        };
        self.check_content(item.get("content"), allowed);
    }

    fn check_content(&mut self, content: Option<&Value>, allowed: &[&str]) {
        match content {
            Some(Value::String(text)) if !text.trim().is_empty() => {}
            Some(Value::Array(parts)) if !parts.is_empty() => {
                for part in parts {
                    self.check_part(part, allowed);
                }
            }
            _ => self.add_violation("is empty"),
        }
    }

    fn check_part(&mut self, part: &Value, allowed: &[&str]) {
        let kind = part["type"].as_str().unwrap_or_default();
        if !allowed.contains(&kind) {
            return self.add_violation(format!("a part of type `{kind}` does not belong here"));
        }
        let field = match kind {
            "input_image" => "image_url",
            "input_file" => "file_data",
            "refusal" => "refusal",
            _ => "text",
        };
        if part[field].as_str().is_none_or(|text| text.trim().is_empty()) {
            self.add_violation(format!("a part of type `{kind}` is empty"));
        }
    }

    fn check_reasoning(&mut self, item: &'a Map<String, Value>) {
        let id = item.get("id").and_then(Value::as_str).unwrap_or_default();
        if id.is_empty() {
            self.add_violation("reasoning has no id");
        }
        if !item.get("summary").is_some_and(Value::is_array) {
            self.add_violation(format!("reasoning `{id}` has no `summary`"));
        }
        if item.get("content").and_then(Value::as_array).is_some_and(|parts| !parts.is_empty()) {
            self.add_violation(format!("reasoning `{id}` has `content`"));
        }
        let is_encrypted = item.get("encrypted_content").is_some_and(Value::is_string);
        if !is_encrypted && !self.is_stored {
            self.add_violation(format!("item `{id}` is not found: nothing is stored with `store: false`"));
        }
        self.open_reasoning = Some(id);
    }

    fn check_call(&mut self, call_id: &'a str, name: &str, arguments: &str) {
        if call_id.is_empty() || call_id.len() > NAME_MAX {
            self.add_violation(format!("call id `{call_id}` is empty or too long"));
        }
        if self.calls.iter().any(|(call, _)| *call == call_id) {
            self.add_violation(format!("call id `{call_id}` is there twice"));
        }
        if !is_tool_name(name) {
            self.add_violation(format!("call `{call_id}` has no name"));
        }
        if serde_json::from_str::<Map<String, Value>>(arguments).is_err() {
            self.add_violation(format!("the arguments of call `{call_id}` are no JSON object in a string"));
        }
        self.calls.push((call_id, false));
    }

    fn check_output(&mut self, call_id: &str, output: Option<&Value>) {
        self.check_content(output, &["input_text", "input_image", "input_file"]);
        match self.calls.iter_mut().find(|(call, _)| *call == call_id) {
            Some((_, has_output @ false)) => *has_output = true,
            Some(_) => self.add_violation(format!("a second output for `{call_id}`")),
            None => self.add_violation(format!("no call found for the output of `{call_id}`")),
        }
    }
}

fn is_tool_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !name.is_empty() && name.len() <= NAME_MAX && name.chars().all(is_plain)
}
