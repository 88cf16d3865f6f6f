//! What a turn does next. Pure: the shell above performs what [`Next`] says and reports back.

use crate::{Call, Ended, Failure, FailureKind, Fill, Occasion, Reply};

/// Part of the limit by which a context has to grow before it is compacted once more in the same turn.
const GROWN_PART: u64 = 10;

/// How far one turn may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Model calls in one turn.
    pub requests_max: u32,
    /// Tokens in context beyond which the conversation is compacted.
    pub compact_tokens_max: u64,
}

/// The next step of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Ask the model.
    Ask,
    /// Make the conversation shorter and report.
    Compact(Occasion),
    /// Run these calls and report.
    Run(Vec<Call>),
    /// Close what is open and stop.
    End(TurnEnd),
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnEnd {
    /// The model has nothing more to do.
    Done,
    /// The output limit cut the last reply.
    OutputLimit,
    /// The limit of model calls was reached.
    RequestLimit,
    /// The provider's filter withheld the answer.
    Refused,
    /// The person stopped it.
    Cancelled,
    /// Something failed.
    Failed(Failure),
}

/// What came of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compacted {
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
    limits: Limits,
    n_asked: u32,
    /// Whether the turn may try to compact.
    compacts: Compacts,
    /// What the provider refused, until a reply comes through.
    overflow: Option<Failure>,
}

/// Whether a turn may try to make the conversation shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compacts {
    Yes,
    /// Once the context is larger than this, by our own measure: a provider's count may never sink.
    Beyond(u64),
    /// An attempt failed, and another would fail as well.
    No,
}

impl Turn {
    /// Starts a turn, whose prompt is on disk already.
    pub fn start(limits: Limits) -> (Self, Next) {
        (Self { limits, n_asked: 1, compacts: Compacts::Yes, overflow: None }, Next::Ask)
    }

    /// Decides right before the model is asked: a context beyond the limit is compacted first.
    pub fn before_asking(&self, fill: Fill, limit: u64) -> Next {
        let may = match self.compacts {
            Compacts::Yes => true,
            Compacts::Beyond(measured) => fill.measured > measured.saturating_add(limit / GROWN_PART),
            Compacts::No => false,
        };
        if may && fill.tokens > limit { Next::Compact(Occasion::Full) } else { Next::Ask }
    }

    /// Decides after a compaction; `measured` is how large the context is now, by our own measure.
    pub fn on_compacted(&mut self, compacted: Compacted, measured: u64) -> Next {
        self.compacts = match compacted {
            Compacted::Done | Compacted::Nothing => Compacts::Beyond(measured),
            Compacted::Failed => Compacts::No,
            Compacted::Cancelled => return Next::End(TurnEnd::Cancelled),
        };
        match &self.overflow {
            Some(failure) if compacted != Compacted::Done => Next::End(TurnEnd::Failed(failure.clone())),
            Some(_) | None => Next::Ask,
        }
    }

    /// Decides after a reply.
    pub fn on_reply(&mut self, reply: &Reply) -> Next {
        if let Ended::Failed(failure) = &reply.ended
            && failure.kind == FailureKind::ContextOverflow
            && reply.is_empty()
            && self.overflow.is_none()
            && self.compacts != Compacts::No
        {
            self.overflow = Some(failure.clone());
            return Next::Compact(Occasion::Overflow);
        }
        self.overflow = None;
        match &reply.ended {
            Ended::Normally if reply.calls.is_empty() => Next::End(TurnEnd::Done),
            Ended::OutputLimit if reply.calls.is_empty() => Next::End(TurnEnd::OutputLimit),
            // A call cut by the output limit still goes to the runner, which answers it instead of running it.
            Ended::Normally | Ended::OutputLimit => Next::Run(reply.calls.clone()),
            Ended::Refused => Next::End(TurnEnd::Refused),
            Ended::Cancelled => Next::End(TurnEnd::Cancelled),
            Ended::Failed(failure) => Next::End(TurnEnd::Failed(failure.clone())),
        }
    }

    /// Decides after the calls of a reply all have results.
    pub fn on_results(&mut self, cancelled: bool) -> Next {
        if cancelled {
            return Next::End(TurnEnd::Cancelled);
        }
        self.ask_again()
    }

    /// Decides after the model was done and the person had said more meanwhile.
    pub fn on_more_words(&mut self) -> Next {
        self.ask_again()
    }

    fn ask_again(&mut self) -> Next {
        if self.n_asked >= self.limits.requests_max {
            return Next::End(TurnEnd::RequestLimit);
        }
        self.n_asked += 1;
        Next::Ask
    }
}

#[cfg(test)]
mod tests;
