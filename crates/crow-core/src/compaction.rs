//! What the model still sees of a conversation that became too long for it.

use crate::CallId;

/// A view of a conversation; the newest one alone decides, and nothing is removed by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compaction {
    /// How many entries the session had when it was made; what is said later stands as it is.
    pub at: u64,
    /// Place of the first entry the model still sees as it was said: a prompt or a reply, never a result.
    pub keep_from: u64,
    /// Places of earlier prompts that the model still sees verbatim, oldest first.
    pub said: Vec<u64>,
    /// What the model is told of the rest; `None` when nothing was summarised.
    pub summary: Option<String>,
    /// Calls at or after `keep_from` whose output the model no longer sees.
    pub pruned: Vec<CallId>,
    /// Tokens in context before it.
    pub tokens_before: u64,
    /// Tokens in context after it.
    pub tokens_after: u64,
}
