//! Which old tool output the model can do without: it is the largest part of a context and the first to go stale.

use std::collections::BTreeSet;

use super::{CompactionTrigger, foreword::removed_output, size};
use crate::{CallId, Transcript, TranscriptEntry};

/// Part of the limit that the newest output may take up and stay: 40,000 tokens of 200,000.
const PROTECTED_PART: u64 = 5;

/// The same when the provider has refused the whole as too long.
const PROTECTED_PART_OVERFLOW: u64 = 20;

/// Part of the limit that has to be won, or nothing is pruned: each change makes the provider read everything again.
const WORTH_PART: u64 = 10;

/// Turns whose output stays whatever its size.
const TURNS_PROTECTED: usize = 2;

/// Names the calls whose output goes, those of before included.
pub(super) fn select_pruned(transcript: &Transcript, occasion: CompactionTrigger, limit: u64) -> Vec<CallId> {
    let before: BTreeSet<CallId> =
        transcript.compaction().into_iter().flat_map(|by| &by.pruned).copied().collect();
    let (protected, recent, protected_from) = match occasion {
        CompactionTrigger::Full | CompactionTrigger::Asked => {
            (limit / PROTECTED_PART, u64::MAX, protected_turns_start(transcript.entries()))
        }
        // Results that alone are too long must not stop a session for good.
        CompactionTrigger::Overflow => {
            (limit / PROTECTED_PART_OVERFLOW, limit / 2, last_reply_index(transcript.entries()))
        }
    };
    let line = size::estimate_result_tokens(&removed_output());
    let (mut seen, mut won) = (0, 0);
    let mut pruned = before.clone();
    for (place, entry) in transcript.entries().iter().enumerate().rev() {
        let TranscriptEntry::Result { call, outcome, .. } = entry else { continue };
        if before.contains(call) {
            continue;
        }
        let tokens = size::estimate_result_tokens(outcome);
        seen += tokens;
        let most = if place < protected_from { protected } else { recent };
        if seen > most && tokens > line {
            won += tokens - line;
            pruned.insert(*call);
        }
    }
    let is_worth_it = won > 0 && won >= limit / WORTH_PART;
    if is_worth_it { pruned.into_iter().collect() } else { before.into_iter().collect() }
}

fn protected_turns_start(entries: &[TranscriptEntry]) -> usize {
    let prompts =
        entries.iter().enumerate().rev().filter(|(_, entry)| matches!(entry, TranscriptEntry::Prompt(_)));
    prompts.map(|(place, _)| place).nth(TURNS_PROTECTED - 1).unwrap_or(0)
}

fn last_reply_index(entries: &[TranscriptEntry]) -> usize {
    entries.iter().rposition(|entry| matches!(entry, TranscriptEntry::Reply(_))).unwrap_or(0)
}
