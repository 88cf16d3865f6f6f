//! The conversation in the model's view. An invalid one cannot be built: there is no request with an open call, and
//! no result without its call.
//!
//! Entries removed by a [`Compaction`] are no longer here; the session's journal has them.

mod dialogue;
mod entry;
mod estimated_entries;
mod identity;

use std::collections::BTreeSet;

use crate::compaction::{
    ContextTokens, clamp_provider_count, estimate_prompt_tokens, estimate_result_tokens,
    estimate_text_tokens, removed_output, shorten_output, summary_message,
};
use crate::session_context::kept_context;
use crate::{CallId, Compaction, ContentPart, MessageId, Prompt, Reply, TokenUsage, ToolCall, ToolResult};

pub use entry::TranscriptEntry;
use estimated_entries::EstimatedEntries;
use identity::OwnIdentity;
pub use identity::TranscriptIdentity;

/// A valid conversation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Transcript {
    identity: OwnIdentity,
    system: String,
    system_tokens: u64,
    /// Tokens of the tool descriptions.
    tool_tokens: u64,
    /// The sequence number of the first entry.
    first_seq: u64,
    entries: EstimatedEntries,
    open_calls: Vec<ToolCall>,
    applied_compaction: Option<AppliedCompaction>,
}

/// A compaction with the content that replaces the removed entries.
#[derive(Debug, Clone, PartialEq)]
struct AppliedCompaction {
    compaction: Compaction,
    verbatim_prompts: Vec<(u64, Prompt)>,
    summary_message: Option<Prompt>,
    pruned: BTreeSet<CallId>,
    removed_output: ToolResult,
}

/// A compaction that does not match the conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the compaction does not match the transcript: {reason}")]
pub struct CompactionMismatch {
    /// The mismatch.
    pub reason: &'static str,
}

/// A request is not possible while calls have no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{n_open} tool calls have no result yet")]
pub struct OpenCallsError {
    /// The number of open calls.
    pub n_open: usize,
}

/// An entry that is not allowed next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEntry {
    /// Prompts and replies must wait until every call has its result.
    #[error("calls without a result are open")]
    CallsOpen,
    /// A result for a call that is not open.
    #[error("call {0} is not open")]
    NotOpen(CallId),
    /// An empty reply or prompt, which providers reject.
    #[error("the message is empty")]
    Empty,
}

impl Transcript {
    /// Starts a conversation.
    pub fn new(system: impl Into<String>) -> Self {
        let system = system.into();
        Self { system_tokens: estimate_text_tokens(&system), system, ..Self::default() }
    }

    /// Returns the sequence number of the next entry; IDs are derived from it.
    pub fn next_seq(&self) -> u64 {
        self.first_seq + self.entries().len() as u64
    }

    /// Returns the sequence number of the first of [`Transcript::entries`].
    pub fn first_seq(&self) -> u64 {
        self.first_seq
    }

    /// Returns the system prompt.
    pub fn system(&self) -> &str {
        &self.system
    }

    /// Sets the tokens of the tool descriptions in each request.
    pub fn set_tool_tokens(&mut self, tokens: u64) {
        self.tool_tokens = tokens;
    }

    /// Returns the tokens of each request besides the messages.
    pub(crate) fn overhead_tokens(&self) -> u64 {
        self.system_tokens + self.tool_tokens
    }

    /// Returns the entries from the first one that the current compaction keeps.
    pub fn entries(&self) -> &[TranscriptEntry] {
        self.entries.as_slice()
    }

    /// Returns the calls without result, in the model's order.
    pub fn open_calls(&self) -> &[ToolCall] {
        &self.open_calls
    }

    /// Adds an entry if it is allowed next. Check and store it first.
    pub fn push(&mut self, entry: TranscriptEntry) -> Result<(), InvalidEntry> {
        self.check_entry(&entry)?;
        let index = match &entry {
            TranscriptEntry::Prompt(_) => self.entries().len(),
            TranscriptEntry::Reply(reply) => {
                self.open_calls.clone_from(&reply.calls);
                self.entries().len()
            }
            TranscriptEntry::Result { call, .. } => {
                self.open_calls.retain(|open_call| open_call.id != *call);
                self.result_index(call)
            }
        };
        self.entries.insert(index, entry);
        Ok(())
    }

    /// Returns the index for a result: results arrive in any order and are kept in the order of their calls.
    fn result_index(&self, call: &CallId) -> usize {
        let n_later = self.entries().iter().rev().take_while(|entry| match entry {
            TranscriptEntry::Result { call: other, .. } => {
                other > call && other.reply_seq() == call.reply_seq()
            }
            TranscriptEntry::Prompt(_) | TranscriptEntry::Reply(_) => false,
        });
        self.entries().len() - n_later.count()
    }

    /// Checks whether an entry is allowed next.
    pub fn check_entry(&self, entry: &TranscriptEntry) -> Result<(), InvalidEntry> {
        match entry {
            TranscriptEntry::Prompt(prompt) if prompt.parts.is_empty() => Err(InvalidEntry::Empty),
            TranscriptEntry::Reply(reply) if reply.is_empty() => Err(InvalidEntry::Empty),
            TranscriptEntry::Prompt(_) | TranscriptEntry::Reply(_) if !self.open_calls.is_empty() => {
                Err(InvalidEntry::CallsOpen)
            }
            TranscriptEntry::Prompt(_) | TranscriptEntry::Reply(_) => Ok(()),
            TranscriptEntry::Result { call, .. }
                if self.open_calls.iter().any(|open_call| open_call.id == *call) =>
            {
                Ok(())
            }
            TranscriptEntry::Result { call, .. } => Err(InvalidEntry::NotOpen(*call)),
        }
    }

    /// Returns the conversation for a request.
    pub fn for_model(&self) -> Result<ModelTranscript<'_>, OpenCallsError> {
        match self.open_calls.len() {
            0 => Ok(ModelTranscript { transcript: self }),
            n_open => Err(OpenCallsError { n_open }),
        }
    }

    /// Applies a compaction, which must be stored before. Removed entries are dropped.
    pub fn compact(&mut self, compaction: Compaction) -> Result<(), CompactionMismatch> {
        self.check_compaction(&compaction)?;
        let index = usize::try_from(compaction.keep_from - self.first_seq).unwrap_or(usize::MAX);
        let verbatim_prompts =
            compaction.verbatim_prompts.iter().filter_map(|seq| Some((*seq, self.prompt_at(*seq)?.clone())));
        let verbatim_prompts: Vec<(u64, Prompt)> = verbatim_prompts.collect();
        // A reply can only follow a message.
        let begins_with_reply = matches!(self.entries().get(index), Some(TranscriptEntry::Reply(_)));
        let needs_summary_message =
            begins_with_reply || !verbatim_prompts.is_empty() || compaction.summary.is_some();
        let message = needs_summary_message.then(|| {
            let prompts = verbatim_prompts.iter().map(|(_, prompt)| prompt);
            summary_message(self.context_before(index), prompts, compaction.summary.as_deref())
        });
        self.first_seq = compaction.keep_from;
        let pruned: BTreeSet<CallId> = compaction.pruned.iter().copied().collect();
        let removed_output = removed_output();
        let removed_tokens = estimate_result_tokens(&removed_output);
        self.entries.remove_before(index);
        self.identity = OwnIdentity::default();
        // They are no longer sent, and only a summary reads something of them.
        self.entries.replace_results(&pruned, removed_tokens, shorten_output);
        self.applied_compaction = Some(AppliedCompaction {
            compaction,
            verbatim_prompts,
            summary_message: message,
            pruned,
            removed_output,
        });
        Ok(())
    }

    fn check_compaction(&self, compaction: &Compaction) -> Result<(), CompactionMismatch> {
        let mismatch = |reason| Err(CompactionMismatch { reason });
        if compaction.at_seq > self.next_seq() || compaction.keep_from > compaction.at_seq {
            return mismatch("it refers to missing entries");
        }
        if compaction.keep_from < self.first_seq {
            return mismatch("it keeps entries that were removed");
        }
        let first = usize::try_from(compaction.keep_from - self.first_seq)
            .ok()
            .and_then(|index| self.entries().get(index));
        if matches!(first, Some(TranscriptEntry::Result { .. })) {
            return mismatch("it separates a call from its result");
        }
        let is_prompt = |seq: &u64| *seq < compaction.keep_from && self.prompt_at(*seq).is_some();
        if !compaction.verbatim_prompts.iter().all(is_prompt) || !compaction.verbatim_prompts.is_sorted() {
            return mismatch("it refers to an entry that is not a prompt");
        }
        Ok(())
    }

    /// Returns the current compaction.
    pub fn compaction(&self) -> Option<&Compaction> {
        self.applied_compaction.as_ref().map(|compaction| &compaction.compaction)
    }

    /// Returns the earlier prompts that the model still sees verbatim, with their sequence numbers.
    pub fn verbatim_prompts(&self) -> &[(u64, Prompt)] {
        self.applied_compaction.as_ref().map_or(&[], |compaction| &compaction.verbatim_prompts)
    }

    /// Whether a summary message replaces removed entries.
    pub fn has_summary_message(&self) -> bool {
        self.summary_message().is_some()
    }

    fn summary_message(&self) -> Option<&Prompt> {
        self.applied_compaction.as_ref().and_then(|compaction| compaction.summary_message.as_ref())
    }

    /// Returns the prompts in the model's view; the first may be the summary message.
    pub fn prompts(&self) -> impl DoubleEndedIterator<Item = &Prompt> {
        self.summary_message().into_iter().chain(self.entries().iter().filter_map(|entry| match entry {
            TranscriptEntry::Prompt(prompt) => Some(prompt),
            TranscriptEntry::Reply(_) | TranscriptEntry::Result { .. } => None,
        }))
    }

    /// Returns the prompts in which Crow tells the model something, such as the environment: far fewer than all.
    pub(crate) fn context_prompts(&self) -> impl DoubleEndedIterator<Item = &Prompt> {
        self.summary_message().into_iter().chain(self.entries.context_prompts())
    }

    /// Returns the parts about the session that stay when the entries before an index are removed.
    pub(crate) fn context_before(&self, index: usize) -> Vec<ContentPart> {
        let n_removed = self.entries().iter().take(index);
        let n_removed = n_removed.filter(|entry| matches!(entry, TranscriptEntry::Prompt(_))).count();
        let n_removed = n_removed + usize::from(self.has_summary_message());
        kept_context(self.prompts().take(n_removed))
    }

    /// Returns a prompt in the model's view by its sequence number.
    pub(crate) fn prompt_at(&self, seq: u64) -> Option<&Prompt> {
        if let Some((_, prompt)) = self.verbatim_prompts().iter().find(|(other, _)| *other == seq) {
            return Some(prompt);
        }
        let index = usize::try_from(seq.checked_sub(self.first_seq)?).ok()?;
        match self.entries().get(index)? {
            TranscriptEntry::Prompt(prompt) => Some(prompt),
            TranscriptEntry::Reply(_) | TranscriptEntry::Result { .. } => None,
        }
    }

    /// Returns the context size.
    pub fn context_tokens(&self) -> ContextTokens {
        let overhead = self.overhead_tokens() + self.summary_message().map_or(0, estimate_prompt_tokens);
        let measured = overhead + self.entries.tokens().iter().sum::<u64>();
        ContextTokens { tokens: self.provider_count(measured).unwrap_or(measured), measured }
    }

    /// Returns the provider's last count plus our estimate of later entries; a compaction also counts.
    fn provider_count(&self, measured: u64) -> Option<u64> {
        let compaction = self.compaction();
        let mut later_tokens = 0;
        for (index, (entry, tokens_of_entry)) in
            self.entries().iter().zip(self.entries.tokens()).enumerate().rev()
        {
            if compaction.is_some_and(|compaction| self.first_seq + (index as u64) < compaction.at_seq) {
                break;
            }
            if let Some(tokens) = entry.usage().and_then(TokenUsage::context_tokens) {
                return Some(
                    clamp_provider_count(tokens, measured.saturating_sub(later_tokens))
                        .saturating_add(later_tokens),
                );
            }
            later_tokens += tokens_of_entry;
        }
        compaction.map(|compaction| compaction.tokens_after.saturating_add(later_tokens))
    }

    /// Returns the ID of the next prompt.
    pub fn next_message_id(&self) -> MessageId {
        MessageId::from_seq(self.next_seq())
    }
}

/// A conversation that a provider accepts; only [`Transcript::for_model`] creates one.
#[derive(Debug, Clone, Copy)]
pub struct ModelTranscript<'a> {
    transcript: &'a Transcript,
}

/// A step of a conversation in the model's view.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ModelStep<'a> {
    /// A message of the user, or the summary message.
    Prompt(&'a Prompt),
    /// An answer of the model.
    Reply(&'a Reply),
    /// The result of a call.
    Result {
        /// The call.
        call: CallId,
        /// The result, or its replacement if pruned.
        result: &'a ToolResult,
    },
}

impl<'a> ModelTranscript<'a> {
    /// Returns the identity: while it is the same, steps are only added, at the end or among the last results.
    pub fn identity(self) -> TranscriptIdentity {
        self.transcript.identity.get()
    }

    /// Returns the system prompt.
    pub fn system(self) -> &'a str {
        &self.transcript.system
    }

    /// Returns the steps, with the results after each reply before the next prompt or reply.
    pub fn steps(self) -> impl Iterator<Item = ModelStep<'a>> {
        let Transcript { entries, applied_compaction: compacted, .. } = self.transcript;
        let compaction_of =
            move |call: &CallId| compacted.as_ref().filter(|compaction| compaction.pruned.contains(call));
        let entry_steps = entries.as_slice().iter().map(move |entry| match entry {
            TranscriptEntry::Prompt(prompt) => ModelStep::Prompt(prompt),
            TranscriptEntry::Reply(reply) => ModelStep::Reply(reply),
            TranscriptEntry::Result { call, result, .. } => {
                let result = compaction_of(call).map_or(result, |compaction| &compaction.removed_output);
                ModelStep::Result { call: *call, result }
            }
        });
        self.transcript.summary_message().map(ModelStep::Prompt).into_iter().chain(entry_steps)
    }
}

#[cfg(test)]
mod tests;
