//! The command that a terminal of the client starts: the command itself if it is unconfined, else the supervisor with
//! it. The client may be on another machine, without a sandbox or without Crow; a command that must be confined does
//! not run there.

use std::{sync::Arc, time::Duration};

use crow_acp::{ClientEditor, ClientError, ClientTerminal, TerminalCommand};
use crow_core::{Confinement, is_secret_value};
use crow_process::{ExitReason, SandboxWrapper};

use super::{
    arguments::CommandRequest,
    command_exit::CommandExit,
    command_runner::{CommandRunner, TerminalPreference},
    local::{PAGER_VARIABLES, sandbox_command},
    report::CommandOutcome,
    shell::STARTUP_VARIABLE,
};
use crate::{ToolCx, ToolProgress, tool_error::ToolError};

/// Output that the client stores for us; we keep its beginning and end.
const CLIENT_OUTPUT_BYTES: u64 = 1024 * 1024;

/// Probing the sandbox takes milliseconds.
const PROBE_WAIT_MAX: Duration = Duration::from_secs(10);

/// A report is one line.
const REPORT_BYTES: u64 = 4096;

const NO_COMMAND: &str = ":";

/// Exit codes of shells for a program that could not be started or was not found.
const NOT_STARTED_CODES: [i32; 2] = [126, 127];

impl CommandRunner {
    /// The supervisor of this call's command; `None` if the command runs without one.
    fn sandbox_for(&self, cx: &ToolCx<'_>) -> Option<&SandboxWrapper> {
        let is_confined = SandboxWrapper::is_supported() && cx.confinement != Confinement::Unconfined;
        self.sandbox.as_ref().filter(|_| is_confined)
    }

    /// Returns the command that the client starts.
    pub(super) fn client_command(&self, request: &CommandRequest, cx: &ToolCx<'_>) -> TerminalCommand {
        let secrets = cx.workspace.secret_variables();
        let shell = (self.shell.name().to_owned(), self.shell.args_in_client(&request.command));
        let sandbox = self.sandbox_for(cx);
        // Variables that the supervisor hides by itself need not be listed.
        let hidden = secrets.iter().filter(|name| !is_secret_value(name, "/")).cloned().collect();
        let (program, args) = sandbox_command(sandbox, shell, &request.command, Some(hidden), cx);
        let pager_variables =
            PAGER_VARIABLES.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        // Without the supervisor a variable can be cleared, not removed.
        let cleared = secrets.iter().filter(|_| sandbox.is_none()).map(String::as_str);
        let cleared = cleared.chain([STARTUP_VARIABLE]).map(|name| (name.to_owned(), String::new()));
        TerminalCommand {
            program,
            args,
            env: pager_variables.chain(cx.workspace.variables()).chain(cleared).collect(),
            cwd: request.working_dir(cx.workspace),
            output_bytes_max: CLIENT_OUTPUT_BYTES,
        }
    }

    /// Rejects a command if it is known that it cannot be confined.
    pub(super) fn check_client_sandbox(&self, cx: &ToolCx<'_>) -> Result<(), ToolError> {
        match cx.workspace.no_client_sandbox() {
            Some(reason) if self.sandbox_for(cx).is_some() => Err(ToolError(sandbox_error(reason))),
            Some(_) | None => Ok(()),
        }
    }

    /// Rejects a command if the client refused a terminal, unless the client opens none at all and the command may run
    /// locally.
    pub(super) async fn check_refused(
        &self,
        error: &ClientError,
        editor: &ClientEditor,
        cx: &ToolCx<'_>,
    ) -> Result<(), ToolError> {
        if self.sandbox_for(cx).is_some() && self.open_shell(editor, cx).await.is_ok() {
            return Err(record_missing_sandbox(
                cx,
                format!("the client opened no terminal for crow-cli: {error}"),
            ));
        }
        // If the client is on another machine, commands do not belong on this one.
        let may_run_here =
            self.terminals == TerminalPreference::ClientFirst && cx.workspace.no_client_sandbox().is_none();
        if may_run_here { Ok(()) } else { Err(open_error(error)) }
    }

    /// Rejects a command that should be confined and was not, as far as its exit shows.
    pub(super) async fn check_started(
        &self,
        outcome: &CommandOutcome,
        editor: &ClientEditor,
        cx: &ToolCx<'_>,
    ) -> Result<(), ToolError> {
        let may_not_have_started = match outcome {
            CommandOutcome::Ended(CommandExit::Known(ExitReason::Exited(code)), _) => {
                NOT_STARTED_CODES.contains(code)
            }
            CommandOutcome::Ended(CommandExit::Unknown(_), _) => true,
            CommandOutcome::Ended(..) | CommandOutcome::Running { .. } => false,
        };
        match self.sandbox_for(cx).filter(|_| may_not_have_started) {
            Some(sandbox) => match self.probe_sandbox(sandbox, editor, cx).await {
                Some(reason) => Err(record_missing_sandbox(cx, reason)),
                None => Ok(()),
            },
            None => Ok(()),
        }
    }

    /// Opens a terminal of the client for the shell alone.
    async fn open_shell(
        &self,
        editor: &ClientEditor,
        cx: &ToolCx<'_>,
    ) -> Result<Arc<ClientTerminal>, ClientError> {
        let (shell, args) = (self.shell.name().to_owned(), self.shell.args_in_client(NO_COMMAND));
        editor.open_terminal(probe_command(shell, args, cx), cx.cancel).await
    }

    /// Whether the client tells the end of a shell that does nothing.
    async fn tells_end_of_shell(&self, editor: &ClientEditor, cx: &ToolCx<'_>) -> bool {
        match self.open_shell(editor, cx).await {
            Ok(terminal) => terminal.wait_for_exit(PROBE_WAIT_MAX, cx.cancel).await.is_ok(),
            Err(_) => false,
        }
    }

    /// Probes the sandbox in a terminal of the client; returns why commands cannot be confined there.
    async fn probe_sandbox(
        &self,
        sandbox: &SandboxWrapper,
        editor: &ClientEditor,
        cx: &ToolCx<'_>,
    ) -> Option<String> {
        let (program, args) = sandbox.probe();
        let terminal = match editor.open_terminal(probe_command(program, args, cx), cx.cancel).await {
            Ok(terminal) => terminal,
            Err(error @ ClientError::Rejected(_)) => {
                return Some(format!("the client opened no terminal for crow-cli: {error}"));
            }
            Err(ClientError::TimedOut(_) | ClientError::Cancelled) => return None,
        };
        let exit = match terminal.wait_for_exit(PROBE_WAIT_MAX, cx.cancel).await {
            Ok(exit) => exit,
            // A client that tells the end of no program says nothing about this one, and the command may have run.
            Err(ClientError::Rejected(_)) => {
                let is_missing = self.tells_end_of_shell(editor, cx).await;
                return is_missing.then(|| "crow-cli does not start there".into());
            }
            Err(ClientError::TimedOut(_) | ClientError::Cancelled) => return None,
        };
        if exit.code != Some(0) {
            return Some("crow-cli does not start there".into());
        }
        let output = terminal.read_output(cx.cancel).await.ok()?;
        SandboxWrapper::cannot_hold(&output.text).map(str::to_owned)
    }
}

/// A program whose start is probed.
fn probe_command(program: String, args: Vec<String>, cx: &ToolCx<'_>) -> TerminalCommand {
    TerminalCommand {
        program,
        args,
        env: vec![(STARTUP_VARIABLE.to_owned(), String::new())],
        cwd: cx.workspace.cwd().to_owned(),
        output_bytes_max: REPORT_BYTES,
    }
}

fn sandbox_error(reason: &str) -> String {
    format!("not run: it cannot be confined in the client's terminal: {reason}")
}

/// Records that the client has no sandbox, so that the call is evaluated again without one.
fn record_missing_sandbox(cx: &ToolCx<'_>, reason: String) -> ToolError {
    let refusal = ToolError(sandbox_error(&reason));
    tracing::warn!(reason, "commands in the client's terminals cannot be confined");
    cx.workspace.record_no_client_sandbox(reason);
    (cx.progress)(ToolProgress::SandboxUnavailable);
    refusal
}

pub(super) fn open_error(error: &ClientError) -> ToolError {
    ToolError(format!("could not open a terminal: {error}"))
}
