//! Runs commands in terminals of the client.

use std::sync::Arc;

use crow_acp::{ClientEditor, ClientError, ClientTerminal};
use crow_process::{CapturedOutput, ExitReason};

use super::{
    arguments::CommandRequest,
    client_job::{ClientJob, TRUNCATED_NOTE, TerminalText, kill_terminal, read_output},
    client_sandbox::open_error,
    command_exit::CommandExit,
    command_runner::CommandRunner,
    jobs::JobBackend,
    limits::{HEAD_BYTES, JOB_LIFETIME, JOB_START_WAIT, TAIL_BYTES},
    local::collect_job_start,
    report::CommandOutcome,
};
use crate::{ToolCx, ToolProgress, tool_error::ToolError};

impl CommandRunner {
    /// Runs a command in a terminal of the client; `None` if the client opens none.
    pub(super) async fn run_in_client(
        &self,
        request: &CommandRequest,
        editor: &ClientEditor,
        cx: &ToolCx<'_>,
    ) -> Result<Option<CommandOutcome>, ToolError> {
        let jobs = cx.workspace.jobs();
        let slot = if request.is_job() { Some(jobs.reserve_slot()?) } else { None };
        self.check_client_sandbox(cx)?;
        let terminal = match editor.open_terminal(self.client_command(request, cx), cx.cancel).await {
            Ok(terminal) => terminal,
            Err(ClientError::Cancelled) => {
                return Ok(Some(CommandOutcome::Ended(
                    CommandExit::Known(ExitReason::Cancelled),
                    CapturedOutput::default(),
                )));
            }
            Err(error @ ClientError::Rejected(_)) => {
                self.check_refused(&error, editor, cx).await?;
                tracing::warn!(%error, "the client opened no terminal; running the command locally");
                return Ok(None);
            }
            // A slow client may still run it.
            Err(error @ ClientError::TimedOut(_)) => return Err(open_error(&error)),
        };
        (cx.progress)(ToolProgress::Terminal(terminal.clone()));
        if let Some(slot) = slot {
            let job = ClientJob::start(terminal, request.timeout.unwrap_or(JOB_LIFETIME), &self.spill_dir);
            let entry = slot.insert_job(&request.command, cx.confinement, JobBackend::Client(job));
            cx.cancel.run_until_cancelled(entry.wait_for_exit(JOB_START_WAIT)).await;
            let outcome = collect_job_start(jobs, entry, cx).await;
            self.check_started(&outcome, editor, cx).await?;
            return Ok(Some(outcome));
        }
        let outcome = self.wait_in_client(request, terminal, cx).await;
        self.check_started(&outcome, editor, cx).await?;
        Ok(Some(outcome))
    }

    async fn wait_in_client(
        &self,
        request: &CommandRequest,
        terminal: Arc<ClientTerminal>,
        cx: &ToolCx<'_>,
    ) -> CommandOutcome {
        let soft_limit = request.timeout.unwrap_or(self.soft_limit);
        let exit = match terminal.wait_for_exit(soft_limit, cx.cancel).await {
            Ok(exit) => CommandExit::from_client_exit(exit),
            Err(ClientError::TimedOut(_)) if request.timeout.is_none() => {
                if let Ok(slot) = cx.workspace.jobs().reserve_slot() {
                    let job = ClientJob::start(terminal, JOB_LIFETIME, &self.spill_dir);
                    let entry = slot.insert_job(&request.command, cx.confinement, JobBackend::Client(job));
                    let output = entry.take_output(cx.cancel).await;
                    return CommandOutcome::Running { entry, output, waited: Some(soft_limit) };
                }
                CommandExit::Known(ExitReason::TimedOut)
            }
            Err(ClientError::TimedOut(_)) => CommandExit::Known(ExitReason::TimedOut),
            Err(ClientError::Cancelled) => CommandExit::Known(ExitReason::Cancelled),
            Err(error @ ClientError::Rejected(_)) => CommandExit::Unknown(error.to_string()),
        };
        let has_exited =
            matches!(exit, CommandExit::Known(ExitReason::Exited(_)) | CommandExit::ClientSignal { .. });
        let kill_result = if has_exited { Ok(()) } else { kill_terminal(&terminal, cx.cancel).await };
        let output = match kill_result {
            Ok(()) => read_output(&terminal, cx.cancel).await,
            Err(silent) => TerminalText::from_error(&silent),
        };
        let text = if output.is_truncated { format!("{TRUNCATED_NOTE}{}", output.text) } else { output.text };
        CommandOutcome::Ended(
            exit,
            CapturedOutput::from_text(&text, HEAD_BYTES, TAIL_BYTES, Some(self.spill_dir.clone())).await,
        )
    }
}
