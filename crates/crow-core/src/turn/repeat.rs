//! Tells when a model goes in circles: the same calls with the same results, again and again.

#[cfg(test)]
mod tests;

use crate::{ToolArguments, ToolResult, TranscriptEntry};

/// Rounds of the same calls and results after which a person is asked. Fewer happen to a model that waits for
/// something.
const SAME_MAX: usize = 5;

/// A round that came once too often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepeatedRound {
    /// What its first call was shown as.
    pub title: String,
    /// How many calls it has.
    pub n_calls: usize,
    /// How often it came in a row.
    pub n_times: usize,
}

/// Tells whether the conversation ends with the same round for the fifth time, the tenth and so on. What the model
/// said beside its calls does not count; a prompt in between ends the row.
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
    (n_times % SAME_MAX == 0).then_some(RepeatedRound { title, n_calls: last.len(), n_times })
}

/// A call with its result.
struct RoundStep<'a> {
    name: &'a str,
    arguments: &'a ToolArguments,
    outcome: &'a ToolResult,
    title: &'a str,
}

impl PartialEq for RoundStep<'_> {
    fn eq(&self, other: &Self) -> bool {
        let Self { name, arguments, outcome, title: _ } = self;
        // What was shown may name a moment; what the model read is what it goes by.
        *name == other.name
            && *arguments == other.arguments
            && outcome.status == other.outcome.status
            && outcome.for_model == other.outcome.for_model
    }
}

/// The last round and what came before it; none where the conversation ends with something else.
fn last_round(entries: &[TranscriptEntry]) -> Option<(Vec<RoundStep<'_>>, &[TranscriptEntry])> {
    let at = entries.iter().rposition(|entry| !matches!(entry, TranscriptEntry::Result { .. }))?;
    let (before, [TranscriptEntry::Reply(reply), results @ ..]) = entries.split_at(at) else { return None };
    let steps = reply.calls.iter().map(|call| {
        results.iter().find_map(|entry| match entry {
            TranscriptEntry::Result { call: id, facets, outcome } if *id == call.id => Some(RoundStep {
                name: &call.name,
                arguments: &call.arguments,
                outcome,
                title: &facets.title,
            }),
            TranscriptEntry::Result { .. } | TranscriptEntry::Prompt(_) | TranscriptEntry::Reply(_) => None,
        })
    });
    let steps: Vec<_> = steps.collect::<Option<_>>()?;
    (!steps.is_empty()).then_some((steps, before))
}
