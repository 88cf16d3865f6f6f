//! Selects the old tool output to remove: output is the largest part of a context and the first to become outdated.

use std::collections::BTreeSet;

use super::{CompactionTrigger, summary_message::removed_output, token_estimate};
use crate::{CallId, Transcript, TranscriptEntry};

/// The part of the limit for the newest output, which stays: 40,000 of 200,000 tokens.
const PROTECTED_PART: u64 = 5;

/// The same after the provider rejected the request as too long.
const PROTECTED_PART_OVERFLOW: u64 = 20;

/// The minimum saving, as a part of the limit: each change invalidates the provider's cache.
const SAVINGS_MIN_PART: u64 = 10;

/// The newest turns whose output stays at any size.
const TURNS_PROTECTED: usize = 2;

/// Returns the calls whose output is removed, including those removed before.
pub(super) fn select_pruned(transcript: &Transcript, trigger: CompactionTrigger, limit: u64) -> Vec<CallId> {
    let pruned_before: BTreeSet<CallId> =
        transcript.compaction().into_iter().flat_map(|compaction| &compaction.pruned).copied().collect();
    let (protected_max, recent_max, protected_from) = match trigger {
        CompactionTrigger::LimitReached | CompactionTrigger::Manual => {
            (limit / PROTECTED_PART, u64::MAX, protected_turns_start(transcript.entries()))
        }
        // Results that alone are too long must not block a session forever.
        CompactionTrigger::Overflow => {
            (limit / PROTECTED_PART_OVERFLOW, limit / 2, last_reply_index(transcript.entries()))
        }
    };
    let removed_tokens = token_estimate::estimate_result_tokens(&removed_output());
    let (mut output_tokens, mut saved_tokens) = (0, 0);
    let mut pruned = pruned_before.clone();
    for (index, entry) in transcript.entries().iter().enumerate().rev() {
        let TranscriptEntry::Result { call, result, .. } = entry else { continue };
        if pruned_before.contains(call) {
            continue;
        }
        let tokens = token_estimate::estimate_result_tokens(result);
        output_tokens += tokens;
        let tokens_max = if index < protected_from { protected_max } else { recent_max };
        if output_tokens > tokens_max && tokens > removed_tokens {
            saved_tokens += tokens - removed_tokens;
            pruned.insert(*call);
        }
    }
    let is_worth_it = saved_tokens > 0 && saved_tokens >= limit / SAVINGS_MIN_PART;
    if is_worth_it { pruned.into_iter().collect() } else { pruned_before.into_iter().collect() }
}

fn protected_turns_start(entries: &[TranscriptEntry]) -> usize {
    let prompts =
        entries.iter().enumerate().rev().filter(|(_, entry)| matches!(entry, TranscriptEntry::Prompt(_)));
    prompts.map(|(index, _)| index).nth(TURNS_PROTECTED - 1).unwrap_or(0)
}

fn last_reply_index(entries: &[TranscriptEntry]) -> usize {
    entries.iter().rposition(|entry| matches!(entry, TranscriptEntry::Reply(_))).unwrap_or(0)
}
