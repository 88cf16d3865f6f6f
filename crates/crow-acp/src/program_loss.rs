//! The loss of an agent that is a local program: what its exit and its output say about the reason.

use std::time::Duration;

use crow_core::{Failure, FailureKind};
use crow_process::ExitReason;
use tokio::time::timeout;

use crate::program::{AgentExit, AgentProgram};

/// Time an agent has to exit after closing its output: the exit code says more than the closed pipe.
const EXIT_WAIT: Duration = Duration::from_millis(500);

/// Lines of its stderr in a message; the log has the rest.
const STDERR_LINES_SHOWN: usize = 3;

/// A program whose connection was lost, and its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramLoss {
    pub failure: Failure,
    /// The exit reason of a program that exited by itself.
    pub exit_reason: Option<ExitReason>,
    pub exit: AgentExit,
}

impl ProgramLoss {
    /// Ends a program whose connection was lost.
    pub async fn collect(mut program: AgentProgram, failure: Failure) -> Self {
        // If we disconnect first, the exit code means nothing.
        let exit_reason = match failure.kind == FailureKind::Connection {
            true => timeout(EXIT_WAIT, program.wait_for_exit()).await.ok().flatten(),
            false => None,
        };
        Self { failure, exit_reason, exit: program.shut_down().await }
    }

    /// Describes how the agent ended and its last output. `phase` says when, such as `during the session`.
    pub fn describe(&self, name: &str, phase: &str) -> String {
        let mut text = match self.exit_reason {
            Some(ExitReason::Exited(code)) => format!("the agent {name} exited {phase} with code {code}"),
            Some(ExitReason::Signalled(signal)) => {
                format!("the agent {name} was killed {phase} by signal {signal}")
            }
            Some(ExitReason::TimedOut | ExitReason::Cancelled) | None => {
                format!("the agent {name} cannot be used: {}", self.failure.to_clause())
            }
        };
        let lines: Vec<&str> =
            self.exit.stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last_lines = &lines[lines.len().saturating_sub(STDERR_LINES_SHOWN)..];
        let is_in_message =
            |stray: &str| self.failure.kind == FailureKind::Protocol && self.failure.message.contains(stray);
        match (last_lines, &self.exit.stray_line) {
            ([], Some(stray)) if !is_in_message(stray) => {
                text += &format!("; it printed {stray:?}, which is not a protocol message");
            }
            ([], _) => {}
            (last_lines, _) => text += &format!("; its stderr: {}", last_lines.join("; ")),
        }
        text
    }
}
