//! One compaction attempt, as a state machine. It ends after at most three model requests and never makes the context
//! larger.

use super::{
    Compaction, CompactionTrigger,
    cut_point::{CutPoint, find_cut},
    prune::select_pruned,
    source::render_source,
    summary_message::{removed_output, summary_message},
    token_estimate::{self, ContextTokens},
};
use crate::{CallId, Failure, FailureKind, Prompt, Reply, ReplyEnd, Transcript, TranscriptEntry};

/// The minimum saving of a compaction, in percent of the tokens before it.
const SAVINGS_MIN_PERCENT: u64 = 10;

/// The context size that is accepted after pruning alone, in percent of the limit; above it, pruning would soon be
/// needed again.
const PRUNED_MAX_PERCENT: u64 = 80;

/// The part of the limit for the summary's input, in percent; the rest is for the summary, which the verification
/// request also contains.
const SOURCE_PERCENT: u64 = 70;

/// The model's answer to the verification if nothing is missing.
const COMPLETE: &str = "complete";

/// The request that verifies a summary; [`CompactionAttempt::on_check`] expects its keyword.
pub const SUMMARY_CHECK: &str = "Hold your notes against what you read. List what they lack that the agent needs, above all facts, \
                     names, numbers, paths and constraints that the person stated; write only what is missing. If nothing \
                     is missing, answer with the one word COMPLETE.";

/// The next step of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum CompactionStep {
    /// Request a summary of this text, then call [`CompactionAttempt::on_summary`].
    Summarise {
        /// The text to summarize.
        source: String,
    },
    /// Ask the model what its summary lacks, then call [`CompactionAttempt::on_check`].
    Verify {
        /// The summarized text.
        source: String,
        /// The model's summary.
        summary: String,
    },
    /// Store this compaction, then apply it.
    Commit(Compaction),
    /// Change nothing.
    Reject(CompactionRejection),
}

/// The reason why an attempt changes nothing.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CompactionRejection {
    /// No entries or output can be removed.
    #[error("there is nothing to compact yet")]
    NothingToCompact,
    /// The result does not save enough tokens.
    #[error("the result would not be smaller")]
    NotSmaller,
    /// The summary is empty or incomplete.
    #[error("the model did not finish its summary")]
    IncompleteSummary,
    /// The user cancelled the compaction.
    #[error("it was cancelled")]
    Cancelled,
    /// The model request failed.
    #[error("{0}")]
    Failed(Failure),
}

/// A running attempt.
#[derive(Debug)]
pub struct CompactionAttempt {
    draft: Compaction,
    tokens_before: ContextTokens,
    index: usize,
    source_max: usize,
    stage: AttemptStage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AttemptStage {
    /// The model summarizes the longest allowed input.
    Summarising,
    /// The input was too long; the model summarizes half of it.
    SummarisingHalf,
    /// The model checks the summary for omissions.
    Verifying,
}

impl CompactionAttempt {
    /// Starts an attempt: prunes output, and decides whether that is enough. No call may be open.
    pub fn start(transcript: &Transcript, trigger: CompactionTrigger, limit: u64) -> (Self, CompactionStep) {
        let before = transcript.context_tokens();
        let limit = match trigger {
            CompactionTrigger::LimitReached | CompactionTrigger::Manual => limit,
            // The limit is wrong if the provider rejects a request below it.
            CompactionTrigger::Overflow => limit.min(before.tokens),
        };
        let pruned_max = limit.saturating_mul(PRUNED_MAX_PERCENT) / 100;
        // From here on, all sizes and the limit are in our own estimate.
        let limit = scale_to_estimate(before, limit);
        let pruned = select_pruned(transcript, trigger, limit);
        let mut draft = prune_only(transcript, &pruned, before.tokens);
        let has_pruned =
            draft.pruned.len() > transcript.compaction().map_or(0, |compaction| compaction.pruned.len());
        draft.tokens_after = scale_to_provider(before, measure_tokens(transcript, &draft));
        let is_smaller = has_pruned && is_worthwhile(before, &draft);
        let source_max = token_estimate::tokens_to_bytes(limit.saturating_mul(SOURCE_PERCENT) / 100);
        let source_max = if trigger == CompactionTrigger::Overflow { source_max / 2 } else { source_max };
        let stage = AttemptStage::Summarising;
        let mut attempt = Self { draft, tokens_before: before, index: 0, source_max, stage };
        if is_smaller
            && attempt.draft.tokens_after <= pruned_max
            && trigger == CompactionTrigger::LimitReached
        {
            let commit = CompactionStep::Commit(attempt.draft.clone());
            return (attempt, commit);
        }
        let Some(CutPoint { keep_from, verbatim_prompts }) = find_cut(transcript, trigger, limit, &pruned)
        else {
            let step = match is_smaller {
                true => CompactionStep::Commit(attempt.draft.clone()),
                false => CompactionStep::Reject(CompactionRejection::NothingToCompact),
            };
            return (attempt, step);
        };
        attempt.index = usize::try_from(keep_from - transcript.first_seq()).unwrap_or(usize::MAX);
        attempt.draft.pruned.retain(|call| call.reply_seq() >= keep_from);
        attempt.draft.keep_from = keep_from;
        attempt.draft.verbatim_prompts = verbatim_prompts;
        // If even an empty summary would not save enough, no model request is needed.
        let step = match attempt.adopt_summary(transcript, String::new()) {
            true => CompactionStep::Summarise { source: attempt.summary_source(transcript) },
            false => CompactionStep::Reject(CompactionRejection::NothingToCompact),
        };
        (attempt, step)
    }

    /// Returns the context size before the attempt.
    pub fn tokens_before(&self) -> ContextTokens {
        self.tokens_before
    }

    /// Continues after the summary request.
    pub fn on_summary(&mut self, transcript: &Transcript, reply: &Reply) -> CompactionStep {
        match (&reply.end, self.stage) {
            (ReplyEnd::Complete, _) => {}
            (ReplyEnd::Failed(failure), AttemptStage::Summarising)
                if failure.kind == FailureKind::ContextOverflow =>
            {
                self.stage = AttemptStage::SummarisingHalf;
                self.source_max /= 2;
                return CompactionStep::Summarise { source: self.summary_source(transcript) };
            }
            (end, _) => return CompactionStep::Reject(rejection_for(end)),
        }
        let summary = reply.text.trim();
        if summary.is_empty() {
            return CompactionStep::Reject(CompactionRejection::IncompleteSummary);
        }
        if !self.adopt_summary(transcript, summary.to_owned()) {
            return CompactionStep::Reject(CompactionRejection::NotSmaller);
        }
        self.stage = AttemptStage::Verifying;
        CompactionStep::Verify { source: self.summary_source(transcript), summary: summary.to_owned() }
    }

    /// Continues after the verification request. An unverified summary is better than none.
    pub fn on_check(&mut self, transcript: &Transcript, reply: &Reply) -> CompactionStep {
        if reply.end == ReplyEnd::Cancelled {
            return CompactionStep::Reject(CompactionRejection::Cancelled);
        }
        let missing = reply.text.trim();
        let is_complete = missing.trim_end_matches('.').eq_ignore_ascii_case(COMPLETE);
        if reply.end == ReplyEnd::Complete && !missing.is_empty() && !is_complete {
            let summary = self.draft.summary.clone().unwrap_or_default();
            if !self.adopt_summary(transcript, format!("{summary}\n\nAlso:\n{missing}")) {
                self.adopt_summary(transcript, summary);
            }
        }
        CompactionStep::Commit(self.draft.clone())
    }

    /// Adds a summary to the draft; returns whether the result is small enough.
    fn adopt_summary(&mut self, transcript: &Transcript, summary: String) -> bool {
        self.draft.summary = Some(summary);
        self.draft.tokens_after =
            scale_to_provider(self.tokens_before, measure_tokens(transcript, &self.draft));
        is_worthwhile(self.tokens_before, &self.draft)
    }

    fn summary_source(&self, transcript: &Transcript) -> String {
        render_source(transcript, self.index, self.source_max)
    }
}

impl Compaction {
    /// Returns a compaction that removes everything from the model's view; `None` if the view is empty already.
    pub fn for_clear(transcript: &Transcript) -> Option<Self> {
        let before = transcript.context_tokens();
        let at = transcript.next_seq();
        let mut compaction = Self {
            at_seq: at,
            keep_from: at,
            verbatim_prompts: Vec::new(),
            summary: None,
            pruned: Vec::new(),
            tokens_before: before.tokens,
            tokens_after: 0,
            began_ms: 0,
        };
        compaction.tokens_after = scale_to_provider(before, measure_tokens(transcript, &compaction));
        let sees_something = !transcript.entries().is_empty() || transcript.has_summary_message();
        sees_something.then_some(compaction)
    }

    /// Whether the model sees nothing of what was before.
    pub fn is_clear(&self) -> bool {
        self.summary.is_none() && self.keep_from == self.at_seq
    }
}

fn rejection_for(end: &ReplyEnd) -> CompactionRejection {
    match end {
        ReplyEnd::Cancelled => CompactionRejection::Cancelled,
        ReplyEnd::Failed(failure) => CompactionRejection::Failed(failure.clone()),
        ReplyEnd::Complete | ReplyEnd::OutputLimit | ReplyEnd::SizeLimit | ReplyEnd::Refused => {
            CompactionRejection::IncompleteSummary
        }
    }
}

/// Returns the current view with more output pruned.
fn prune_only(transcript: &Transcript, pruned: &[CallId], tokens_before: u64) -> Compaction {
    let current = transcript.compaction();
    Compaction {
        at_seq: transcript.next_seq(),
        keep_from: transcript.first_seq(),
        verbatim_prompts: current.map(|compaction| compaction.verbatim_prompts.clone()).unwrap_or_default(),
        summary: current.and_then(|compaction| compaction.summary.clone()),
        pruned: pruned.to_vec(),
        tokens_before,
        tokens_after: tokens_before,
        began_ms: 0,
    }
}

/// Estimates the tokens of the model's view.
fn measure_tokens(transcript: &Transcript, compaction: &Compaction) -> u64 {
    let index =
        usize::try_from(compaction.keep_from.saturating_sub(transcript.first_seq())).unwrap_or(usize::MAX);
    let kept = transcript.entries().iter().skip(index);
    let removed_tokens = token_estimate::estimate_result_tokens(&removed_output());
    let kept: u64 = kept
        .map(|entry| match entry {
            TranscriptEntry::Result { call, .. } if compaction.pruned.contains(call) => removed_tokens,
            TranscriptEntry::Result { .. } | TranscriptEntry::Prompt(_) | TranscriptEntry::Reply(_) => {
                token_estimate::estimate_entry_tokens(entry)
            }
        })
        .sum();
    let prompts: Vec<&Prompt> =
        compaction.verbatim_prompts.iter().filter_map(|seq| transcript.prompt_at(*seq)).collect();
    let summary_tokens = match (prompts.is_empty(), &compaction.summary) {
        (true, None) => 0,
        (_, summary) => {
            let context = transcript.context_before(index);
            let message = summary_message(context, prompts, summary.as_deref());
            token_estimate::estimate_prompt_tokens(&message)
        }
    };
    transcript.overhead_tokens() + summary_tokens + kept
}

/// Scales our estimate by the provider's count of the same context.
fn scale_to_provider(before: ContextTokens, measured: u64) -> u64 {
    multiply_divide(measured, before.tokens, before.measured)
}

/// Scales a provider's count by our estimate of the same context.
fn scale_to_estimate(before: ContextTokens, tokens: u64) -> u64 {
    multiply_divide(tokens, before.measured, before.tokens)
}

fn multiply_divide(number: u64, factor: u64, divisor: u64) -> u64 {
    let scaled = u128::from(number) * u128::from(factor) / u128::from(divisor.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

fn is_worthwhile(before: ContextTokens, draft: &Compaction) -> bool {
    let tokens_max = u128::from(before.tokens) * u128::from(100 - SAVINGS_MIN_PERCENT) / 100;
    u128::from(draft.tokens_after) <= tokens_max && draft.tokens_after < before.tokens
}
