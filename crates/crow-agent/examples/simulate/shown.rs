//! The content of a session that a client was shown, which a loaded session must still have.

use std::collections::BTreeMap;

use serde_json::Value;

/// The prefixes of messages that answer a command and are not stored.
const UNSTORED_PREFIXES: [&str; 2] = ["note-", "refused-"];

/// The result in the place of one that was never shown, because the store failed.
const UNSTORED_RESULT: &str = "its result could not be stored";

/// Content that must never be lost.
#[derive(Debug, Clone, Default)]
pub(crate) struct ShownContent {
    /// Text by kind and message.
    texts: BTreeMap<String, String>,
    calls: BTreeMap<String, ShownCall>,
}

#[derive(Debug, Clone, Default)]
struct ShownCall {
    status: String,
    /// The content with a final status.
    content: Value,
}

impl ShownCall {
    fn has_ended(&self) -> bool {
        matches!(self.status.as_str(), "completed" | "failed")
    }

    fn has_content_of(&self, shown: &Self) -> bool {
        let text = shown.content[0]["content"]["text"].as_str().unwrap_or_default();
        self.content == shown.content || text.starts_with(UNSTORED_RESULT)
    }
}

impl ShownContent {
    pub(crate) fn add_update(&mut self, update: &Value) {
        let text = |field: &str| update[field].as_str().unwrap_or_default().to_owned();
        let kind = text("sessionUpdate");
        match kind.as_str() {
            "agent_message_chunk" | "agent_thought_chunk" => {
                let message = text("messageId");
                if message.is_empty() || UNSTORED_PREFIXES.iter().any(|prefix| message.starts_with(prefix)) {
                    return;
                }
                let chunk = update["content"]["text"].as_str().unwrap_or_default();
                self.texts.entry(format!("{kind} {message}")).or_default().push_str(chunk);
            }
            "tool_call" | "tool_call_update" => {
                let call = self.calls.entry(text("toolCallId")).or_default();
                if let Some(status) = update["status"].as_str() {
                    status.clone_into(&mut call.status);
                }
                if !update["content"].is_null() {
                    call.content = update["content"].clone();
                }
            }
            _ => {}
        }
    }

    /// Lists what a loaded session lacks.
    pub(crate) fn missing_in(&self, loaded: &Self) -> Vec<String> {
        let mut missing = Vec::new();
        for (message, text) in &self.texts {
            let loaded_text = loaded.texts.get(message).map(String::as_str).unwrap_or_default();
            if !loaded_text.starts_with(text.as_str()) {
                missing.push(format!("{message}: {text:?} was shown, {loaded_text:?} is loaded"));
            }
        }
        for (id, call) in self.calls.iter().filter(|(_, call)| call.has_ended()) {
            match loaded.calls.get(id) {
                Some(loaded) if loaded.status == call.status && loaded.has_content_of(call) => {}
                loaded => missing.push(format!("{id}: {call:?} was shown, {loaded:?} is loaded")),
            }
        }
        missing
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.calls.is_empty()
    }

    /// Lists the calls without an end.
    pub(crate) fn open_calls(&self) -> Vec<&str> {
        self.calls.iter().filter(|(_, call)| !call.has_ended()).map(|(id, _)| id.as_str()).collect()
    }
}
