//! Detects a model that repeats itself: the same calls with the same results.

#[cfg(test)]
mod tests;

use crate::{ToolArguments, ToolResult, TranscriptEntry};

/// Repetitions after which the user is asked. A model that waits for something may repeat itself less often.
const REPETITIONS_MAX: usize = 5;

/// A repeated round of calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepeatedRound {
    /// The title of its first call.
    pub title: String,
    /// The number of its calls.
    pub n_calls: usize,
    /// The number of consecutive repetitions.
    pub n_times: usize,
}

/// Returns the last round if it is the fifth, tenth and so on of its kind. The text beside the calls does not count;
/// a prompt in between resets the count.
pub(crate) fn find_repeated_round(entries: &[TranscriptEntry]) -> Option<RepeatedRound> {
    let (last, mut before) = last_round(entries)?;
    let mut n_times = 1;
    while let Some((round, rest)) = last_round(before)
        && round == last
    {
        n_times += 1;
        before = rest;
    }
    let title = last.first().map(|step| step.title.to_owned())?;
    (n_times % REPETITIONS_MAX == 0).then_some(RepeatedRound { title, n_calls: last.len(), n_times })
}

/// A call with its result.
struct RoundStep<'a> {
    name: &'a str,
    arguments: &'a ToolArguments,
    result: &'a ToolResult,
    title: &'a str,
}

impl PartialEq for RoundStep<'_> {
    fn eq(&self, other: &Self) -> bool {
        let Self { name, arguments, result, title: _ } = self;
        // The client's content may include times; the model's content counts.
        *name == other.name
            && *arguments == other.arguments
            && result.status == other.result.status
            && result.for_model == other.result.for_model
    }
}

/// Returns the last round and the entries before it; `None` if the conversation ends with something else.
fn last_round(entries: &[TranscriptEntry]) -> Option<(Vec<RoundStep<'_>>, &[TranscriptEntry])> {
    let at = entries.iter().rposition(|entry| !matches!(entry, TranscriptEntry::Result { .. }))?;
    let (before, [TranscriptEntry::Reply(reply), results @ ..]) = entries.split_at(at) else { return None };
    let steps = reply.calls.iter().map(|call| {
        results.iter().find_map(|entry| match entry {
            TranscriptEntry::Result { call: id, info, result } if *id == call.id => {
                Some(RoundStep { name: &call.name, arguments: &call.arguments, result, title: &info.title })
            }
            TranscriptEntry::Result { .. } | TranscriptEntry::Prompt(_) | TranscriptEntry::Reply(_) => None,
        })
    });
    let steps: Vec<_> = steps.collect::<Option<_>>()?;
    (!steps.is_empty()).then_some((steps, before))
}
