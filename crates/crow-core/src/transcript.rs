//! The conversation as the model may see it. An invalid one has no constructor: a request cannot be made
//! while a call is open, a result cannot be pushed for a call that is not.
//!
//! What a [`Compaction`] leaves out is gone from here; the journal of the session has it.

use std::collections::BTreeSet;

use crate::compaction::{
    ContextTokens, clamp_provider_count, estimate_entry_tokens, estimate_prompt_tokens,
    estimate_result_tokens, estimate_text_tokens, removed_output, summary_message,
};
use crate::{CallId, Compaction, MessageId, Prompt, Reply, TokenUsage, ToolCall, ToolCallInfo, ToolResult};

/// One step of a conversation, as it is stored and replayed.
#[derive(Debug, Clone, PartialEq)]
pub enum TranscriptEntry {
    /// The person spoke.
    Prompt(Prompt),
    /// The model spoke.
    Reply(Reply),
    /// A call ended.
    Result {
        /// Which call.
        call: CallId,
        /// What was shown of it, as it was shown live.
        facets: ToolCallInfo,
        /// What came of it.
        outcome: ToolResult,
    },
}

impl TranscriptEntry {
    /// What a reply took, as its provider counted.
    pub fn usage(&self) -> Option<TokenUsage> {
        match self {
            Self::Reply(reply) => reply.usage,
            Self::Prompt(_) | Self::Result { .. } => None,
        }
    }
}

/// A valid conversation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Transcript {
    system: String,
    /// Tokens of the tools that go along with it.
    tools: u64,
    /// Place of the first entry.
    first: u64,
    entries: Vec<TranscriptEntry>,
    open: Vec<ToolCall>,
    compacted: Option<AppliedCompaction>,
}

/// What stands for the entries that are gone.
#[derive(Debug, Clone, PartialEq)]
struct AppliedCompaction {
    by: Compaction,
    said: Vec<(u64, Prompt)>,
    foreword: Option<Prompt>,
    pruned: BTreeSet<CallId>,
    removed: ToolResult,
}

/// A compaction that does not fit the conversation it is meant for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the compaction does not fit: {why}")]
pub struct CompactionMismatch {
    /// What is wrong with it.
    pub why: &'static str,
}

/// A request was wanted while these calls had no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{n_open} tool calls have no result yet")]
pub struct OpenCallsError {
    /// How many.
    pub n_open: usize,
}

/// An entry that may not come next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEntry {
    /// Prompts and replies wait until every call has its result.
    #[error("calls are open")]
    CallsOpen,
    /// A result for a call that is not open.
    #[error("call {0} is not open")]
    NotOpen(CallId),
    /// A reply or prompt with nothing in it, which providers refuse.
    #[error("the message is empty")]
    Empty,
}

impl Transcript {
    /// Starts a conversation.
    pub fn new(system: impl Into<String>) -> Self {
        Self { system: system.into(), ..Self::default() }
    }

    /// The place the next entry takes; ids are made from it.
    pub fn next_seq(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// The place of the first of [`Transcript::entries`].
    pub fn first_seq(&self) -> u64 {
        self.first
    }

    /// The system prompt.
    pub fn system(&self) -> &str {
        &self.system
    }

    /// Tells how many tokens the tools take that go along with each request.
    pub fn set_tool_tokens(&mut self, tokens: u64) {
        self.tools = tokens;
    }

    /// Tokens of what goes along whatever is said.
    pub(crate) fn overhead_tokens(&self) -> u64 {
        estimate_text_tokens(&self.system) + self.tools
    }

    /// Every entry from the one that the compaction in force keeps first.
    pub fn entries(&self) -> &[TranscriptEntry] {
        &self.entries
    }

    /// Calls that wait for their results, in the model's order.
    pub fn open_calls(&self) -> &[ToolCall] {
        &self.open
    }

    /// Adds an entry if it may come next. Store it first: what was refused here was never said.
    pub fn push(&mut self, entry: TranscriptEntry) -> Result<(), InvalidEntry> {
        self.check_entry(&entry)?;
        let place = match &entry {
            TranscriptEntry::Prompt(_) => self.entries.len(),
            TranscriptEntry::Reply(reply) => {
                self.open.clone_from(&reply.calls);
                self.entries.len()
            }
            TranscriptEntry::Result { call, .. } => {
                self.open.retain(|open| open.id != *call);
                self.result_index(call)
            }
        };
        self.entries.insert(place, entry);
        Ok(())
    }

    /// Results land in any order and stand in the order of their calls.
    fn result_index(&self, call: &CallId) -> usize {
        let n_later = self.entries.iter().rev().take_while(|entry| match entry {
            TranscriptEntry::Result { call: other, .. } => {
                other > call && other.reply_seq() == call.reply_seq()
            }
            TranscriptEntry::Prompt(_) | TranscriptEntry::Reply(_) => false,
        });
        self.entries.len() - n_later.count()
    }

    /// Tells whether an entry may come next.
    pub fn check_entry(&self, entry: &TranscriptEntry) -> Result<(), InvalidEntry> {
        match entry {
            TranscriptEntry::Prompt(prompt) if prompt.parts.is_empty() => Err(InvalidEntry::Empty),
            TranscriptEntry::Reply(reply) if reply.is_empty() => Err(InvalidEntry::Empty),
            TranscriptEntry::Prompt(_) | TranscriptEntry::Reply(_) if !self.open.is_empty() => {
                Err(InvalidEntry::CallsOpen)
            }
            TranscriptEntry::Prompt(_) | TranscriptEntry::Reply(_) => Ok(()),
            TranscriptEntry::Result { call, .. } if self.open.iter().any(|open| open.id == *call) => Ok(()),
            TranscriptEntry::Result { call, .. } => Err(InvalidEntry::NotOpen(*call)),
        }
    }

    /// Shows the conversation for a request.
    pub fn for_model(&self) -> Result<ModelTranscript<'_>, OpenCallsError> {
        match self.open.len() {
            0 => Ok(ModelTranscript { transcript: self }),
            n_open => Err(OpenCallsError { n_open }),
        }
    }

    /// Shows it so from here on. Store it first, as an entry. What it leaves out is forgotten.
    pub fn compact(&mut self, by: Compaction) -> Result<(), CompactionMismatch> {
        self.check_compaction(&by)?;
        let index = usize::try_from(by.keep_from - self.first).unwrap_or(usize::MAX);
        let said = by.said.iter().filter_map(|place| Some((*place, self.prompt_at(*place)?.clone())));
        let said: Vec<(u64, Prompt)> = said.collect();
        // A reply can only follow something that was said.
        let begins_with_reply = matches!(self.entries.get(index), Some(TranscriptEntry::Reply(_)));
        let has_foreword = begins_with_reply || !said.is_empty() || by.summary.is_some();
        let foreword = has_foreword
            .then(|| summary_message(said.iter().map(|(_, prompt)| prompt), by.summary.as_deref()));
        self.entries.drain(..index);
        self.entries.shrink_to_fit();
        self.first = by.keep_from;
        let pruned = by.pruned.iter().copied().collect();
        self.compacted = Some(AppliedCompaction { by, said, foreword, pruned, removed: removed_output() });
        Ok(())
    }

    fn check_compaction(&self, by: &Compaction) -> Result<(), CompactionMismatch> {
        let refuse = |why| Err(CompactionMismatch { why });
        if by.at > self.next_seq() || by.keep_from > by.at {
            return refuse("it is about entries that are not there");
        }
        if by.keep_from < self.first {
            return refuse("it keeps entries that are gone");
        }
        let first = usize::try_from(by.keep_from - self.first).ok().and_then(|index| self.entries.get(index));
        if matches!(first, Some(TranscriptEntry::Result { .. })) {
            return refuse("it parts a call from its result");
        }
        let is_prompt = |place: &u64| *place < by.keep_from && self.prompt_at(*place).is_some();
        if !by.said.iter().all(is_prompt) || !by.said.is_sorted() {
            return refuse("it names a prompt that is none");
        }
        Ok(())
    }

    /// The compaction in force.
    pub fn compaction(&self) -> Option<&Compaction> {
        self.compacted.as_ref().map(|compacted| &compacted.by)
    }

    /// The earlier prompts that the model still sees verbatim, with their places.
    pub fn verbatim_prompts(&self) -> &[(u64, Prompt)] {
        self.compacted.as_ref().map_or(&[], |compacted| &compacted.said)
    }

    /// Tells whether something stands for what is left out.
    pub fn has_summary_message(&self) -> bool {
        self.summary_message().is_some()
    }

    fn summary_message(&self) -> Option<&Prompt> {
        self.compacted.as_ref().and_then(|compacted| compacted.foreword.as_ref())
    }

    /// Finds a prompt that is still here by its place.
    pub(crate) fn prompt_at(&self, place: u64) -> Option<&Prompt> {
        if let Some((_, prompt)) = self.verbatim_prompts().iter().find(|(other, _)| *other == place) {
            return Some(prompt);
        }
        let index = usize::try_from(place.checked_sub(self.first)?).ok()?;
        match self.entries.get(index)? {
            TranscriptEntry::Prompt(prompt) => Some(prompt),
            TranscriptEntry::Reply(_) | TranscriptEntry::Result { .. } => None,
        }
    }

    /// Tells how full the context is.
    pub fn context_tokens(&self) -> ContextTokens {
        let front = self.overhead_tokens() + self.summary_message().map_or(0, estimate_prompt_tokens);
        let measured = front + self.entries.iter().map(|entry| self.entry_tokens(entry)).sum::<u64>();
        ContextTokens { tokens: self.provider_count(measured).unwrap_or(measured), measured }
    }

    /// The provider's last count with our measure of what came after it; a compaction counts as well.
    fn provider_count(&self, measured: u64) -> Option<u64> {
        let by = self.compaction();
        let mut later = 0;
        for (index, entry) in self.entries.iter().enumerate().rev() {
            if by.is_some_and(|by| self.first + (index as u64) < by.at) {
                break;
            }
            if let Some(tokens) = entry.usage().and_then(TokenUsage::context_tokens) {
                return Some(
                    clamp_provider_count(tokens, measured.saturating_sub(later)).saturating_add(later),
                );
            }
            later += self.entry_tokens(entry);
        }
        by.map(|by| by.tokens_after.saturating_add(later))
    }

    fn entry_tokens(&self, entry: &TranscriptEntry) -> u64 {
        match (entry, &self.compacted) {
            (TranscriptEntry::Result { call, .. }, Some(compacted)) if compacted.pruned.contains(call) => {
                estimate_result_tokens(&compacted.removed)
            }
            (TranscriptEntry::Result { .. } | TranscriptEntry::Prompt(_) | TranscriptEntry::Reply(_), _) => {
                estimate_entry_tokens(entry)
            }
        }
    }

    /// Names the prompt that comes next.
    pub fn next_message_id(&self) -> MessageId {
        MessageId::from_seq(self.next_seq())
    }
}

/// A conversation that a provider accepts; only [`Transcript::for_model`] makes one.
#[derive(Debug, Clone, Copy)]
pub struct ModelTranscript<'a> {
    transcript: &'a Transcript,
}

/// One step of a conversation as the model is shown it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ModelStep<'a> {
    /// The person spoke, or what stands for what is left out.
    Prompt(&'a Prompt),
    /// The model spoke.
    Reply(&'a Reply),
    /// A call ended.
    Result {
        /// Which call.
        call: CallId,
        /// What came of it, or the line that stands for that.
        outcome: &'a ToolResult,
    },
}

impl<'a> ModelTranscript<'a> {
    /// The system prompt.
    pub fn system(self) -> &'a str {
        &self.transcript.system
    }

    /// The steps, each call followed by its result before the next prompt or reply.
    pub fn steps(self) -> impl Iterator<Item = ModelStep<'a>> {
        let Transcript { entries, compacted, .. } = self.transcript;
        let removed = move |call: &CallId| compacted.as_ref().filter(|by| by.pruned.contains(call));
        let kept = entries.iter().map(move |entry| match entry {
            TranscriptEntry::Prompt(prompt) => ModelStep::Prompt(prompt),
            TranscriptEntry::Reply(reply) => ModelStep::Reply(reply),
            TranscriptEntry::Result { call, outcome, .. } => {
                let outcome = removed(call).map_or(outcome, |by| &by.removed);
                ModelStep::Result { call: *call, outcome }
            }
        });
        self.transcript.summary_message().map(ModelStep::Prompt).into_iter().chain(kept)
    }
}

#[cfg(test)]
mod tests;
