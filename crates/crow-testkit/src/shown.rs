//! The content of a session that a client was shown, which a loaded session must still have.

use std::collections::BTreeMap;

use serde_json::Value;

/// The prefixes of messages that answer a command and are not stored.
const UNSTORED_PREFIXES: [&str; 2] = ["note-", "refused-"];

/// The result in the place of one that was never shown, because the store failed.
const UNSTORED_RESULT: &str = "its result could not be stored";

/// Content that must never be lost.
#[derive(Debug, Clone, Default)]
pub struct ShownContent {
    /// Text by kind and message.
    texts: BTreeMap<String, String>,
    calls: BTreeMap<String, ShownCall>,
    /// The keys of both in the order in which they were first shown.
    order: Vec<String>,
}

#[derive(Debug, Clone, Default)]
struct ShownCall {
    title: String,
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
        // A terminal of the client ends with its process: its text replaces it.
        let is_terminal = shown.content[0]["type"] == "terminal";
        is_terminal || self.content == shown.content || text.starts_with(UNSTORED_RESULT)
    }
}

impl ShownContent {
    /// Collects what the updates of a session showed.
    pub fn from_updates<'a>(updates: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut content = Self::default();
        updates.into_iter().for_each(|update| content.add_update(update));
        content
    }

    /// Adds an update of the session.
    pub fn add_update(&mut self, update: &Value) {
        let text = |field: &str| update[field].as_str().unwrap_or_default().to_owned();
        let kind = text("sessionUpdate");
        match kind.as_str() {
            "agent_message_chunk" | "agent_thought_chunk" => {
                let message = text("messageId");
                if message.is_empty() || UNSTORED_PREFIXES.iter().any(|prefix| message.starts_with(prefix)) {
                    return;
                }
                let key = format!("{kind} {message}");
                self.add_to_order(&key);
                let chunk = update["content"]["text"].as_str().unwrap_or_default();
                self.texts.entry(key).or_default().push_str(chunk);
            }
            "tool_call" | "tool_call_update" => {
                let id = text("toolCallId");
                self.add_to_order(&id);
                let call = self.calls.entry(id).or_default();
                for (field, shown) in [("title", &mut call.title), ("status", &mut call.status)] {
                    if let Some(text) = update[field].as_str() {
                        text.clone_into(shown);
                    }
                }
                if !update["content"].is_null() {
                    call.content = update["content"].clone();
                }
            }
            _ => {}
        }
    }

    fn add_to_order(&mut self, key: &str) {
        if !self.order.iter().any(|other_key| other_key == key) {
            self.order.push(key.to_owned());
        }
    }

    /// Lists what a loaded session lacks.
    pub fn missing_in(&self, loaded: &Self) -> Vec<String> {
        let mut missing = Vec::new();
        for (message, text) in &self.texts {
            let loaded_text = loaded.texts.get(message).map(String::as_str).unwrap_or_default();
            if !loaded_text.starts_with(text.as_str()) {
                missing.push(format!("{message}: {text:?} was shown, {loaded_text:?} is loaded"));
            }
        }
        for (id, call) in &self.calls {
            let loaded_call = loaded.calls.get(id);
            let is_there = loaded_call.is_some_and(|loaded| {
                let is_same_end = loaded.status == call.status && loaded.has_content_of(call);
                loaded.title == call.title && (!call.has_ended() || is_same_end)
            });
            if !is_there {
                missing.push(format!("{id}: {call:?} was shown, {loaded_call:?} is loaded"));
            }
        }
        missing
    }

    /// Describes how a loaded session differs in the order of what was shown, which it must begin with.
    pub fn order_changed_in(&self, loaded: &Self) -> Option<String> {
        let is_same = loaded.order.starts_with(&self.order);
        (!is_same)
            .then(|| format!("{:?} were shown in this order, {:?} are loaded", self.order, loaded.order))
    }

    /// Whether nothing was shown.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.calls.is_empty()
    }

    /// Lists the calls without an end.
    pub fn open_calls(&self) -> Vec<&str> {
        self.calls.iter().filter(|(_, call)| !call.has_ended()).map(|(id, _)| id.as_str()).collect()
    }
}
