//! One line of a result file.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

/// The beginning of every line, by which one that was not written to its end is recognized.
const LINE_START: &str = "{\"id\":\"";

/// The end of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum BatchTaskState {
    Done,
    /// It ended with an error, or reached a limit of its own.
    Failed,
    /// The batch ended before it. It is run again.
    Cancelled,
}

/// The result of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct TaskResult {
    pub(super) id: String,
    pub(super) state: BatchTaskState,
    /// The model's last message.
    pub(super) text: String,
    /// The session, if one was opened.
    pub(super) session: Option<String>,
    /// The branch with the work of a task in a worktree, unless nothing was changed.
    pub(super) branch: Option<String>,
    /// Its worktree, if that was kept for files that are on no branch.
    pub(super) worktree: Option<String>,
    /// Tokens used, if the agent said so.
    pub(super) tokens: Option<u64>,
    pub(super) seconds: f64,
    pub(super) error: Option<String>,
}

/// A result of an earlier run. Its other fields may have been removed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct EarlierResult {
    pub(super) id: String,
    pub(super) state: BatchTaskState,
    pub(super) tokens: Option<u64>,
}

/// The last line of a result file, which has no line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UnendedLine {
    /// Only its line break is missing.
    Complete(EarlierResult),
    /// The beginning of a result, whose task is run again.
    Truncated,
    NoResult,
}

impl BatchTaskState {
    pub(super) const ALL: [Self; 3] = [Self::Done, Self::Failed, Self::Cancelled];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Parses a line that has its line break.
pub(super) fn parse_result_line(line: &str) -> Result<EarlierResult, String> {
    serde_json::from_str(line).map_err(|error| error.to_string().replace(" at line 1 column ", " at column "))
}

/// Classifies a last line without a line break.
pub(super) fn classify_unended_line(line: &[u8]) -> UnendedLine {
    if let Some(result) = std::str::from_utf8(line).ok().and_then(|line| parse_result_line(line).ok()) {
        return UnendedLine::Complete(result);
    }
    let start = LINE_START.as_bytes();
    match line.starts_with(start) || start.starts_with(line) {
        true => UnendedLine::Truncated,
        false => UnendedLine::NoResult,
    }
}
