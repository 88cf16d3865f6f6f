//! The entries of a conversation with what each request asks of all of them: the estimated tokens, and the prompts in which
//! Crow tells something.

use std::collections::BTreeSet;

use super::TranscriptEntry;
use crate::compaction::estimate_entry_tokens;
use crate::{CallId, Prompt, ToolResult};

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct EstimatedEntries {
    entries: Vec<TranscriptEntry>,
    /// One for each entry.
    tokens: Vec<u64>,
    /// The indexes of prompts with parts by Crow. Prompts are never inserted before other entries.
    context_prompts: Vec<usize>,
}

impl EstimatedEntries {
    pub(super) fn as_slice(&self) -> &[TranscriptEntry] {
        &self.entries
    }

    /// The estimated tokens of each entry.
    pub(super) fn tokens(&self) -> &[u64] {
        &self.tokens
    }

    /// The prompts with parts by Crow.
    pub(super) fn context_prompts(&self) -> impl DoubleEndedIterator<Item = &Prompt> {
        self.context_prompts.iter().filter_map(|index| match self.entries.get(*index)? {
            TranscriptEntry::Prompt(prompt) => Some(prompt),
            TranscriptEntry::Reply(_) | TranscriptEntry::Result { .. } => None,
        })
    }

    pub(super) fn insert(&mut self, index: usize, entry: TranscriptEntry) {
        if let TranscriptEntry::Prompt(prompt) = &entry
            && prompt.parts.iter().any(|part| part.crow_part().is_some())
        {
            self.context_prompts.push(index);
        }
        self.tokens.insert(index, estimate_entry_tokens(&entry));
        self.entries.insert(index, entry);
    }

    /// Removes the entries before an index.
    pub(super) fn remove_before(&mut self, index: usize) {
        self.entries.drain(..index);
        self.entries.shrink_to_fit();
        self.tokens.drain(..index);
        let kept = self.context_prompts.iter().filter_map(|prompt| prompt.checked_sub(index));
        self.context_prompts = kept.collect();
    }

    /// Replaces the results of some calls. Each counts as `tokens`.
    pub(super) fn replace_results(
        &mut self,
        calls: &BTreeSet<CallId>,
        tokens: u64,
        replace: impl Fn(&ToolResult) -> ToolResult,
    ) {
        for (entry, entry_tokens) in self.entries.iter_mut().zip(&mut self.tokens) {
            match entry {
                TranscriptEntry::Result { call, result, .. } if calls.contains(call) => {
                    *result = replace(result);
                    *entry_tokens = tokens;
                }
                TranscriptEntry::Result { .. } | TranscriptEntry::Prompt(_) | TranscriptEntry::Reply(_) => {}
            }
        }
    }
}
