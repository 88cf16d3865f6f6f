//! Compares what a client is told when it loads a session with what was live.
//!
//! Chunks of a message are one line; a call stands in its last state where it was announced; a terminal that
//! has ended is its text, and perhaps one more line that says how it ended. What is not part of the
//! conversation is left out: usage, title, mode, options, commands, notices, questions about trust and what a
//! command of Crow's own answered.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::client::FakeClient;

/// Updates that a replay may leave out or bring at another place.
const ASIDE: [&str; 6] = [
    "usage_update",
    "session_info_update",
    "current_mode_update",
    "config_option_update",
    "available_commands_update",
    "notice",
];

/// A call that no reply made: the question whether to use what a repository supplies.
const TRUST: &str = "trust";

/// Messages that answer a command and are not stored begin so.
const NOTE: &str = "note-";

/// Fails unless `loaded` was told of a session what `live` has seen of it.
///
/// # Panics
/// When it was told something else.
#[track_caller]
pub fn check(session: &str, live: &FakeClient, loaded: &FakeClient) {
    let [live, loaded] = [live, loaded].map(|client| {
        let updates = client.updates.iter().filter(|(other, _)| other == session);
        Page::of(updates.map(|(_, update)| update), client.editor.shown())
    });
    let (told, seen) = compared(loaded, live);
    assert_eq!(told, seen, "{session}: what was told (left) is not what was seen (right)");
}

/// Spells both sides, with the terminals that were live as the text that stands for them.
fn compared(mut loaded: Page, mut live: Page) -> (String, String) {
    for (key, line) in &mut live.lines {
        let text = line["content"].as_array().and_then(|items| {
            let mut ids = items.iter().filter_map(|item| item["terminalId"].as_str());
            ids.next().map(|id| live.shown.get(id).cloned().unwrap_or_default())
        });
        let told = loaded.lines.iter_mut().find(|(other, _)| other == key).map(|(_, line)| line);
        if let (Some(text), Some(told)) = (text, told) {
            let content = json!([{"type": "content", "content": {"type": "text", "text": text}}]);
            let is_same =
                told["content"][0]["content"]["text"].as_str().is_some_and(|told| stands_for(told, &text));
            line["content"] = content.clone();
            if is_same {
                told["content"] = content;
            }
        }
    }
    (loaded.spelled(), live.spelled())
}

/// Whether a text is the output of a terminal, or that and one line that says how it ended.
fn stands_for(told: &str, output: &str) -> bool {
    let output = output.trim_end_matches('\n');
    told.strip_prefix(output).is_some_and(|rest| rest.trim_matches('\n').lines().count() <= 1)
}

/// A session as it looks to a client in the end.
#[derive(Debug, Default)]
struct Page {
    /// What is said and done in order, each with its name among them.
    lines: Vec<(String, Value)>,
    /// What terminals show, by id.
    shown: BTreeMap<String, String>,
    /// Calls that are left out, by id.
    aside: BTreeSet<String>,
}

impl Page {
    fn of<'a>(updates: impl Iterator<Item = &'a Value>, shown: &BTreeMap<String, String>) -> Self {
        let mut page = Self { shown: shown.clone(), ..Self::default() };
        updates.for_each(|update| page.take(update));
        page
    }

    fn take(&mut self, update: &Value) {
        let text = |field: &str| update[field].as_str().unwrap_or_default();
        let kind = text("sessionUpdate");
        let message = text("messageId");
        if ASIDE.contains(&kind) || message.starts_with(NOTE) {
            return;
        }
        let call = text("toolCallId");
        if kind == "tool_call" && text("name") == TRUST {
            self.aside.insert(call.to_owned());
        }
        if self.aside.contains(call) {
            return;
        }
        let printed = &update["_meta"]["terminal_output"];
        if let (Some(id), Some(data)) = (printed["terminal_id"].as_str(), printed["data"].as_str()) {
            self.shown.entry(id.to_owned()).or_default().push_str(data);
        }
        match kind {
            "agent_message_chunk" | "agent_thought_chunk" => {
                let said = update["content"]["text"].as_str().unwrap_or_default();
                let line = self.line(&format!("{kind} {message}"));
                let so_far = line["text"].as_str().unwrap_or_default().to_owned();
                *line = json!({"kind": kind, "id": message, "text": so_far + said});
            }
            "tool_call" | "tool_call_update" => {
                let changed = update.as_object().into_iter().flatten();
                let changed: Map<String, Value> = changed
                    .filter(|(name, value)| *name != "sessionUpdate" && *name != "_meta" && !value.is_null())
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect();
                let line = self.line(&format!("call {}", text("toolCallId")));
                if line.is_null() {
                    *line = json!({"status": "pending", "content": [], "locations": []});
                }
                changed.into_iter().for_each(|(name, value)| line[name] = value);
            }
            // The live side has no id: only the agent numbers prompts.
            "user_message_chunk" => self.add(json!({"prompt": update["content"]})),
            _ => self.add(update.clone()),
        }
    }

    fn add(&mut self, line: Value) {
        self.lines.push((format!("line {}", self.lines.len()), line));
    }

    /// The line of a message or a call, made where it is heard of first.
    fn line(&mut self, key: &str) -> &mut Value {
        let place = self.lines.iter().position(|(other, _)| other == key).unwrap_or_else(|| {
            self.lines.push((key.to_owned(), Value::Null));
            self.lines.len() - 1
        });
        &mut self.lines[place].1
    }

    fn spelled(self) -> String {
        let lines = self.lines.into_iter().map(|(_, mut line)| {
            // The order of fields says nothing.
            line.sort_all_objects();
            format!("{line}\n")
        });
        lines.collect()
    }
}
