//! Checks requests as strict providers do, so that every test checks its history.

pub(crate) mod messages;
pub(crate) mod responses;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

/// Lists the violations in a body of `chat/completions`.
pub fn violations(request: &Value) -> Vec<String> {
    let mut checker = ChatChecker::default();
    match request.get("model") {
        Some(Value::String(model)) if !model.is_empty() => {}
        _ => checker.add_violation("`model` is missing"),
    }
    checker.has_tools = request.get("tools").is_some();
    checker.check_tools(request);
    match request.get("messages").and_then(Value::as_array) {
        Some(messages) if !messages.is_empty() => checker.check_messages(messages),
        _ => checker.add_violation("`messages` is missing or empty"),
    }
    checker.violations
}

#[derive(Default)]
struct ChatChecker {
    has_tools: bool,
    index: Option<usize>,
    /// Calls of the last assistant message without a result, in order.
    open_calls: Vec<String>,
    /// Calls of the last assistant message with a result.
    answered_calls: Vec<String>,
    violations: Vec<String>,
}

impl ChatChecker {
    fn add_violation(&mut self, reason: impl AsRef<str>) {
        let reason = reason.as_ref();
        self.violations.push(match self.index {
            Some(index) => format!("messages[{index}]: {reason}"),
            None => reason.to_owned(),
        });
    }

    fn check_tools(&mut self, request: &Value) {
        let Some(tools) = request.get("tools") else {
            if request.get("parallel_tool_calls").is_some() || request.get("tool_choice").is_some() {
                self.add_violation("`parallel_tool_calls` and `tool_choice` need `tools`");
            }
            return;
        };
        let Some(tools) = tools.as_array().filter(|tools| !tools.is_empty()) else {
            return self.add_violation("`tools` is empty");
        };
        let mut names = Vec::new();
        for tool in tools {
            let function = &tool["function"];
            let name = function["name"].as_str().unwrap_or_default();
            if tool["type"] != "function" || name.is_empty() {
                self.add_violation("a tool is not a named function");
            }
            if !function["parameters"].is_object() {
                self.add_violation(format!("the parameters of tool `{name}` are no object"));
            }
            if names.contains(&name) {
                self.add_violation(format!("tool `{name}` is there twice"));
            }
            names.push(name);
        }
    }

    fn check_messages(&mut self, messages: &[Value]) {
        for (index, message) in messages.iter().enumerate() {
            self.index = Some(index);
            match message.as_object() {
                Some(fields) => self.check_message(fields, index == 0),
                None => self.add_violation("is no object"),
            }
        }
        self.reject_open_calls();
        let last = messages.last().and_then(|message| message["role"].as_str());
        if !matches!(last, Some("user" | "tool")) {
            self.add_violation("the last message leaves nothing to answer");
        }
    }

    fn check_message(&mut self, message: &Map<String, Value>, is_first: bool) {
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        if is_first && !matches!(role, "system" | "developer" | "user") {
            self.add_violation("the first message is neither system nor user");
        }
        if !is_first && matches!(role, "system" | "developer") {
            self.add_violation("a system message stands only at the beginning");
        }
        if role != "tool" {
            self.reject_open_calls();
            self.answered_calls.clear();
        }
        match role {
            "system" | "developer" | "user" if !has_content(message.get("content")) => {
                self.add_violation("is empty");
            }
            "system" | "developer" | "user" => {}
            "assistant" => self.check_assistant(message),
            "tool" => self.check_result(message),
            _ => self.add_violation(format!("unknown role `{role}`")),
        }
    }

    fn check_assistant(&mut self, message: &Map<String, Value>) {
        let calls = match message.get("tool_calls") {
            None => &[][..],
            Some(calls) => match calls.as_array().filter(|calls| !calls.is_empty()) {
                Some(calls) => calls,
                None => return self.add_violation("`tool_calls` is empty"),
            },
        };
        if calls.is_empty() && !has_content(message.get("content")) {
            self.add_violation("is empty");
        }
        if !calls.is_empty() && !self.has_tools {
            self.add_violation("calls tools, and the request has no `tools`");
        }
        for call in calls {
            self.check_call(call);
        }
    }

    fn check_call(&mut self, call: &Value) {
        let id = call["id"].as_str().unwrap_or_default().to_owned();
        if id.is_empty() {
            self.add_violation("a call has no id");
        }
        if self.open_calls.contains(&id) {
            self.add_violation(format!("call id `{id}` is there twice"));
        }
        if call["type"] != "function" {
            self.add_violation(format!("call `{id}` is not of type function"));
        }
        if call["function"]["name"].as_str().is_none_or(str::is_empty) {
            self.add_violation(format!("call `{id}` has no name"));
        }
        let arguments = call["function"]["arguments"].as_str().map(serde_json::from_str::<Map<_, _>>);
        if !matches!(arguments, Some(Ok(_))) {
            self.add_violation(format!("the arguments of call `{id}` are no JSON object in a string"));
        }
        self.open_calls.push(id);
    }

    fn check_result(&mut self, message: &Map<String, Value>) {
        let id = message.get("tool_call_id").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !has_content(message.get("content")) {
            self.add_violation("is empty");
        }
        match self.open_calls.iter().position(|open_id| *open_id == id) {
            Some(index) => {
                if index != 0 {
                    self.add_violation(format!("the result of `{id}` is out of place"));
                }
                self.open_calls.remove(index);
                self.answered_calls.push(id);
            }
            None if self.answered_calls.contains(&id) => {
                self.add_violation(format!("a second result for `{id}`"));
            }
            None => self.add_violation(format!("a result for `{id}`, which is not open")),
        }
    }

    fn reject_open_calls(&mut self) {
        for id in std::mem::take(&mut self.open_calls) {
            self.add_violation(format!("call `{id}` has no result before this"));
        }
    }
}

fn has_content(content: Option<&Value>) -> bool {
    match content {
        Some(Value::String(text)) => !text.trim().is_empty(),
        Some(Value::Array(parts)) => !parts.is_empty() && parts.iter().all(is_part),
        _ => false,
    }
}

fn is_part(part: &Value) -> bool {
    match part["type"].as_str() {
        Some("text") => part["text"].as_str().is_some_and(|text| !text.trim().is_empty()),
        Some("image_url") => part["image_url"]["url"].as_str().is_some_and(|url| !url.is_empty()),
        _ => false,
    }
}
