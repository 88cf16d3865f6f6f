//! The report of a child agent on a task.

use crow_core::{ContentPart, ToolCallStatus, ToolResult};
use crow_speckit::TaskId;

use crate::step_state::StepTaskResult;

/// Prefix of the last line of a child's answer.
const RESULT: &str = "RESULT:";

/// The report of a child agent on its task.
#[derive(Debug, Clone)]
pub struct ChildTaskReport {
    pub(crate) task: TaskId,
    pub(crate) result: StepTaskResult,
    /// The report for the model.
    pub(crate) text: String,
}

impl ChildTaskReport {
    /// Creates the report from the result of the child's turn.
    pub fn from_result(task: TaskId, result: &ToolResult) -> Self {
        let text = result_text(result);
        let task_result = parse_result(result.status, &text);
        Self { text: format!("{task}:\n{text}"), task, result: task_result }
    }

    /// Returns the status of the call that shows the child.
    pub fn status(&self) -> ToolCallStatus {
        match &self.result {
            StepTaskResult::Done { .. } => ToolCallStatus::Completed,
            StepTaskResult::Failed { .. } => ToolCallStatus::Failed,
        }
    }
}

fn result_text(result: &ToolResult) -> String {
    let texts = result.for_model.iter().filter_map(|part| match part {
        ContentPart::Text(text) => Some(text.as_str()),
        ContentPart::Image { .. }
        | ContentPart::Link { .. }
        | ContentPart::Resource { .. }
        | ContentPart::FromCrow { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Parses the result in a child's answer: the first word of the last result line counts, and a missing line is a failure.
fn parse_result(status: ToolCallStatus, text: &str) -> StepTaskResult {
    let said = text.lines().rev().find_map(|line| line.trim().trim_matches(['*', '`']).strip_prefix(RESULT));
    let said = said.map(|said| said.trim().trim_matches(['*', '`']).trim());
    let failed = |reason: &str| StepTaskResult::Failed { reason: reason.to_owned() };
    match (status, said) {
        (ToolCallStatus::Completed, Some(said)) => {
            let (word, rest) = said.split_at(said.find(|c: char| !c.is_alphanumeric()).unwrap_or(said.len()));
            match word.to_ascii_lowercase().as_str() {
                "done" => StepTaskResult::Done { note: "done by a child agent".to_owned() },
                "failed" => {
                    failed(rest.trim_start_matches(|c: char| !c.is_alphanumeric() && !"`'\"(".contains(c)))
                }
                _ => failed(said),
            }
        }
        (ToolCallStatus::Completed, None) => failed("the child agent did not report a result"),
        (ToolCallStatus::Failed | ToolCallStatus::Pending | ToolCallStatus::InProgress, _) => {
            failed(text.lines().next().unwrap_or("the child agent failed"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_result(status: ToolCallStatus, text: &str, expected: &str) {
        let shown = match parse_result(status, text) {
            StepTaskResult::Done { .. } => "done".to_owned(),
            StepTaskResult::Failed { reason } => reason,
        };
        assert_eq!(shown, expected, "{text:?}");
    }

    #[test]
    fn last_result_line_of_a_child_counts() {
        check_result(ToolCallStatus::Completed, "I did it.\nRESULT: done\n\nIt changed 1 file", "done");
        check_result(ToolCallStatus::Completed, "**RESULT: done**", "done");
        check_result(ToolCallStatus::Completed, "RESULT: done.", "done");
        check_result(ToolCallStatus::Completed, "**RESULT: Done** - all 4 tests pass", "done");
        check_result(ToolCallStatus::Completed, "RESULT: not done", "not done");
        check_result(
            ToolCallStatus::Completed,
            "RESULT: **failed** - `a.rs` is missing",
            "`a.rs` is missing",
        );
        check_result(
            ToolCallStatus::Completed,
            "RESULT: done\nno, wait\nRESULT: failed: tests are red",
            "tests are red",
        );
        check_result(ToolCallStatus::Completed, "I did it.", "the child agent did not report a result");
        check_result(ToolCallStatus::Failed, "Task x was cancelled.\nRESULT: done", "Task x was cancelled.");
    }
}
