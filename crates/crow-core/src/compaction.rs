//! Making a conversation shorter for the model: what of it goes, what stays word for word, and what stands for the
//! rest. Everything is decided here; it asks no model and stores nothing. The journal of a session is never touched:
//! a [`Compaction`] only says how it is shown.

mod attempt;
mod clip;
mod cut;
mod foreword;
mod prune;
mod quote;
mod size;
mod source;

use crate::CallId;

pub use attempt::{CompactionAttempt, CompactionRejection, CompactionStep};
pub use size::{ContextTokens, context_limit, estimate_tool_tokens};

pub(crate) use foreword::{removed_output, summary_message};
pub(crate) use quote::escape_closing_tag;
pub(crate) use size::{
    clamp_provider_count, estimate_entry_tokens, estimate_prompt_tokens, estimate_result_tokens,
    estimate_text_tokens,
};

/// How a session is shown to the model from some time on. It says everything: the newest alone decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compaction {
    /// How many entries the session had when it was made; what is said later stands as it is.
    pub at: u64,
    /// Place of the first entry the model still sees as it was said (a prompt or a reply, never a result).
    pub keep_from: u64,
    /// Places of earlier prompts that the model still sees verbatim, oldest first.
    pub said: Vec<u64>,
    /// What the model is told of the rest; `None` when nothing was summarised.
    pub summary: Option<String>,
    /// Calls at or after `keep_from` whose output the model no longer sees.
    pub pruned: Vec<CallId>,
    /// Tokens in context before it.
    pub tokens_before: u64,
    /// Tokens in context after it, by our measure.
    pub tokens_after: u64,
}

/// Why a conversation is to be made shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactionTrigger {
    /// It has passed the limit.
    Full,
    /// The provider refused it as too long, whatever we thought of its size.
    Overflow,
    /// The person wants it so.
    Asked,
}

#[cfg(test)]
mod tests;
