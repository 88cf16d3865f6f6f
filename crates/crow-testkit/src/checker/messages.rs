//! Checks requests as the provider of the Messages API does.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// The number of cache markers in one request.
const CACHE_MARKERS_MAX: usize = 4;

/// The smallest thinking budget.
const BUDGET_MIN: u64 = 1024;

/// The length of a tool name.
const NAME_LEN_MAX: usize = 128;

const MIMES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The prefix of every signature.
const SIGNATURE_PREFIX: &str = "scripted-";

/// Lists the violations in a body of `messages`.
pub fn messages_violations(request: &Value) -> Vec<String> {
    let mut checker = MessagesChecker::default();
    checker.check_fields(request);
    checker.check_tools(request);
    checker.check_system(request);
    match request["messages"].as_array() {
        Some(messages) if !messages.is_empty() => checker.check_messages(messages, &request["thinking"]),
        _ => checker.add_violation("`messages` is missing or empty"),
    }
    if checker.n_cache_markers > CACHE_MARKERS_MAX {
        checker.index = None;
        checker.add_violation(format!(
            "{} blocks have `cache_control`, and {CACHE_MARKERS_MAX} may",
            checker.n_cache_markers
        ));
    }
    checker.violations
}

/// Signs reasoning so that a changed block is detected when it is sent back.
pub(crate) fn sign_thinking(thinking: &str) -> String {
    let hash = thinking.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{SIGNATURE_PREFIX}{hash:016x}")
}

#[derive(Default)]
struct MessagesChecker {
    has_tools: bool,
    index: Option<usize>,
    n_cache_markers: usize,
    /// The ids of calls so far.
    ids: BTreeSet<String>,
    /// Calls of the last assistant message without a result.
    open_calls: Vec<String>,
    violations: Vec<String>,
}

impl MessagesChecker {
    fn add_violation(&mut self, reason: impl AsRef<str>) {
        let reason = reason.as_ref();
        self.violations.push(match self.index {
            Some(index) => format!("messages[{index}]: {reason}"),
            None => reason.to_owned(),
        });
    }

    fn check_fields(&mut self, request: &Value) {
        if request["model"].as_str().is_none_or(str::is_empty) {
            self.add_violation("`model` is missing");
        }
        let max_tokens = request["max_tokens"].as_u64().unwrap_or(0);
        if max_tokens == 0 {
            self.add_violation("`max_tokens` is missing");
        }
        for unsupported in ["stream_options", "parallel_tool_calls", "reasoning_effort"] {
            if request.get(unsupported).is_some() {
                self.add_violation(format!("`{unsupported}` is not permitted"));
            }
        }
        let thinking = &request["thinking"];
        let kind = thinking["type"].as_str().unwrap_or_default();
        let budget = thinking["budget_tokens"].as_u64();
        match (kind, budget) {
            ("enabled", Some(budget)) if budget < BUDGET_MIN => {
                self.add_violation("`budget_tokens` is too small");
            }
            ("enabled", Some(budget)) if budget >= max_tokens => {
                self.add_violation("`budget_tokens` is not below `max_tokens`");
            }
            ("enabled", None) => self.add_violation("`budget_tokens` is missing"),
            ("adaptive" | "disabled", Some(_)) => self.add_violation("`budget_tokens` is not permitted"),
            ("enabled" | "adaptive" | "disabled", _) => {}
            _ if thinking.is_null() => {}
            _ => self.add_violation("unknown `thinking`"),
        }
        if matches!(kind, "enabled" | "adaptive") && request["temperature"].as_f64().is_some_and(|n| n < 1.0)
        {
            self.add_violation("`temperature` may only be 1 when thinking");
        }
    }

    fn check_tools(&mut self, request: &Value) {
        let Some(tools) = request.get("tools") else { return };
        self.has_tools = true;
        let mut names = BTreeSet::new();
        for tool in tools.as_array().into_iter().flatten() {
            let name = tool["name"].as_str().unwrap_or_default();
            if !is_name(name, NAME_LEN_MAX) {
                self.add_violation(format!("`{name}` is no name for a tool"));
            }
            if !names.insert(name.to_owned()) {
                self.add_violation(format!("tool `{name}` is there twice"));
            }
            let schema = &tool["input_schema"];
            if schema["type"] != "object" {
                self.add_violation(format!("the schema of tool `{name}` is no object"));
            }
            if ["oneOf", "anyOf", "allOf"].iter().any(|word| schema.get(word).is_some()) {
                self.add_violation(format!("the schema of tool `{name}` has alternatives at its top"));
            }
            self.count_cache_marker(tool);
        }
    }

    fn check_system(&mut self, request: &Value) {
        match &request["system"] {
            Value::Null | Value::String(_) => {}
            Value::Array(blocks) => {
                for block in blocks {
                    self.check_text(block);
                    self.count_cache_marker(block);
                }
            }
            Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
                self.add_violation("`system` is neither text nor blocks");
            }
        }
    }

    fn check_messages(&mut self, messages: &[Value], thinking: &Value) {
        let mut previous_role = "assistant";
        for (index, message) in messages.iter().enumerate() {
            self.index = Some(index);
            let role = message["role"].as_str().unwrap_or_default();
            if role == previous_role {
                self.add_violation(format!("`{role}` speaks out of turn"));
            }
            previous_role = role;
            let blocks = message_blocks(message);
            if blocks.is_empty() {
                self.add_violation("is empty");
                continue;
            }
            match role {
                "user" => self.check_user(&blocks),
                "assistant" => self.check_assistant(&blocks),
                _ => self.add_violation(format!("unknown role `{role}`")),
            }
        }
        self.reject_open_calls();
        if previous_role != "user" {
            self.add_violation("the last message leaves nothing to answer");
        }
        self.check_turn(messages, thinking["type"].as_str().unwrap_or_default());
    }

    fn check_user(&mut self, blocks: &[Value]) {
        let mut has_other_block = false;
        for block in blocks {
            self.count_cache_marker(block);
            match block["type"].as_str().unwrap_or_default() {
                "text" => self.check_text(block),
                "image" => self.check_image(block),
                "tool_result" if has_other_block => {
                    self.add_violation("a result stands behind something else");
                }
                "tool_result" => self.check_result(block),
                kind => self.add_violation(format!("a person says no `{kind}`")),
            }
            has_other_block = block["type"] != "tool_result";
        }
        self.reject_open_calls();
    }

    fn check_assistant(&mut self, blocks: &[Value]) {
        for block in blocks {
            match block["type"].as_str().unwrap_or_default() {
                "text" => self.check_text(block),
                "tool_use" => self.check_call(block),
                "thinking" => self.check_thinking(block),
                "redacted_thinking" if block["data"].is_string() => {}
                kind => self.add_violation(format!("a model says no `{kind}`")),
            }
            match block["type"].as_str() {
                Some("thinking" | "redacted_thinking") if block.get("cache_control").is_some() => {
                    self.add_violation("reasoning has no `cache_control`");
                }
                _ => self.count_cache_marker(block),
            }
        }
        if blocks.last().is_some_and(is_thinking) {
            self.add_violation("the last block is reasoning");
        }
    }

    fn check_text(&mut self, block: &Value) {
        if block["type"] != "text" || block["text"].as_str().is_none_or(|text| text.trim().is_empty()) {
            self.add_violation("a text is empty");
        }
    }

    fn check_image(&mut self, block: &Value) {
        let source = &block["source"];
        let is_known = source["media_type"].as_str().is_some_and(|mime| MIMES.contains(&mime));
        if source["type"] != "base64" || !is_known || source["data"].as_str().is_none_or(str::is_empty) {
            self.add_violation("an image is none that can be read");
        }
    }

    fn check_call(&mut self, block: &Value) {
        let id = block["id"].as_str().unwrap_or_default().to_owned();
        if !is_name(&id, usize::MAX) {
            self.add_violation(format!("`{id}` is no id of a call"));
        }
        if !self.ids.insert(id.clone()) {
            self.add_violation(format!("call id `{id}` is there twice"));
        }
        if !is_name(block["name"].as_str().unwrap_or_default(), NAME_LEN_MAX) {
            self.add_violation(format!("call `{id}` has no name that can be"));
        }
        if !block["input"].is_object() {
            self.add_violation(format!("the input of call `{id}` is no object"));
        }
        if !self.has_tools {
            self.add_violation("calls tools, and the request has no `tools`");
        }
        self.open_calls.push(id);
    }

    fn check_result(&mut self, block: &Value) {
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        match self.open_calls.iter().position(|open_id| open_id == id) {
            Some(index) => drop(self.open_calls.remove(index)),
            None if self.ids.contains(id) => {
                self.add_violation(format!("a second result for `{id}`, or a late one"));
            }
            None => self.add_violation(format!("a result for `{id}`, which is no call")),
        }
        for part in block["content"].as_array().into_iter().flatten() {
            match part["type"].as_str() {
                Some("text") => self.check_text(part),
                Some("image") if block["is_error"] == true => self.add_violation("a failure has an image"),
                Some("image") => self.check_image(part),
                _ => self.add_violation("a result is neither text nor image"),
            }
        }
    }

    fn check_thinking(&mut self, block: &Value) {
        let signature = block["signature"].as_str().unwrap_or_default();
        let Some(thinking) = block["thinking"].as_str() else {
            return self.add_violation("reasoning has no `thinking`");
        };
        if signature.is_empty() {
            self.add_violation("reasoning is not signed");
        } else if signature.starts_with(SIGNATURE_PREFIX) && signature != sign_thinking(thinking) {
            self.add_violation("reasoning was changed");
        }
        if block.as_object().is_some_and(|fields: &Map<_, _>| fields.len() != 3) {
            self.add_violation("reasoning has fields of its own");
        }
    }

    /// Checks that the current turn begins with reasoning if it is enabled, and has none if it is disabled.
    fn check_turn(&mut self, messages: &[Value], thinking: &str) {
        let is_user_content = |block: &Value| block["type"] != "tool_result";
        let is_user_turn = |message: &Value| {
            message["role"] == "user"
                && message["content"].as_array().is_some_and(|blocks| blocks.iter().any(is_user_content))
        };
        let Some(turn_start) = messages.iter().rposition(is_user_turn) else { return };
        for (index, message) in messages.iter().enumerate().skip(turn_start + 1) {
            self.index = Some(index);
            let blocks = message_blocks(message);
            if thinking == "enabled" && index == turn_start + 1 && !blocks.first().is_some_and(is_thinking) {
                self.add_violation("the turn does not begin with reasoning");
            }
            if thinking == "disabled" && blocks.iter().any(is_thinking) {
                self.add_violation("has reasoning, and thinking is disabled");
            }
        }
    }

    fn reject_open_calls(&mut self) {
        for id in std::mem::take(&mut self.open_calls) {
            self.add_violation(format!("call `{id}` has no result"));
        }
    }

    fn count_cache_marker(&mut self, block: &Value) {
        match block.get("cache_control") {
            None => {}
            Some(cache_control) if cache_control["type"] == "ephemeral" => self.n_cache_markers += 1,
            Some(_) => self.add_violation("unknown `cache_control`"),
        }
    }
}

/// Returns the blocks of a message; a string is one text block.
fn message_blocks(message: &Value) -> Cow<'_, [Value]> {
    match &message["content"] {
        Value::String(text) => Cow::Owned(vec![json!({"type": "text", "text": text})]),
        Value::Array(blocks) => Cow::Borrowed(blocks),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Cow::Borrowed(&[]),
    }
}

fn is_thinking(block: &Value) -> bool {
    matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"))
}

fn is_name(name: &str, len_max: usize) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=len_max).contains(&name.len()) && name.bytes().all(is_plain)
}
