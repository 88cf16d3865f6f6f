//! Finds the entry at which a conversation is cut, and the earlier prompts that stay verbatim.

use super::{
    CompactionTrigger,
    summary_message::{removed_output, shorten_prompt},
    token_estimate,
};
use crate::{CallId, Prompt, Transcript, TranscriptEntry};

/// The part of the limit for the newest entries, which stay unchanged, in percent.
const RECENT_PERCENT: u64 = 30;

/// The same after the provider rejected the request as too long.
const RECENT_PERCENT_OVERFLOW: u64 = 10;

/// The part of the limit for verbatim prompts from before the cut, in percent.
const VERBATIM_PERCENT: u64 = 10;

/// The same after the provider rejected the request as too long.
const VERBATIM_PERCENT_OVERFLOW: u64 = 5;

/// A cut before a prompt is preferred if it keeps at least this part of the budget.
const WHOLE_TURNS_PART: u64 = 3;

/// The position of a cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CutPoint {
    pub(super) keep_from: u64,
    pub(super) verbatim_prompts: Vec<u64>,
}

/// Finds the cut in a conversation without open calls; `None` if nothing can be dropped.
pub(super) fn find_cut(
    transcript: &Transcript,
    trigger: CompactionTrigger,
    limit: u64,
    pruned: &[CallId],
) -> Option<CutPoint> {
    let removed_tokens = token_estimate::estimate_result_tokens(&removed_output());
    let sizes: Vec<u64> = transcript
        .entries()
        .iter()
        .map(|entry| match entry {
            TranscriptEntry::Result { call, .. } if pruned.contains(call) => removed_tokens,
            TranscriptEntry::Result { .. } | TranscriptEntry::Prompt(_) | TranscriptEntry::Reply(_) => {
                token_estimate::estimate_entry_tokens(entry)
            }
        })
        .collect();
    let (total, percent) = match trigger {
        CompactionTrigger::LimitReached => (limit, RECENT_PERCENT),
        CompactionTrigger::Overflow => (limit, RECENT_PERCENT_OVERFLOW),
        // A user who requests a compaction wants a smaller context now, even far below the limit.
        CompactionTrigger::Manual => (limit.min(sizes.iter().sum()), RECENT_PERCENT),
    };
    let budget = total / 100 * percent + total % 100 * percent / 100;
    let index = find_first_kept(transcript.entries(), &sizes, trigger, budget);
    if index == 0 {
        return None;
    }
    let percent =
        if trigger == CompactionTrigger::Overflow { VERBATIM_PERCENT_OVERFLOW } else { VERBATIM_PERCENT };
    let verbatim_prompts = select_verbatim_prompts(transcript, index, limit.saturating_mul(percent) / 100);
    Some(CutPoint { keep_from: transcript.first_seq() + index as u64, verbatim_prompts })
}

/// Finds the first entry that stays: never a result, so that no reply is separated from its results.
fn find_first_kept(
    entries: &[TranscriptEntry],
    sizes: &[u64],
    trigger: CompactionTrigger,
    budget: u64,
) -> usize {
    let (mut sum, mut newest, mut turn, mut reply) = (0, None, None, None);
    for (index, entry) in entries.iter().enumerate().rev() {
        sum += sizes[index];
        let is_prompt = match entry {
            TranscriptEntry::Prompt(_) => true,
            TranscriptEntry::Reply(_) => false,
            TranscriptEntry::Result { .. } => continue,
        };
        newest = newest.or(Some((index, is_prompt)));
        if sum > budget {
            break;
        }
        reply = Some(index);
        if is_prompt {
            turn = Some((index, sum));
        }
    }
    match (turn, reply, newest) {
        (Some((index, sum)), _, _) if sum >= budget / WHOLE_TURNS_PART => index,
        (_, Some(index), _) => index,
        // A last prompt that alone is too long is shortened to its beginning and end; nothing else would help.
        (_, None, Some((_, true))) if trigger == CompactionTrigger::Overflow => entries.len(),
        (_, None, Some((index, _))) => index,
        (_, None, None) => 0,
    }
}

/// Selects the prompts before the cut that stay verbatim: the newest first, within the budget.
fn select_verbatim_prompts(transcript: &Transcript, index: usize, budget: u64) -> Vec<u64> {
    let mut tokens_left = budget;
    let mut verbatim_prompts = Vec::new();
    let is_last = index == transcript.entries().len()
        && matches!(transcript.entries().last(), Some(TranscriptEntry::Prompt(_)));
    for (n_newer, (seq, prompt)) in prompts_before(transcript, index).into_iter().rev().enumerate() {
        let tokens = token_estimate::estimate_prompt_tokens(&shorten_prompt(prompt));
        // The prompt to be answered must stay in any case.
        if (prompt.has_user_content() && tokens <= tokens_left) || (is_last && n_newer == 0) {
            tokens_left = tokens_left.saturating_sub(tokens);
            verbatim_prompts.push(seq);
        }
    }
    verbatim_prompts.reverse();
    verbatim_prompts
}

/// Returns the prompts before the cut with their sequence numbers, including the verbatim prompts of the last
/// compaction.
pub(super) fn prompts_before(transcript: &Transcript, index: usize) -> Vec<(u64, &Prompt)> {
    let first = transcript.first_seq();
    let entry_prompts =
        transcript.entries().iter().take(index).enumerate().filter_map(|(index, entry)| match entry {
            TranscriptEntry::Prompt(prompt) => Some((first + index as u64, prompt)),
            TranscriptEntry::Reply(_) | TranscriptEntry::Result { .. } => None,
        });
    transcript.verbatim_prompts().iter().map(|(seq, prompt)| (*seq, prompt)).chain(entry_prompts).collect()
}
