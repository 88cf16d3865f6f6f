//! Compaction: replaces the older part of a conversation by a summary, for the model only. Decides which entries are
//! dropped, which stay verbatim and which output is pruned. It calls no model and stores nothing. The session's
//! journal is never changed: a [`Compaction`] only defines the model's view of it.

mod attempt;
mod clip;
mod cut_point;
mod output;
mod prune;
mod source;
mod summary_message;
mod tag_escape;
mod token_estimate;
mod updates;

use crate::CallId;

pub use attempt::{CompactionAttempt, CompactionRejection, CompactionStep, SUMMARY_CHECK};
pub use token_estimate::{ContextTokens, context_limit, estimate_tool_tokens};
pub use updates::{compaction_id, compaction_sentence, compaction_started, format_tokens};

pub(crate) use output::shorten_output;
pub(crate) use summary_message::{removed_output, summary_message};
pub(crate) use tag_escape::escape_closing_tag;
pub(crate) use token_estimate::{
    clamp_provider_count, estimate_entry_tokens, estimate_part_tokens, estimate_prompt_tokens,
    estimate_result_tokens, estimate_text_tokens,
};

/// The model's view of a session from some entry on. Each one is complete: only the newest applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compaction {
    /// The number of entries in the session when the compaction was made; later entries are unaffected.
    pub at_seq: u64,
    /// The sequence number of the first entry that the model still sees verbatim (a prompt or a reply, never a
    /// result).
    pub keep_from: u64,
    /// The sequence numbers of earlier prompts that the model still sees verbatim, oldest first.
    pub verbatim_prompts: Vec<u64>,
    /// The summary of the dropped entries; `None` if nothing was summarized.
    pub summary: Option<String>,
    /// Calls at or after `keep_from` whose output is removed from the model's view.
    pub pruned: Vec<CallId>,
    /// Tokens in context before the compaction.
    pub tokens_before: u64,
    /// Estimated tokens in context after the compaction.
    pub tokens_after: u64,
    /// Milliseconds since 1970 when it began; 0 until it is about to be stored.
    pub began_ms: i64,
}

/// The reason for a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactionTrigger {
    /// The context exceeded the limit.
    LimitReached,
    /// The provider rejected the request as too long, contrary to our estimate.
    Overflow,
    /// The user requested it.
    Manual,
}

#[cfg(test)]
mod tests;
