//! Compares the updates of a loaded session with the live ones.
//!
//! Chunks of a message are one line; a call is shown in its final state where it was announced; a terminal that has
//! ended is its text, optionally followed by one line about its exit. Everything that is not part of the conversation
//! is left out: usage, title, mode, options, commands, notices, trust questions and answers of Crow's own commands.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::client::FakeClient;

/// Updates that a replay may omit or move.
const IGNORED_UPDATES: [&str; 6] = [
    "usage_update",
    "session_info_update",
    "current_mode_update",
    "config_option_update",
    "available_commands_update",
    "notice",
];

/// A call that is not in a reply: the question whether to use a repository's files.
const TRUST_TOOL: &str = "trust";

/// The prefix of messages that answer a command and are not stored.
const NOTE_PREFIX: &str = "note-";

/// Fails unless `loaded` received for a session what `live` received.
///
/// # Panics
/// If they differ.
#[track_caller]
pub fn check(session: &str, live: &FakeClient, loaded: &FakeClient) {
    let (replayed, seen_live) = render_clients(session, live, loaded);
    assert_eq!(replayed, seen_live, "{session}: what was told (left) is not what was seen (right)");
}

/// Describes how what `loaded` received for a session differs from what `live` received.
pub fn difference(session: &str, live: &FakeClient, loaded: &FakeClient) -> Option<String> {
    let (replayed, seen_live) = render_clients(session, live, loaded);
    (replayed != seen_live).then(|| format!("the replay of {session} is\n{replayed}was:\n{seen_live}"))
}

fn render_clients(session: &str, live: &FakeClient, loaded: &FakeClient) -> (String, String) {
    let [live, loaded] = [live, loaded].map(|client| {
        let updates = client.updates.iter().filter(|(other_session, _)| other_session == session);
        SessionView::from_updates(updates.map(|(_, update)| update), client.editor.released_outputs())
    });
    render_both(loaded, live)
}

/// Renders the final view of one session, one line for each message and call.
pub fn render_updates<'a>(updates: impl Iterator<Item = &'a Value>) -> String {
    SessionView::from_updates(updates, &BTreeMap::new()).render()
}

/// Renders both sides, with live terminals replaced by their text.
fn render_both(mut loaded: SessionView, mut live: SessionView) -> (String, String) {
    for (key, line) in &mut live.lines {
        let text = line["content"].as_array().and_then(|items| {
            let mut ids = items.iter().filter_map(|item| item["terminalId"].as_str());
            ids.next().map(|id| live.terminal_outputs.get(id).cloned().unwrap_or_default())
        });
        let loaded_line =
            loaded.lines.iter_mut().find(|(other_key, _)| other_key == key).map(|(_, line)| line);
        if let (Some(text), Some(loaded_line)) = (text, loaded_line) {
            let content = json!([{"type": "content", "content": {"type": "text", "text": text}}]);
            let is_same = loaded_line["content"][0]["content"]["text"]
                .as_str()
                .is_some_and(|loaded_text| is_output_text(loaded_text, &text));
            line["content"] = content.clone();
            if is_same {
                loaded_line["content"] = content;
            }
        }
    }
    (loaded.render(), live.render())
}

/// Whether a text is the output of a terminal, optionally followed by one line about its exit.
fn is_output_text(text: &str, output: &str) -> bool {
    let output = output.trim_end_matches('\n');
    text.strip_prefix(output).is_some_and(|rest| rest.trim_matches('\n').lines().count() <= 1)
}

/// The final view of a session in a client.
#[derive(Debug, Default)]
struct SessionView {
    /// Messages and calls in order, each with its key.
    lines: Vec<(String, Value)>,
    /// The output of terminals, by id.
    terminal_outputs: BTreeMap<String, String>,
    /// The ids of omitted calls.
    ignored_calls: BTreeSet<String>,
}

impl SessionView {
    fn from_updates<'a>(
        updates: impl Iterator<Item = &'a Value>,
        terminal_outputs: &BTreeMap<String, String>,
    ) -> Self {
        let mut view = Self { terminal_outputs: terminal_outputs.clone(), ..Self::default() };
        updates.for_each(|update| view.add_update(update));
        view
    }

    fn add_update(&mut self, update: &Value) {
        let text = |field: &str| update[field].as_str().unwrap_or_default();
        let kind = text("sessionUpdate");
        let message = text("messageId");
        if IGNORED_UPDATES.contains(&kind) || message.starts_with(NOTE_PREFIX) {
            return;
        }
        let call = text("toolCallId");
        if kind == "tool_call" && text("name") == TRUST_TOOL {
            self.ignored_calls.insert(call.to_owned());
        }
        if self.ignored_calls.contains(call) {
            return;
        }
        let terminal_output = &update["_meta"]["terminal_output"];
        if let (Some(id), Some(data)) =
            (terminal_output["terminal_id"].as_str(), terminal_output["data"].as_str())
        {
            self.terminal_outputs.entry(id.to_owned()).or_default().push_str(data);
        }
        match kind {
            "agent_message_chunk" | "agent_thought_chunk" => {
                let chunk = update["content"]["text"].as_str().unwrap_or_default();
                let line = self.line_for(&format!("{kind} {message}"));
                let previous = line["text"].as_str().unwrap_or_default().to_owned();
                *line = json!({"kind": kind, "id": message, "text": previous + chunk});
            }
            "tool_call" | "tool_call_update" => {
                let changed = update.as_object().into_iter().flatten();
                let changed: Map<String, Value> = changed
                    .filter(|(name, value)| *name != "sessionUpdate" && *name != "_meta" && !value.is_null())
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect();
                let line = self.line_for(&format!("call {}", text("toolCallId")));
                if line.is_null() {
                    *line = json!({"status": "pending", "content": [], "locations": []});
                }
                changed.into_iter().for_each(|(name, value)| line[name] = value);
            }
            // The live side has no id: only the agent numbers prompts.
            "user_message_chunk" => self.add_line(json!({"prompt": update["content"]})),
            _ => self.add_line(update.clone()),
        }
    }

    fn add_line(&mut self, line: Value) {
        self.lines.push((format!("line {}", self.lines.len()), line));
    }

    /// Returns the line of a message or a call, creating it at its first mention.
    fn line_for(&mut self, key: &str) -> &mut Value {
        let index = self.lines.iter().position(|(other_key, _)| other_key == key).unwrap_or_else(|| {
            self.lines.push((key.to_owned(), Value::Null));
            self.lines.len() - 1
        });
        &mut self.lines[index].1
    }

    fn render(self) -> String {
        let lines = self.lines.into_iter().map(|(_, mut line)| {
            // The order of fields is not significant.
            line.sort_all_objects();
            format!("{line}\n")
        });
        lines.collect()
    }
}
