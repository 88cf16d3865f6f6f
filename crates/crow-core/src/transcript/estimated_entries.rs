//! The entries of a conversation with the estimated tokens of each, so that a request does not estimate all of them again.

use super::TranscriptEntry;
use crate::compaction::estimate_entry_tokens;

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

    /// Removes the entries before an index, and estimates the others again.
    pub(super) fn remove_before(&mut self, index: usize, estimate: impl Fn(&TranscriptEntry) -> u64) {
        self.entries.drain(..index);
        self.entries.shrink_to_fit();
        self.tokens = self.entries.iter().map(estimate).collect();
    }
}
