//! Where a conversation is cut, and which words of the person stay in front of the cut.

use super::{
    Occasion,
    foreword::{kept, removed},
    size,
};
use crate::{CallId, Entry, Prompt, Transcript};

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
pub(super) struct Cut {
    pub(super) keep_from: u64,
    pub(super) said: Vec<u64>,
}

/// Cuts a conversation whose calls have all ended; `None` when there is nothing that could be left out.
pub(super) fn cut(transcript: &Transcript, occasion: Occasion, limit: u64, pruned: &[CallId]) -> Option<Cut> {
    let line = size::of_outcome(&removed());
    let sizes: Vec<u64> = transcript
        .entries()
        .iter()
        .map(|entry| match entry {
            Entry::Result { call, .. } if pruned.contains(call) => line,
            Entry::Result { .. } | Entry::Prompt(_) | Entry::Reply(_) => size::of_entry(entry),
        })
        .collect();
    let (whole, hundredths) = match occasion {
        Occasion::Full => (limit, RECENT),
        Occasion::Overflow => (limit, RECENT_OVERFLOW),
        // Whoever asks for it wants it shorter now, however far the limit is.
        Occasion::Asked => (limit.min(sizes.iter().sum()), RECENT),
    };
    let budget = whole / 100 * hundredths + whole % 100 * hundredths / 100;
    let index = place(transcript.entries(), &sizes, occasion, budget);
    if index == 0 {
        return None;
    }
    let hundredths = if occasion == Occasion::Overflow { SAID_OVERFLOW } else { SAID };
    let said = said(transcript, index, limit.saturating_mul(hundredths) / 100);
    Some(Cut { keep_from: transcript.first_seq() + index as u64, said })
}

/// Finds the first entry that is kept: never a result, so that no reply is parted from its results.
fn place(entries: &[Entry], sizes: &[u64], occasion: Occasion, budget: u64) -> usize {
    let (mut sum, mut newest, mut turn, mut step) = (0, None, None, None);
    for (index, entry) in entries.iter().enumerate().rev() {
        sum += sizes[index];
        let is_prompt = match entry {
            Entry::Prompt(_) => true,
            Entry::Reply(_) => false,
            Entry::Result { .. } => continue,
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
        (_, None, Some((_, true))) if occasion == Occasion::Overflow => entries.len(),
        (_, None, Some((index, _))) => index,
        (_, None, None) => 0,
    }
}

/// Chooses the prompts before the cut that stay word for word: the newest first, as far as the budget goes.
fn said(transcript: &Transcript, index: usize, budget: u64) -> Vec<u64> {
    let mut left = budget;
    let mut said = Vec::new();
    let is_last =
        index == transcript.entries().len() && matches!(transcript.entries().last(), Some(Entry::Prompt(_)));
    for (n_newer, (place, prompt)) in before(transcript, index).into_iter().rev().enumerate() {
        let tokens = size::of_prompt(&kept(prompt));
        // What is to be answered has to be there in any case.
        if (prompt.is_said() && tokens <= left) || (is_last && n_newer == 0) {
            left = left.saturating_sub(tokens);
            said.push(place);
        }
    }
    said.reverse();
    said
}

/// The prompts before the cut with their places, those that stood in front of the one before as well.
pub(super) fn before(transcript: &Transcript, index: usize) -> Vec<(u64, &Prompt)> {
    let first = transcript.first_seq();
    let here = transcript.entries().iter().take(index).enumerate().filter_map(|(index, entry)| match entry {
        Entry::Prompt(prompt) => Some((first + index as u64, prompt)),
        Entry::Reply(_) | Entry::Result { .. } => None,
    });
    transcript.said().iter().map(|(place, prompt)| (*place, prompt)).chain(here).collect()
}
