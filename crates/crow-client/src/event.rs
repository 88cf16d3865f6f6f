//! The events of a turn, and its outcome.

use std::collections::HashSet;

use crow_acp::{AgentUpdate, PromptOutcome, StopReason};
use crow_core::{PlanEntry, ToolCallContent, ToolCallStatus, ToolKind};
use serde_json::Value;

/// Calls of a turn that are remembered; a later change of an older one appears as started again.
const CALLS_MAX: usize = 10_000;

/// Bytes of a turn's text that are collected. The longest answers of models are far shorter.
const TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// An event of a turn. The last one is [`TurnEvent::End`], unless the turn failed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum TurnEvent {
    /// A piece of the reply.
    Text(String),
    /// A piece of the reasoning.
    Thought(String),
    /// A tool call that begins.
    ToolStarted(ToolCallChange),
    /// A change of a tool call; absent fields are unchanged.
    ToolUpdated(ToolCallChange),
    /// The whole plan, each time a part of it changes.
    Plan(Vec<PlanEntry>),
    /// The use of the context window.
    Usage(ContextStatus),
    /// The current mode, by its ID.
    Mode(String),
    /// An update without a variant of its own here, such as the output of a running command.
    Other(AgentUpdate),
    /// An update as the agent sent it, before its parsed form; see [`AgentOptions::raw_updates`](crate::AgentOptions::raw_updates).
    Raw(Value),
    /// The end of the turn.
    End(TurnOutcome),
}

/// The start or a change of a tool call; absent fields are unchanged.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCallChange {
    /// The agent's ID of the call.
    pub id: String,
    /// A title of one line; always present at the start.
    pub title: Option<String>,
    pub kind: Option<ToolKind>,
    pub status: Option<ToolCallStatus>,
    /// All of the content, such as text and diffs.
    pub content: Option<Vec<ToolCallContent>>,
    /// The arguments, as the agent reports them.
    pub input: Option<Value>,
}

/// The use of a session's context window, as its agent reported it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextStatus {
    /// Tokens in context.
    pub used: u64,
    /// The model's context window in tokens.
    pub size: u64,
    /// The cost of the session so far in billionths of a US dollar.
    pub cost: Option<u64>,
    /// True if `used` is an estimate.
    pub is_estimate: bool,
}

/// The outcome of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnOutcome {
    pub stop_reason: StopReason,
    /// The whole reply, of all messages of the turn.
    pub text: String,
    /// True if the reply was longer than 16 MiB; the rest is missing in `text`.
    pub is_truncated: bool,
    /// Tokens used by the session so far, if the agent reports them.
    pub tokens_spent: Option<u64>,
    /// The last usage that the agent reported in this turn.
    pub context: Option<ContextStatus>,
    answer_start: usize,
}

impl TurnOutcome {
    /// Returns the text after the last tool call, which is the answer; empty if the turn ended with a call.
    pub fn answer(&self) -> &str {
        self.text[self.answer_start..].trim()
    }
}

/// Converts the updates of one turn, and collects its outcome.
#[derive(Debug, Default)]
pub(crate) struct TurnCollector {
    calls: HashSet<String>,
    text: String,
    answer_start: usize,
    is_truncated: bool,
    context: Option<ContextStatus>,
}

impl TurnCollector {
    /// Converts an update.
    pub(crate) fn apply(&mut self, update: AgentUpdate) -> TurnEvent {
        match update {
            AgentUpdate::Text(text) => {
                self.push_text(&text);
                TurnEvent::Text(text)
            }
            AgentUpdate::Thought(text) => TurnEvent::Thought(text),
            AgentUpdate::Call { id, title, kind, status, content, input } => {
                let is_new = title.is_some() && !self.calls.contains(&id);
                if is_new {
                    if self.calls.len() >= CALLS_MAX {
                        self.calls.clear();
                    }
                    self.calls.insert(id.clone());
                    self.answer_start = self.text.len();
                }
                let change = ToolCallChange { id, title, kind, status, content, input };
                if is_new { TurnEvent::ToolStarted(change) } else { TurnEvent::ToolUpdated(change) }
            }
            AgentUpdate::Plan(entries) => TurnEvent::Plan(entries),
            AgentUpdate::Usage { used, size, cost, is_estimate, tokens_spent: _ } => {
                let context = ContextStatus { used, size, cost, is_estimate };
                self.context = Some(context);
                TurnEvent::Usage(context)
            }
            AgentUpdate::Mode(mode) => TurnEvent::Mode(mode),
            AgentUpdate::Prompt(_)
            | AgentUpdate::Child { .. }
            | AgentUpdate::Title(_)
            | AgentUpdate::CallOutput { .. }
            | AgentUpdate::CallResult { .. }
            | AgentUpdate::CallExit { .. }
            | AgentUpdate::Options(_)
            | AgentUpdate::Commands(_)
            | AgentUpdate::Notice(_)
            | AgentUpdate::Compaction(_)
            | AgentUpdate::Outcome(_) => TurnEvent::Other(update),
        }
    }

    fn push_text(&mut self, text: &str) {
        let end = text.floor_char_boundary(TEXT_BYTES_MAX - self.text.len());
        self.is_truncated |= end < text.len();
        self.text.push_str(&text[..end]);
    }

    /// Returns the outcome of the turn.
    pub(crate) fn finish(&mut self, outcome: PromptOutcome) -> TurnOutcome {
        let Self { text, answer_start, is_truncated, context, .. } = std::mem::take(self);
        let PromptOutcome { stop_reason, tokens_spent } = outcome;
        TurnOutcome { stop_reason, text, is_truncated, tokens_spent, context, answer_start }
    }
}

#[cfg(test)]
mod tests {
    use super::{AgentUpdate, PromptOutcome, StopReason, TEXT_BYTES_MAX, TurnCollector};

    #[test]
    fn text_of_a_turn_is_bounded() {
        let mut collector = TurnCollector::default();
        for piece in ["a".repeat(TEXT_BYTES_MAX - 1), "é".to_owned(), "b".to_owned(), "c".to_owned()] {
            collector.apply(AgentUpdate::Text(piece));
        }
        let end = collector.finish(PromptOutcome { stop_reason: StopReason::EndTurn, tokens_spent: None });
        assert!(end.is_truncated);
        assert_eq!((end.text.len(), end.text.ends_with("ab")), (TEXT_BYTES_MAX, true));
    }
}
