//! The reasons why an agent did not do what was asked.

use std::fmt;
use std::time::Duration;

use crow_core::{Failure, FailureKind};

/// The reason why a request to an agent failed. Its text is one line and contains no key.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The program did not start.
    #[error("the agent {agent} could not be started: {reason}")]
    NotStarted {
        agent: String,
        /// The reason, such as `there is no program NAME`.
        reason: String,
    },
    /// The address could not be reached, or did not accept the token.
    #[error("the agent {agent} cannot be reached: {reason}")]
    NotReached { agent: String, reason: String },
    /// The agent answered with an error. `failure.kind` is the kind of Crow's own errors, and derived from the code of
    /// the error for other agents.
    #[error("{failure}")]
    Rejected { failure: Failure },
    /// The agent ended or the connection was lost; the text has its exit and the end of its stderr.
    #[error("{description}")]
    Lost { description: String },
    /// The agent did not answer in time. The turn was cancelled, if it was one.
    #[error("the agent did not answer `{method}` within {} s", .time_max.as_secs_f32())]
    TimedOut { method: &'static str, time_max: Duration },
    /// The agent was shut down from here.
    #[error("the agent was shut down")]
    ShutDown,
}

/// The sentence of `Display`: it is what a program prints whose `main` returns the error.
impl fmt::Debug for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl AgentError {
    /// Returns the kind of an error that the agent answered with.
    pub fn kind(&self) -> Option<FailureKind> {
        match self {
            Self::Rejected { failure } => Some(failure.kind),
            Self::NotStarted { .. }
            | Self::NotReached { .. }
            | Self::Lost { .. }
            | Self::TimedOut { .. }
            | Self::ShutDown => None,
        }
    }
}
