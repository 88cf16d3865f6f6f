//! What a turn does next. Pure: the shell above performs what [`Next`] says and reports back.

use crate::{Call, Ended, Failure, Reply};

/// How far one turn may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Model calls in one turn.
    pub requests_max: u32,
}

/// The next step of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Ask the model.
    Ask,
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

/// One turn: from a prompt to its end.
#[derive(Debug)]
pub struct Turn {
    limits: Limits,
    n_asked: u32,
}

impl Turn {
    /// Starts a turn, whose prompt is on disk already.
    pub fn start(limits: Limits) -> (Self, Next) {
        (Self { limits, n_asked: 1 }, Next::Ask)
    }

    /// Decides after a reply.
    pub fn on_reply(&self, reply: &Reply) -> Next {
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
