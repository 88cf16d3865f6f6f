//! The end of a turn: its outcome, its reason, and what the exit of the program says about it.

use std::time::Duration;

use crate::{Failure, FailureKind};

/// The outcome of a child turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildOutcome {
    Completed,
    Failed,
    Cancelled,
}

/// The end of a child turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildTurnEnd {
    pub outcome: ChildOutcome,
    /// The error, or a note on the answer.
    pub reason: Option<String>,
}

/// The reason of an agent for the end of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildStopReason {
    EndTurn,
    MaxTokens,
    MaxTurnRequests,
    Refusal,
    Cancelled,
}

/// The end of a child's program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChildExit {
    /// The status of a program that exited by itself.
    pub status: Option<ChildExitStatus>,
    /// The first output that is not a message of the protocol.
    pub stray_line: Option<String>,
    /// The end of its stderr.
    pub stderr: String,
}

/// The exit status of a child's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildExitStatus {
    /// The exit code.
    Exited(i32),
    /// The signal that ended it.
    Signalled(i32),
}

impl ChildTurnEnd {
    pub(super) fn cancelled() -> Self {
        Self { outcome: ChildOutcome::Cancelled, reason: None }
    }

    pub(super) fn failed(reason: impl Into<String>) -> Self {
        Self { outcome: ChildOutcome::Failed, reason: Some(reason.into()) }
    }

    /// The end of a turn that was not cancelled from here.
    pub(super) fn from_stop_reason(reason: ChildStopReason) -> Self {
        let completed =
            |note: Option<&str>| Self { outcome: ChildOutcome::Completed, reason: note.map(str::to_owned) };
        match reason {
            ChildStopReason::EndTurn => completed(None),
            ChildStopReason::MaxTokens => completed(Some("its answer was truncated at the output limit")),
            ChildStopReason::MaxTurnRequests => {
                completed(Some("its turn reached a limit before it was done"))
            }
            ChildStopReason::Refusal => Self::failed("its model refused"),
            ChildStopReason::Cancelled => {
                Self::failed("it stopped on its own, as some agents do after a rejected request")
            }
        }
    }

    /// Adds what the exit of the program says.
    pub(super) fn with_exit(self, exit: &ChildExit) -> Self {
        let Some(mut reason) = self.reason else { return self };
        match exit.status {
            Some(ChildExitStatus::Exited(code)) => {
                reason.push_str(&format!(" It ended with exit code {code}."));
            }
            Some(ChildExitStatus::Signalled(signal)) => {
                reason.push_str(&format!(" It was ended by signal {signal}."));
            }
            None => {}
        }
        if let Some(line) = exit.stray_line.as_ref().filter(|line| !reason.contains(*line)) {
            reason.push_str(&format!(" It printed a line that is not a protocol message: {line}"));
        }
        if !exit.stderr.is_empty() {
            reason.push_str(&format!("\nThe end of its stderr:\n{}", exit.stderr));
        }
        Self { reason: Some(reason), ..self }
    }
}

/// Returns the sentence about a failure, and whether the connection is lost.
pub(super) fn describe_failure(failure: &Failure) -> (String, bool) {
    let sentence = failure.message.trim_end();
    let punctuation = if sentence.ends_with(['.', '!', '?']) { "" } else { "." };
    (format!("{sentence}{punctuation}"), failure.kind == FailureKind::Connection)
}

pub(super) fn timeout_reason(time_max: Duration) -> String {
    let minutes = time_max.as_secs().div_ceil(60);
    format!("it ran for {minutes} min, the limit of agents.max_minutes")
}
