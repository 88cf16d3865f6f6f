//! The state machine of a turn. Pure: the agent performs a [`TurnAction`] and reports the result.

mod announcement;
mod equal_calls;
mod limits;
mod repetition;

use crate::{
    CompactionTrigger, ContextTokens, Failure, FailureKind, Reply, ReplyEnd, ToolCall, TranscriptEntry,
};

pub use announcement::ends_with_announcement;
pub use equal_calls::{AnsweredCall, count_equal_calls, note_equal_calls};
pub use limits::TurnLimits;
pub use repetition::RepeatedRound;

/// The part of the limit by which a context must grow before another compaction in the same turn.
const GROWTH_MIN_PART: u64 = 10;

/// Limit of consecutive continuations of interrupted replies. A connection that fails each time is unusable.
const RESUMES_MAX: u32 = 3;

/// The next step of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnAction {
    /// Request a reply of the model.
    RequestReply,
    /// Compact the conversation and report.
    Compact(CompactionTrigger),
    /// Run these calls and report.
    Run(Vec<ToolCall>),
    /// The reply was interrupted after a part was shown: keep that part and request a continuation.
    Resume(ReplyResume),
    /// Ask the user whether a repeating model may continue, and report.
    Confirm(RepeatedRound),
    /// Tell the user that the model makes the same call again, then end the turn.
    StopRepeating,
    /// The model has finished: look for more work and report.
    Settle(SettleCheck),
    /// End the turn.
    End(TurnEnd),
}

/// A check for more work after the model has finished, in the order in which they are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettleCheck {
    /// Append the steering input and the messages of tasks that wait.
    Input,
    /// Wait for the end of a task, if the turn lasts as long as its tasks.
    Tasks,
    /// Ask the model, once, for what it only announced.
    Announcement,
    /// Run the stop hooks, which have let the turn continue this many times.
    Hooks {
        /// The number of times so far.
        n_continuations: u32,
    },
}

/// The result of a [`SettleCheck`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettleFinding {
    /// There is nothing more to do.
    Nothing,
    /// Input was appended, a task ended, or a hook lets the turn continue.
    MoreWork,
    /// The turn was cancelled meanwhile.
    Cancelled,
}

/// The state of a turn after its calls have results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallsReport {
    /// The turn was cancelled.
    pub is_cancelled: bool,
    /// A hook or a workflow step ended the turn, or the user gives instructions with the next prompt.
    pub must_stop: bool,
    /// The most times that a call was made with the same result; see [`count_equal_calls`].
    pub n_equal_calls: usize,
}

/// The continuation of an interrupted reply.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplyResume {
    /// The reason of the interruption.
    pub failure: Failure,
    /// The number of consecutive attempts, from 1.
    pub attempt: u32,
    /// The maximum number of attempts.
    pub attempts_max: u32,
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnEnd {
    /// The model has finished.
    Completed,
    /// The last reply was truncated by the output limit or by Crow's size limit.
    OutputLimit,
    /// The limit of model requests was reached.
    RequestLimit,
    /// The model repeated itself, and the user did not let it continue.
    Repetition,
    /// The provider's filter withheld the answer.
    Refused,
    /// The user cancelled the turn.
    Cancelled,
    /// A failure.
    Failed(Failure),
}

/// The result of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactionOutcome {
    /// The conversation was compacted.
    Compacted,
    /// Nothing could be removed, without a model request.
    NothingToCompact,
    /// It was rejected, or failed.
    Failed,
    /// The user cancelled it.
    Cancelled,
}

/// A turn: from a prompt to its end.
#[derive(Debug)]
pub struct Turn {
    limits: TurnLimits,
    n_requests: u32,
    /// Whether the turn may compact.
    compaction_allowance: CompactionAllowance,
    /// The provider's rejection of the context size, until a reply succeeds.
    overflow_failure: Option<Failure>,
    /// Consecutive interrupted replies.
    n_resumes: u32,
    /// Times that stop hooks let the turn continue.
    n_continuations: u32,
    /// The model was asked for what it announced.
    is_nudged: bool,
}

/// Whether a turn may compact the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CompactionAllowance {
    Allowed,
    /// Above this context size in our estimate: a provider's count may never decrease.
    AboveSize(u64),
    /// An attempt failed, and another would fail as well.
    Denied,
}

impl Turn {
    /// Starts a turn, whose prompt is stored already.
    pub fn start(limits: TurnLimits) -> (Self, TurnAction) {
        (
            Self {
                limits,
                n_requests: 1,
                compaction_allowance: CompactionAllowance::Allowed,
                overflow_failure: None,
                n_resumes: 0,
                n_continuations: 0,
                is_nudged: false,
            },
            TurnAction::RequestReply,
        )
    }

    /// Whether a context is above the limit and is compacted before the next model request.
    pub fn needs_compaction(&self, context: ContextTokens, limit: u64) -> bool {
        let is_allowed = match self.compaction_allowance {
            CompactionAllowance::Allowed => true,
            CompactionAllowance::AboveSize(measured) => {
                context.measured > measured.saturating_add(limit / GROWTH_MIN_PART)
            }
            CompactionAllowance::Denied => false,
        };
        is_allowed && context.tokens > limit
    }

    /// Decides after a compaction; `measured` is the estimated context size now.
    pub fn on_compacted(&mut self, outcome: CompactionOutcome, measured: u64) -> TurnAction {
        self.compaction_allowance = match outcome {
            CompactionOutcome::Compacted | CompactionOutcome::NothingToCompact => {
                CompactionAllowance::AboveSize(measured)
            }
            CompactionOutcome::Failed => CompactionAllowance::Denied,
            CompactionOutcome::Cancelled => return TurnAction::End(TurnEnd::Cancelled),
        };
        match &self.overflow_failure {
            Some(failure) if outcome != CompactionOutcome::Compacted => {
                TurnAction::End(TurnEnd::Failed(failure.clone()))
            }
            Some(_) | None => TurnAction::RequestReply,
        }
    }

    /// Decides after a reply.
    pub fn on_reply(&mut self, reply: &Reply) -> TurnAction {
        if let ReplyEnd::Failed(failure) = &reply.end
            && failure.kind == FailureKind::ContextOverflow
            && reply.is_empty()
            && self.overflow_failure.is_none()
            && self.compaction_allowance != CompactionAllowance::Denied
        {
            self.overflow_failure = Some(failure.clone());
            return TurnAction::Compact(CompactionTrigger::Overflow);
        }
        self.overflow_failure = None;
        if let Some(resume) = self.resume_reply(reply) {
            return TurnAction::Resume(resume);
        }
        match &reply.end {
            ReplyEnd::Complete if reply.calls.is_empty() => TurnAction::Settle(SettleCheck::Input),
            ReplyEnd::OutputLimit | ReplyEnd::SizeLimit if reply.calls.is_empty() => {
                TurnAction::End(TurnEnd::OutputLimit)
            }
            // A truncated call still goes to the runner, which returns an error result.
            ReplyEnd::Complete | ReplyEnd::OutputLimit | ReplyEnd::SizeLimit => {
                TurnAction::Run(reply.calls.clone())
            }
            ReplyEnd::Refused => TurnAction::End(TurnEnd::Refused),
            ReplyEnd::Cancelled => TurnAction::End(TurnEnd::Cancelled),
            ReplyEnd::Failed(failure) => TurnAction::End(TurnEnd::Failed(failure.clone())),
        }
    }

    /// Decides after all calls of a reply have results; `entries` is the conversation with them.
    pub fn on_results(&mut self, report: CallsReport, entries: &[TranscriptEntry]) -> TurnAction {
        if report.is_cancelled {
            return TurnAction::End(TurnEnd::Cancelled);
        }
        match (self.request_again(), repetition::find_repeated_round(entries)) {
            (TurnAction::RequestReply, _) if report.must_stop => TurnAction::End(TurnEnd::Completed),
            (TurnAction::RequestReply, _) if report.n_equal_calls >= equal_calls::CALLS_MAX => {
                TurnAction::StopRepeating
            }
            (TurnAction::RequestReply, Some(repeated)) => TurnAction::Confirm(repeated),
            (next, _) => next,
        }
    }

    /// Decides after the user's answer about a repeating model.
    pub fn on_answer(&self, is_cancelled: bool, may_continue: bool) -> TurnAction {
        match (is_cancelled, may_continue) {
            (true, _) => TurnAction::End(TurnEnd::Cancelled),
            (false, true) => TurnAction::RequestReply,
            (false, false) => TurnAction::End(TurnEnd::Repetition),
        }
    }

    /// Decides after a check for more work.
    pub fn on_settled(&mut self, check: SettleCheck, finding: SettleFinding) -> TurnAction {
        match (check, finding) {
            (_, SettleFinding::Cancelled) => TurnAction::End(TurnEnd::Cancelled),
            (SettleCheck::Input, SettleFinding::MoreWork) => self.request_again(),
            (SettleCheck::Input, SettleFinding::Nothing) => TurnAction::Settle(SettleCheck::Tasks),
            (SettleCheck::Tasks, SettleFinding::MoreWork) => TurnAction::Settle(SettleCheck::Input),
            (SettleCheck::Tasks, SettleFinding::Nothing) if !self.is_nudged => {
                TurnAction::Settle(SettleCheck::Announcement)
            }
            (SettleCheck::Announcement, SettleFinding::MoreWork) => {
                self.is_nudged = true;
                self.request_again()
            }
            (SettleCheck::Tasks | SettleCheck::Announcement, SettleFinding::Nothing) => {
                TurnAction::Settle(SettleCheck::Hooks { n_continuations: self.n_continuations })
            }
            (SettleCheck::Hooks { .. }, SettleFinding::MoreWork) => {
                self.n_continuations += 1;
                self.request_again()
            }
            (SettleCheck::Hooks { .. }, SettleFinding::Nothing) => TurnAction::End(TurnEnd::Completed),
        }
    }

    /// Returns the continuation of a reply that was interrupted for a temporary reason: it was shown already, so it
    /// cannot be requested again.
    fn resume_reply(&mut self, reply: &Reply) -> Option<ReplyResume> {
        let failure = match &reply.end {
            ReplyEnd::Failed(failure) if !reply.is_empty() => failure,
            ReplyEnd::Failed(_) => return None,
            ReplyEnd::Complete
            | ReplyEnd::OutputLimit
            | ReplyEnd::SizeLimit
            | ReplyEnd::Refused
            | ReplyEnd::Cancelled => {
                self.n_resumes = 0;
                return None;
            }
        };
        let may_pass = matches!(failure.kind, FailureKind::Connection | FailureKind::ProviderOverloaded);
        if !may_pass || self.n_resumes == RESUMES_MAX || self.request_again() != TurnAction::RequestReply {
            return None;
        }
        self.n_resumes += 1;
        Some(ReplyResume { failure: failure.clone(), attempt: self.n_resumes, attempts_max: RESUMES_MAX })
    }

    fn request_again(&mut self) -> TurnAction {
        if self.n_requests >= self.limits.requests_max {
            return TurnAction::End(TurnEnd::RequestLimit);
        }
        self.n_requests += 1;
        TurnAction::RequestReply
    }
}

#[cfg(test)]
mod tests;
