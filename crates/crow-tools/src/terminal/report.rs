//! The reports on commands and jobs for the model.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use crow_core::{ToolCallStatus, ToolResult};
use crow_process::{CapturedOutput, ExitReason};

use super::{command_exit::CommandExit, jobs::JobEntry};
use crate::ToolProgress;

/// The outcome of starting a command.
#[derive(Debug)]
pub(super) enum CommandOutcome {
    Ended(CommandExit, CapturedOutput),
    /// It continues as a job; `waited` is how long the call waited for it.
    Running {
        entry: Arc<JobEntry>,
        output: CapturedOutput,
        waited: Option<Duration>,
    },
}

/// The result of a call.
#[derive(Debug)]
pub(super) struct TerminalReport {
    pub(super) text: String,
    pub(super) status: ToolCallStatus,
}

impl CommandOutcome {
    /// The directory that a command ended in, if it reported one.
    pub(super) fn final_directory(&self) -> Option<&str> {
        match self {
            Self::Ended(_, output) => output.cwd.as_deref(),
            Self::Running { .. } => None,
        }
    }

    /// Returns the end of a live output.
    pub(super) fn exit_progress(&self) -> ToolProgress {
        let (code, signal) = match self {
            Self::Ended(CommandExit::Known(ExitReason::Exited(code)), _) => (Some(*code), None),
            Self::Ended(CommandExit::Known(ExitReason::Signalled(signal)), _) => (None, Some(*signal)),
            Self::Ended(..) | Self::Running { .. } => (None, None),
        };
        ToolProgress::Exited { code, signal }
    }

    /// Renders the outcome of a command with this time limit.
    pub(super) fn into_report(self, limit: Duration) -> TerminalReport {
        match self {
            Self::Ended(exit, output) => {
                let mut text = output_text(output);
                if exit == CommandExit::Known(ExitReason::Exited(0)) {
                    if text.is_empty() {
                        text.push_str("(no output)");
                    }
                    return TerminalReport { text, status: ToolCallStatus::Completed };
                }
                text += &match exit {
                    CommandExit::Known(ExitReason::TimedOut) => {
                        format!("stopped: it ran longer than {} s", limit.as_secs_f64())
                    }
                    CommandExit::Known(_) | CommandExit::ClientSignal { .. } | CommandExit::Unknown(_) => {
                        exit.describe_exit()
                    }
                };
                TerminalReport { text, status: ToolCallStatus::Failed }
            }
            Self::Running { entry, output, waited } => {
                let mut text = output_text(output);
                // Writing to a string cannot fail.
                let _ = match waited {
                    Some(waited) => {
                        write!(
                            text,
                            "not done after {} s, it continues as {}",
                            waited.as_secs_f64(),
                            entry.name
                        )
                    }
                    None => write!(text, "{} is running", entry.name),
                };
                let _ = write!(
                    text,
                    "; with is_input=true it is read (command empty) or typed to, with reset=true it is ended"
                );
                TerminalReport { text, status: ToolCallStatus::Completed }
            }
        }
    }
}

impl TerminalReport {
    pub(super) fn success(text: impl Into<String>) -> Self {
        Self { text: text.into(), status: ToolCallStatus::Completed }
    }

    /// Appends a line.
    pub(super) fn with_line(mut self, line: Option<String>) -> Self {
        if let Some(line) = line {
            if !self.text.ends_with('\n') {
                self.text.push('\n');
            }
            self.text += &line;
        }
        self
    }

    /// Prepends a text.
    pub(super) fn with_prefix(self, prefix: &str) -> Self {
        Self { text: format!("{prefix}\n{}", self.text), ..self }
    }

    /// Converts it to a tool result, with the jobs that have ended.
    pub(super) fn into_tool_result(self, ended_jobs: &[Arc<JobEntry>]) -> ToolResult {
        let mut text = self.text;
        for entry in ended_jobs {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text += &ended_line(entry);
        }
        match self.status {
            ToolCallStatus::Failed => ToolResult::failure(text),
            ToolCallStatus::Completed | ToolCallStatus::Pending | ToolCallStatus::InProgress => {
                ToolResult::success(text)
            }
        }
    }
}

/// Renders a job's output and state.
pub(super) fn job_report(
    entry: &JobEntry,
    exit: Option<&CommandExit>,
    output: CapturedOutput,
) -> TerminalReport {
    let mut text = output_text(output);
    if text.is_empty() {
        text.push_str("(nothing new)\n");
    }
    let (line, status) = match exit {
        None => (format!("{} is running", entry.name), ToolCallStatus::Completed),
        Some(exit) => {
            let status = if *exit == CommandExit::Known(ExitReason::Exited(0)) {
                ToolCallStatus::Completed
            } else {
                ToolCallStatus::Failed
            };
            (format!("{} is over: {}", entry.name, exit.describe_exit()), status)
        }
    };
    TerminalReport { text: text + &line, status }
}

/// Renders the note that a job has ended.
fn ended_line(entry: &JobEntry) -> String {
    let exit = entry.command_exit().map(|how| how.describe_exit()).unwrap_or_default();
    format!(
        "({} {} is over: {exit}; its remaining output can be read with is_input)",
        entry.name, entry.title
    )
}

/// Renders an output, with the path of the rest.
fn output_text(output: CapturedOutput) -> String {
    let mut text = output.text;
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    if let Some(spilled) = &output.spill_file {
        let extent = if spilled.n_bytes == output.n_bytes { "all" } else { "the beginning" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "({extent} of the output is in {})", spilled.path.display());
    }
    text
}
