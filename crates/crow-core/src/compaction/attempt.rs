//! One attempt to make a conversation shorter, as a table of what follows what. It ends after at most three questions
//! to the model, and it never makes a conversation longer.

use super::{
    Compaction, Occasion,
    cut::{Cut, cut},
    foreword::{foreword, removed},
    prune::prune,
    size::{self, Fill},
    source::source,
};
use crate::{CallId, Ended, Entry, Failure, FailureKind, Prompt, Reply, Transcript};

/// What a compaction has to win, in hundredths of what was there.
const WIN_MIN: u64 = 10;

/// How full the context may be, in hundredths of the limit, after pruning alone; fuller, it would soon be pruned again.
const PRUNED_ENOUGH: u64 = 80;

/// Hundredths of the limit for what the model reads to sum up; the rest is for its notes, which it is shown again.
const SOURCE: u64 = 70;

/// What the model answers when its notes lack nothing.
const COMPLETE: &str = "complete";

/// What an attempt needs next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Ask the model to sum this up, and tell [`Attempt::on_summary`].
    Summarise {
        /// What is to be summed up.
        source: String,
    },
    /// Ask the model what its summary lacks, and tell [`Attempt::on_check`].
    Verify {
        /// What was summed up.
        source: String,
        /// What the model made of it.
        summary: String,
    },
    /// Store this and believe it.
    Commit(Compaction),
    /// Leave everything as it is.
    Reject(Rejected),
}

/// Why everything stays as it is.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Rejected {
    /// There is nothing that could be left out.
    #[error("there is nothing to compact yet")]
    Nothing,
    /// The result is not smaller by what it has to be.
    #[error("the result would not have been smaller")]
    NotSmaller,
    /// The model said nothing, or not to the end.
    #[error("the model did not finish its summary")]
    NotFinished,
    /// The person stopped it.
    #[error("it was stopped")]
    Cancelled,
    /// The model could not be asked.
    #[error("{0}")]
    Failed(Failure),
}

/// An attempt while it goes on.
#[derive(Debug)]
pub struct Attempt {
    draft: Compaction,
    before: Fill,
    index: usize,
    source_max: usize,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The model sums up; what it reads is as long as it may be.
    Summarising,
    /// It was too long and is half as long.
    SummarisingLess,
    /// The model looks for what is missing.
    Verifying,
}

impl Attempt {
    /// Begins: prunes, and decides whether that is enough. No call may be open.
    pub fn start(transcript: &Transcript, occasion: Occasion, limit: u64) -> (Self, Step) {
        let before = transcript.fill();
        let limit = match occasion {
            Occasion::Full | Occasion::Asked => limit,
            // It is wrong where the provider refuses what keeps to it.
            Occasion::Overflow => limit.min(before.tokens),
        };
        let enough = limit.saturating_mul(PRUNED_ENOUGH) / 100;
        // From here on everything is measured by ourselves, and so is the limit.
        let limit = ratio(limit, (before.measured, before.tokens));
        let pruned = prune(transcript, occasion, limit);
        let mut draft = pruned_only(transcript, &pruned, before.tokens);
        let has_pruned = draft.pruned.len() > transcript.compaction().map_or(0, |by| by.pruned.len());
        draft.tokens_after = scaled(before, measured(transcript, &draft));
        let is_smaller = has_pruned && is_win(before, &draft);
        let source_max = size::bytes(limit.saturating_mul(SOURCE) / 100);
        let source_max = if occasion == Occasion::Overflow { source_max / 2 } else { source_max };
        let stage = Stage::Summarising;
        let mut attempt = Self { draft, before, index: 0, source_max, stage };
        if is_smaller && attempt.draft.tokens_after <= enough && occasion == Occasion::Full {
            let commit = Step::Commit(attempt.draft.clone());
            return (attempt, commit);
        }
        let Some(Cut { keep_from, said }) = cut(transcript, occasion, limit, &pruned) else {
            let step = match is_smaller {
                true => Step::Commit(attempt.draft.clone()),
                false => Step::Reject(Rejected::Nothing),
            };
            return (attempt, step);
        };
        attempt.index = usize::try_from(keep_from - transcript.first_seq()).unwrap_or(usize::MAX);
        attempt.draft.pruned.retain(|call| call.reply() >= keep_from);
        attempt.draft.keep_from = keep_from;
        attempt.draft.said = said;
        // Not even a summary without a word would be a gain: the model need not be asked.
        let step = match attempt.adopt(transcript, String::new()) {
            true => Step::Summarise { source: attempt.source(transcript) },
            false => Step::Reject(Rejected::Nothing),
        };
        (attempt, step)
    }

    /// Tells how full the context was when it began.
    pub fn before(&self) -> Fill {
        self.before
    }

    /// Goes on after the model was asked for a summary.
    pub fn on_summary(&mut self, transcript: &Transcript, reply: &Reply) -> Step {
        match (&reply.ended, self.stage) {
            (Ended::Normally, _) => {}
            (Ended::Failed(failure), Stage::Summarising) if failure.kind == FailureKind::ContextOverflow => {
                self.stage = Stage::SummarisingLess;
                self.source_max /= 2;
                return Step::Summarise { source: self.source(transcript) };
            }
            (ended, _) => return Step::Reject(rejected(ended)),
        }
        let summary = reply.text.trim();
        if summary.is_empty() {
            return Step::Reject(Rejected::NotFinished);
        }
        if !self.adopt(transcript, summary.to_owned()) {
            return Step::Reject(Rejected::NotSmaller);
        }
        self.stage = Stage::Verifying;
        Step::Verify { source: self.source(transcript), summary: summary.to_owned() }
    }

    /// Goes on after the model was asked what its summary lacks. A summary that nobody could check is better than none.
    pub fn on_check(&mut self, transcript: &Transcript, reply: &Reply) -> Step {
        if reply.ended == Ended::Cancelled {
            return Step::Reject(Rejected::Cancelled);
        }
        let missing = reply.text.trim();
        let is_complete = missing.trim_end_matches('.').eq_ignore_ascii_case(COMPLETE);
        if reply.ended == Ended::Normally && !missing.is_empty() && !is_complete {
            let summary = self.draft.summary.clone().unwrap_or_default();
            if !self.adopt(transcript, format!("{summary}\n\nAlso:\n{missing}")) {
                self.adopt(transcript, summary);
            }
        }
        Step::Commit(self.draft.clone())
    }

    /// Takes a summary into the draft; tells whether that makes the whole smaller.
    fn adopt(&mut self, transcript: &Transcript, summary: String) -> bool {
        self.draft.summary = Some(summary);
        self.draft.tokens_after = scaled(self.before, measured(transcript, &self.draft));
        is_win(self.before, &self.draft)
    }

    fn source(&self, transcript: &Transcript) -> String {
        source(transcript, self.index, self.source_max)
    }
}

impl Compaction {
    /// Lets the model begin afresh: it sees nothing of what was said. `None` when it sees nothing already.
    pub fn clear(transcript: &Transcript) -> Option<Self> {
        let before = transcript.fill();
        let at = transcript.next_seq();
        let mut all = Self {
            at,
            keep_from: at,
            said: Vec::new(),
            summary: None,
            pruned: Vec::new(),
            tokens_before: before.tokens,
            tokens_after: 0,
        };
        all.tokens_after = scaled(before, measured(transcript, &all));
        let sees_something = !transcript.entries().is_empty() || transcript.has_foreword();
        sees_something.then_some(all)
    }
}

fn rejected(ended: &Ended) -> Rejected {
    match ended {
        Ended::Cancelled => Rejected::Cancelled,
        Ended::Failed(failure) => Rejected::Failed(failure.clone()),
        Ended::Normally | Ended::OutputLimit | Ended::SizeLimit | Ended::Refused => Rejected::NotFinished,
    }
}

/// As it is shown now, with less output.
fn pruned_only(transcript: &Transcript, pruned: &[CallId], tokens_before: u64) -> Compaction {
    let now = transcript.compaction();
    Compaction {
        at: transcript.next_seq(),
        keep_from: transcript.first_seq(),
        said: now.map(|by| by.said.clone()).unwrap_or_default(),
        summary: now.and_then(|by| by.summary.clone()),
        pruned: pruned.to_vec(),
        tokens_before,
        tokens_after: tokens_before,
    }
}

/// Measures what the model would see.
fn measured(transcript: &Transcript, by: &Compaction) -> u64 {
    let index = usize::try_from(by.keep_from.saturating_sub(transcript.first_seq())).unwrap_or(usize::MAX);
    let kept = transcript.entries().iter().skip(index);
    let line = size::of_outcome(&removed());
    let kept: u64 = kept
        .map(|entry| match entry {
            Entry::Result { call, .. } if by.pruned.contains(call) => line,
            Entry::Result { .. } | Entry::Prompt(_) | Entry::Reply(_) => size::of_entry(entry),
        })
        .sum();
    let said: Vec<&Prompt> = by.said.iter().filter_map(|place| transcript.prompt_at(*place)).collect();
    let front = match (said.is_empty(), &by.summary) {
        (true, None) => 0,
        (_, summary) => size::of_prompt(&foreword(said, summary.as_deref())),
    };
    transcript.beside() + front + kept
}

/// Brings our measure of what is left to the provider's count of what there was.
fn scaled(before: Fill, measured: u64) -> u64 {
    ratio(measured, (before.tokens, before.measured))
}

fn ratio(number: u64, (to, from): (u64, u64)) -> u64 {
    let scaled = u128::from(number) * u128::from(to) / u128::from(from.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

fn is_win(before: Fill, draft: &Compaction) -> bool {
    let most = u128::from(before.tokens) * u128::from(100 - WIN_MIN) / 100;
    u128::from(draft.tokens_after) <= most && draft.tokens_after < before.tokens
}
