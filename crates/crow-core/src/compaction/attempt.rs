//! One attempt to make a conversation shorter, as a table of what follows what. It ends after at most three questions
//! to the model, and it never makes a conversation longer.

use super::{
    Compaction, CompactionTrigger,
    cut::{CutPoint, find_cut},
    foreword::{removed_output, summary_message},
    prune::select_pruned,
    size::{self, ContextTokens},
    source::render_source,
};
use crate::{CallId, Failure, FailureKind, Prompt, Reply, ReplyEnd, Transcript, TranscriptEntry};

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
pub enum CompactionStep {
    /// Ask the model to sum this up, and tell [`CompactionAttempt::on_summary`].
    Summarise {
        /// What is to be summed up.
        source: String,
    },
    /// Ask the model what its summary lacks, and tell [`CompactionAttempt::on_check`].
    Verify {
        /// What was summed up.
        source: String,
        /// What the model made of it.
        summary: String,
    },
    /// Store this and believe it.
    Commit(Compaction),
    /// Leave everything as it is.
    Reject(CompactionRejection),
}

/// Why everything stays as it is.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CompactionRejection {
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
pub struct CompactionAttempt {
    draft: Compaction,
    before: ContextTokens,
    index: usize,
    source_max: usize,
    stage: AttemptStage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AttemptStage {
    /// The model sums up; what it reads is as long as it may be.
    Summarising,
    /// It was too long and is half as long.
    SummarisingLess,
    /// The model looks for what is missing.
    Verifying,
}

impl CompactionAttempt {
    /// Begins: prunes, and decides whether that is enough. No call may be open.
    pub fn start(transcript: &Transcript, occasion: CompactionTrigger, limit: u64) -> (Self, CompactionStep) {
        let before = transcript.context_tokens();
        let limit = match occasion {
            CompactionTrigger::Full | CompactionTrigger::Asked => limit,
            // It is wrong where the provider refuses what keeps to it.
            CompactionTrigger::Overflow => limit.min(before.tokens),
        };
        let enough = limit.saturating_mul(PRUNED_ENOUGH) / 100;
        // From here on everything is measured by ourselves, and so is the limit.
        let limit = scale_by_ratio(limit, (before.measured, before.tokens));
        let pruned = select_pruned(transcript, occasion, limit);
        let mut draft = prune_only(transcript, &pruned, before.tokens);
        let has_pruned = draft.pruned.len() > transcript.compaction().map_or(0, |by| by.pruned.len());
        draft.tokens_after = scale_to_provider(before, measure_tokens(transcript, &draft));
        let is_smaller = has_pruned && is_worthwhile(before, &draft);
        let source_max = size::tokens_to_bytes(limit.saturating_mul(SOURCE) / 100);
        let source_max = if occasion == CompactionTrigger::Overflow { source_max / 2 } else { source_max };
        let stage = AttemptStage::Summarising;
        let mut attempt = Self { draft, before, index: 0, source_max, stage };
        if is_smaller && attempt.draft.tokens_after <= enough && occasion == CompactionTrigger::Full {
            let commit = CompactionStep::Commit(attempt.draft.clone());
            return (attempt, commit);
        }
        let Some(CutPoint { keep_from, said }) = find_cut(transcript, occasion, limit, &pruned) else {
            let step = match is_smaller {
                true => CompactionStep::Commit(attempt.draft.clone()),
                false => CompactionStep::Reject(CompactionRejection::Nothing),
            };
            return (attempt, step);
        };
        attempt.index = usize::try_from(keep_from - transcript.first_seq()).unwrap_or(usize::MAX);
        attempt.draft.pruned.retain(|call| call.reply_seq() >= keep_from);
        attempt.draft.keep_from = keep_from;
        attempt.draft.said = said;
        // Not even a summary without a word would be a gain: the model need not be asked.
        let step = match attempt.adopt_summary(transcript, String::new()) {
            true => CompactionStep::Summarise { source: attempt.summary_source(transcript) },
            false => CompactionStep::Reject(CompactionRejection::Nothing),
        };
        (attempt, step)
    }

    /// Tells how full the context was when it began.
    pub fn tokens_before(&self) -> ContextTokens {
        self.before
    }

    /// Goes on after the model was asked for a summary.
    pub fn on_summary(&mut self, transcript: &Transcript, reply: &Reply) -> CompactionStep {
        match (&reply.ended, self.stage) {
            (ReplyEnd::Normally, _) => {}
            (ReplyEnd::Failed(failure), AttemptStage::Summarising)
                if failure.kind == FailureKind::ContextOverflow =>
            {
                self.stage = AttemptStage::SummarisingLess;
                self.source_max /= 2;
                return CompactionStep::Summarise { source: self.summary_source(transcript) };
            }
            (ended, _) => return CompactionStep::Reject(rejection_for(ended)),
        }
        let summary = reply.text.trim();
        if summary.is_empty() {
            return CompactionStep::Reject(CompactionRejection::NotFinished);
        }
        if !self.adopt_summary(transcript, summary.to_owned()) {
            return CompactionStep::Reject(CompactionRejection::NotSmaller);
        }
        self.stage = AttemptStage::Verifying;
        CompactionStep::Verify { source: self.summary_source(transcript), summary: summary.to_owned() }
    }

    /// Goes on after the model was asked what its summary lacks. A summary that nobody could check is better than none.
    pub fn on_check(&mut self, transcript: &Transcript, reply: &Reply) -> CompactionStep {
        if reply.ended == ReplyEnd::Cancelled {
            return CompactionStep::Reject(CompactionRejection::Cancelled);
        }
        let missing = reply.text.trim();
        let is_complete = missing.trim_end_matches('.').eq_ignore_ascii_case(COMPLETE);
        if reply.ended == ReplyEnd::Normally && !missing.is_empty() && !is_complete {
            let summary = self.draft.summary.clone().unwrap_or_default();
            if !self.adopt_summary(transcript, format!("{summary}\n\nAlso:\n{missing}")) {
                self.adopt_summary(transcript, summary);
            }
        }
        CompactionStep::Commit(self.draft.clone())
    }

    /// Takes a summary into the draft; tells whether that makes the whole smaller.
    fn adopt_summary(&mut self, transcript: &Transcript, summary: String) -> bool {
        self.draft.summary = Some(summary);
        self.draft.tokens_after = scale_to_provider(self.before, measure_tokens(transcript, &self.draft));
        is_worthwhile(self.before, &self.draft)
    }

    fn summary_source(&self, transcript: &Transcript) -> String {
        render_source(transcript, self.index, self.source_max)
    }
}

impl Compaction {
    /// Lets the model begin afresh: it sees nothing of what was said. `None` when it sees nothing already.
    pub fn for_clear(transcript: &Transcript) -> Option<Self> {
        let before = transcript.context_tokens();
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
        all.tokens_after = scale_to_provider(before, measure_tokens(transcript, &all));
        let sees_something = !transcript.entries().is_empty() || transcript.has_summary_message();
        sees_something.then_some(all)
    }
}

fn rejection_for(ended: &ReplyEnd) -> CompactionRejection {
    match ended {
        ReplyEnd::Cancelled => CompactionRejection::Cancelled,
        ReplyEnd::Failed(failure) => CompactionRejection::Failed(failure.clone()),
        ReplyEnd::Normally | ReplyEnd::OutputLimit | ReplyEnd::SizeLimit | ReplyEnd::Refused => {
            CompactionRejection::NotFinished
        }
    }
}

/// As it is shown now, with less output.
fn prune_only(transcript: &Transcript, pruned: &[CallId], tokens_before: u64) -> Compaction {
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
fn measure_tokens(transcript: &Transcript, by: &Compaction) -> u64 {
    let index = usize::try_from(by.keep_from.saturating_sub(transcript.first_seq())).unwrap_or(usize::MAX);
    let kept = transcript.entries().iter().skip(index);
    let line = size::estimate_result_tokens(&removed_output());
    let kept: u64 = kept
        .map(|entry| match entry {
            TranscriptEntry::Result { call, .. } if by.pruned.contains(call) => line,
            TranscriptEntry::Result { .. } | TranscriptEntry::Prompt(_) | TranscriptEntry::Reply(_) => {
                size::estimate_entry_tokens(entry)
            }
        })
        .sum();
    let said: Vec<&Prompt> = by.said.iter().filter_map(|place| transcript.prompt_at(*place)).collect();
    let front = match (said.is_empty(), &by.summary) {
        (true, None) => 0,
        (_, summary) => size::estimate_prompt_tokens(&summary_message(said, summary.as_deref())),
    };
    transcript.overhead_tokens() + front + kept
}

/// Brings our measure of what is left to the provider's count of what there was.
fn scale_to_provider(before: ContextTokens, measured: u64) -> u64 {
    scale_by_ratio(measured, (before.tokens, before.measured))
}

fn scale_by_ratio(number: u64, (to, from): (u64, u64)) -> u64 {
    let scaled = u128::from(number) * u128::from(to) / u128::from(from.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

fn is_worthwhile(before: ContextTokens, draft: &Compaction) -> bool {
    let most = u128::from(before.tokens) * u128::from(100 - WIN_MIN) / 100;
    u128::from(draft.tokens_after) <= most && draft.tokens_after < before.tokens
}
