//! The entries of a conversation with the estimated tokens of each, so that a request does not estimate all of them again.

use std::collections::BTreeSet;

use super::TranscriptEntry;
use crate::compaction::estimate_entry_tokens;
use crate::{CallId, ToolResult};

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct EstimatedEntries {
    entries: Vec<TranscriptEntry>,
    /// One for each entry.
    tokens: Vec<u64>,
}

impl EstimatedEntries {
    pub(super) fn as_slice(&self) -> &[TranscriptEntry] {
        &self.entries
    }

    /// The estimated tokens of each entry.
    pub(super) fn tokens(&self) -> &[u64] {
        &self.tokens
    }

    pub(super) fn insert(&mut self, index: usize, entry: TranscriptEntry) {
        self.tokens.insert(index, estimate_entry_tokens(&entry));
        self.entries.insert(index, entry);
    }

    /// Removes the entries before an index.
    pub(super) fn remove_before(&mut self, index: usize) {
        self.entries.drain(..index);
        self.entries.shrink_to_fit();
        self.tokens.drain(..index);
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
