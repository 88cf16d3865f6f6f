//! A summary of the updates of a turn, for the worker of its agent.

use serde_json::{Map, Value};

use crate::v1;

/// The longest answer that is kept for a parent that missed it; a report shows less.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// The updates of a turn, in short.
#[derive(Debug, Default)]
pub(super) struct TurnSummary {
    /// The text since the last tool call.
    answer: String,
    starts_new_answer: bool,
    has_answered: bool,
    tokens_spent: u64,
    n_ended_calls: u64,
}

impl TurnSummary {
    /// Whether the agent has begun to answer the prompt, which it then has stored.
    pub(super) fn has_answered(&self) -> bool {
        self.has_answered
    }

    pub(super) fn tokens_spent(&self) -> u64 {
        self.tokens_spent
    }

    pub(super) fn n_ended_calls(&self) -> u64 {
        self.n_ended_calls
    }

    pub(super) fn take_answer(&mut self) -> String {
        std::mem::take(&mut self.answer)
    }

    /// Adds the `session/update` with these parameters.
    pub(super) fn follow_update(&mut self, params: &Map<String, Value>) {
        let Some(update) = params.get("update") else { return };
        match update.get("sessionUpdate").and_then(Value::as_str) {
            Some("usage_update") => {
                let spent = v1::tokens_spent(update.get("_meta").and_then(Value::as_object));
                self.tokens_spent = spent.unwrap_or(self.tokens_spent);
            }
            Some("agent_thought_chunk") => self.has_answered = true,
            Some("tool_call") => {
                self.has_answered = true;
                self.starts_new_answer = true;
                self.count_ended_call(update);
            }
            Some("tool_call_update") => self.count_ended_call(update),
            Some("agent_message_chunk") => {
                self.has_answered = true;
                let text = update.get("content").and_then(|content| content.get("text"));
                self.add_text(text.and_then(Value::as_str).unwrap_or_default());
            }
            _ => {}
        }
    }

    fn count_ended_call(&mut self, update: &Value) {
        if matches!(update.get("status").and_then(Value::as_str), Some("completed" | "failed")) {
            self.n_ended_calls += 1;
        }
    }

    fn add_text(&mut self, text: &str) {
        if std::mem::take(&mut self.starts_new_answer) {
            self.answer.clear();
        }
        self.answer.push_str(text);
        let n_excess = self.answer.len().saturating_sub(ANSWER_BYTES_MAX);
        if n_excess > 0 {
            // Half is dropped at once, so that later additions rarely move the rest.
            let from = self.answer.ceil_char_boundary(n_excess.max(ANSWER_BYTES_MAX / 2));
            self.answer.drain(..from);
        }
    }
}
