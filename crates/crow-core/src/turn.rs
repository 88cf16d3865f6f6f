//! What a turn does next. Pure: the shell above performs what [`TurnAction`] says and reports back.

mod repeat;

use crate::{
    CompactionTrigger, ContextTokens, Failure, FailureKind, Reply, ReplyEnd, ToolCall, TranscriptEntry,
};

pub use repeat::RepeatedRound;

/// Part of the limit by which a context has to grow before it is compacted once more in the same turn.
const GROWN_PART: u64 = 10;

/// How often in a row a reply that broke off is gone on with. A connection that breaks each time is none.
const RESUMED_MAX: u32 = 3;

/// How far one turn may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnLimits {
    /// Model calls in one turn.
    pub requests_max: u32,
    /// Tokens in context beyond which the conversation is compacted.
    pub compact_tokens_max: u64,
}

/// The next step of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnAction {
    /// Ask the model.
    Ask,
    /// Make the conversation shorter and report.
    Compact(CompactionTrigger),
    /// Run these calls and report.
    Run(Vec<ToolCall>),
    /// The reply broke off after somebody saw some of it: keep that, have the model go on, and ask.
    Resume(ReplyResume),
    /// Ask the person whether a model that goes in circles is to go on, and report.
    Confirm(RepeatedRound),
    /// Close what is open and stop.
    End(TurnEnd),
}

/// A reply that is gone on with.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplyResume {
    /// What it broke off of.
    pub failure: Failure,
    /// Which time it is in a row, from 1.
    pub n_times: u32,
    /// How many times are tried.
    pub n_max: u32,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnEnd {
    /// The model has nothing more to do.
    Done,
    /// The output limit, or Crow's own limit, cut the last reply.
    OutputLimit,
    /// The limit of model calls was reached.
    RequestLimit,
    /// The model went in circles, and nobody let it go on.
    Repeating,
    /// The provider's filter withheld the answer.
    Refused,
    /// The person stopped it.
    Cancelled,
    /// Something failed.
    Failed(Failure),
}

/// What came of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactionOutcome {
    /// The conversation is shorter.
    Done,
    /// There was nothing to leave out, and the model was not asked.
    Nothing,
    /// It was rejected, or failed.
    Failed,
    /// The person stopped it.
    Cancelled,
}

/// One turn: from a prompt to its end.
#[derive(Debug)]
pub struct Turn {
    limits: TurnLimits,
    n_asked: u32,
    /// Whether the turn may try to compact.
    compacts: CompactionAllowance,
    /// What the provider refused, until a reply comes through.
    overflow: Option<Failure>,
    /// Replies in a row that broke off.
    n_resumed: u32,
}

/// Whether a turn may try to make the conversation shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CompactionAllowance {
    Yes,
    /// Once the context is larger than this, by our own measure: a provider's count may never sink.
    Beyond(u64),
    /// An attempt failed, and another would fail as well.
    No,
}

impl Turn {
    /// Starts a turn, whose prompt is on disk already.
    pub fn start(limits: TurnLimits) -> (Self, TurnAction) {
        (
            Self { limits, n_asked: 1, compacts: CompactionAllowance::Yes, overflow: None, n_resumed: 0 },
            TurnAction::Ask,
        )
    }

    /// Decides right before the model is asked: a context beyond the limit is compacted first.
    pub fn before_asking(&self, fill: ContextTokens, limit: u64) -> TurnAction {
        let may = match self.compacts {
            CompactionAllowance::Yes => true,
            CompactionAllowance::Beyond(measured) => {
                fill.measured > measured.saturating_add(limit / GROWN_PART)
            }
            CompactionAllowance::No => false,
        };
        if may && fill.tokens > limit {
            TurnAction::Compact(CompactionTrigger::Full)
        } else {
            TurnAction::Ask
        }
    }

    /// Decides after a compaction; `measured` is how large the context is now, by our own measure.
    pub fn on_compacted(&mut self, compacted: CompactionOutcome, measured: u64) -> TurnAction {
        self.compacts = match compacted {
            CompactionOutcome::Done | CompactionOutcome::Nothing => CompactionAllowance::Beyond(measured),
            CompactionOutcome::Failed => CompactionAllowance::No,
            CompactionOutcome::Cancelled => return TurnAction::End(TurnEnd::Cancelled),
        };
        match &self.overflow {
            Some(failure) if compacted != CompactionOutcome::Done => {
                TurnAction::End(TurnEnd::Failed(failure.clone()))
            }
            Some(_) | None => TurnAction::Ask,
        }
    }

    /// Decides after a reply.
    pub fn on_reply(&mut self, reply: &Reply) -> TurnAction {
        if let ReplyEnd::Failed(failure) = &reply.ended
            && failure.kind == FailureKind::ContextOverflow
            && reply.is_empty()
            && self.overflow.is_none()
            && self.compacts != CompactionAllowance::No
        {
            self.overflow = Some(failure.clone());
            return TurnAction::Compact(CompactionTrigger::Overflow);
        }
        self.overflow = None;
        if let Some(resume) = self.resume_reply(reply) {
            return TurnAction::Resume(resume);
        }
        match &reply.ended {
            ReplyEnd::Normally if reply.calls.is_empty() => TurnAction::End(TurnEnd::Done),
            ReplyEnd::OutputLimit | ReplyEnd::SizeLimit if reply.calls.is_empty() => {
                TurnAction::End(TurnEnd::OutputLimit)
            }
            // A call cut by a limit still goes to the runner, which answers it instead of running it.
            ReplyEnd::Normally | ReplyEnd::OutputLimit | ReplyEnd::SizeLimit => {
                TurnAction::Run(reply.calls.clone())
            }
            ReplyEnd::Refused => TurnAction::End(TurnEnd::Refused),
            ReplyEnd::Cancelled => TurnAction::End(TurnEnd::Cancelled),
            ReplyEnd::Failed(failure) => TurnAction::End(TurnEnd::Failed(failure.clone())),
        }
    }

    /// Decides after the calls of a reply all have results; `entries` is the conversation with them.
    pub fn on_results(&mut self, cancelled: bool, entries: &[TranscriptEntry]) -> TurnAction {
        if cancelled {
            return TurnAction::End(TurnEnd::Cancelled);
        }
        match (self.ask_again(), repeat::find_repeated_round(entries)) {
            (TurnAction::Ask, Some(repeated)) => TurnAction::Confirm(repeated),
            (next, _) => next,
        }
    }

    /// Decides after the person was asked about a model that goes in circles.
    pub fn on_answer(&self, cancelled: bool, goes_on: bool) -> TurnAction {
        match (cancelled, goes_on) {
            (true, _) => TurnAction::End(TurnEnd::Cancelled),
            (false, true) => TurnAction::Ask,
            (false, false) => TurnAction::End(TurnEnd::Repeating),
        }
    }

    /// Decides after the model was done and the person had said more meanwhile.
    pub fn on_steering_input(&mut self) -> TurnAction {
        self.ask_again()
    }

    /// What broke off for a reason that may pass is gone on with: it was seen, so it cannot be asked for again.
    fn resume_reply(&mut self, reply: &Reply) -> Option<ReplyResume> {
        let failure = match &reply.ended {
            ReplyEnd::Failed(failure) if !reply.is_empty() => failure,
            ReplyEnd::Failed(_) => return None,
            ReplyEnd::Normally
            | ReplyEnd::OutputLimit
            | ReplyEnd::SizeLimit
            | ReplyEnd::Refused
            | ReplyEnd::Cancelled => {
                self.n_resumed = 0;
                return None;
            }
        };
        let may_pass = matches!(failure.kind, FailureKind::Connection | FailureKind::ProviderOverloaded);
        if !may_pass || self.n_resumed == RESUMED_MAX || self.ask_again() != TurnAction::Ask {
            return None;
        }
        self.n_resumed += 1;
        Some(ReplyResume { failure: failure.clone(), n_times: self.n_resumed, n_max: RESUMED_MAX })
    }

    fn ask_again(&mut self) -> TurnAction {
        if self.n_asked >= self.limits.requests_max {
            return TurnAction::End(TurnEnd::RequestLimit);
        }
        self.n_asked += 1;
        TurnAction::Ask
    }
}

#[cfg(test)]
mod tests;
