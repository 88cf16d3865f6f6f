//! Where a conversation is cut, and which words of the person stay in front of the cut.

use super::{
    CompactionTrigger,
    foreword::{removed_output, shorten_prompt},
    size,
};
use crate::{CallId, Prompt, Transcript, TranscriptEntry};

/// Hundredths of the limit that the newest entries may take up and stay as they are.
const RECENT: u64 = 30;

/// The same when the provider has refused the whole as too long.
const RECENT_OVERFLOW: u64 = 10;

/// Hundredths of the limit for words of the person from before the cut.
const SAID: u64 = 10;

/// The same when the provider has refused the whole as too long.
const SAID_OVERFLOW: u64 = 5;

/// A cut before a prompt is the better one as long as it keeps this part of what may be kept.
const WHOLE_TURNS_PART: u64 = 3;

/// Where a conversation is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CutPoint {
    pub(super) keep_from: u64,
    pub(super) said: Vec<u64>,
}

/// Cuts a conversation whose calls have all ended; `None` when there is nothing that could be left out.
pub(super) fn find_cut(
    transcript: &Transcript,
    occasion: CompactionTrigger,
    limit: u64,
    pruned: &[CallId],
) -> Option<CutPoint> {
    let line = size::estimate_result_tokens(&removed_output());
    let sizes: Vec<u64> = transcript
        .entries()
        .iter()
        .map(|entry| match entry {
            TranscriptEntry::Result { call, .. } if pruned.contains(call) => line,
            TranscriptEntry::Result { .. } | TranscriptEntry::Prompt(_) | TranscriptEntry::Reply(_) => {
                size::estimate_entry_tokens(entry)
            }
        })
        .collect();
    let (whole, hundredths) = match occasion {
        CompactionTrigger::Full => (limit, RECENT),
        CompactionTrigger::Overflow => (limit, RECENT_OVERFLOW),
        // Whoever asks for it wants it shorter now, however far the limit is.
        CompactionTrigger::Asked => (limit.min(sizes.iter().sum()), RECENT),
    };
    let budget = whole / 100 * hundredths + whole % 100 * hundredths / 100;
    let index = find_first_kept(transcript.entries(), &sizes, occasion, budget);
    if index == 0 {
        return None;
    }
    let hundredths = if occasion == CompactionTrigger::Overflow { SAID_OVERFLOW } else { SAID };
    let said = select_verbatim_prompts(transcript, index, limit.saturating_mul(hundredths) / 100);
    Some(CutPoint { keep_from: transcript.first_seq() + index as u64, said })
}

/// Finds the first entry that is kept: never a result, so that no reply is parted from its results.
fn find_first_kept(
    entries: &[TranscriptEntry],
    sizes: &[u64],
    occasion: CompactionTrigger,
    budget: u64,
) -> usize {
    let (mut sum, mut newest, mut turn, mut step) = (0, None, None, None);
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
        step = Some(index);
        if is_prompt {
            turn = Some((index, sum));
        }
    }
    match (turn, step, newest) {
        (Some((index, sum)), _, _) if sum >= budget / WHOLE_TURNS_PART => index,
        (_, Some(index), _) => index,
        // A last prompt that alone is too long is shown by its beginning and its end, or nothing would help.
        (_, None, Some((_, true))) if occasion == CompactionTrigger::Overflow => entries.len(),
        (_, None, Some((index, _))) => index,
        (_, None, None) => 0,
    }
}

/// Chooses the prompts before the cut that stay word for word: the newest first, as far as the budget goes.
fn select_verbatim_prompts(transcript: &Transcript, index: usize, budget: u64) -> Vec<u64> {
    let mut left = budget;
    let mut said = Vec::new();
    let is_last = index == transcript.entries().len()
        && matches!(transcript.entries().last(), Some(TranscriptEntry::Prompt(_)));
    for (n_newer, (place, prompt)) in prompts_before(transcript, index).into_iter().rev().enumerate() {
        let tokens = size::estimate_prompt_tokens(&shorten_prompt(prompt));
        // What is to be answered has to be there in any case.
        if (prompt.has_user_content() && tokens <= left) || (is_last && n_newer == 0) {
            left = left.saturating_sub(tokens);
            said.push(place);
        }
    }
    said.reverse();
    said
}

/// The prompts before the cut with their places, those that stood in front of the one before as well.
pub(super) fn prompts_before(transcript: &Transcript, index: usize) -> Vec<(u64, &Prompt)> {
    let first = transcript.first_seq();
    let here = transcript.entries().iter().take(index).enumerate().filter_map(|(index, entry)| match entry {
        TranscriptEntry::Prompt(prompt) => Some((first + index as u64, prompt)),
        TranscriptEntry::Reply(_) | TranscriptEntry::Result { .. } => None,
    });
    transcript.verbatim_prompts().iter().map(|(place, prompt)| (*place, prompt)).chain(here).collect()
}
