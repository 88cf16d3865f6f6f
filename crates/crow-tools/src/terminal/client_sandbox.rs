//! What a terminal of the client starts for a command: the command itself when it is free, else a warden around it. The
//! client's machine may be another one, without a sandbox or without Crow; a command that was to be held does not run then.

use std::time::Duration;

use crow_acp::{ClientEditor, ClientError, TerminalCommand};
use crow_core::{Confinement, is_secret_value};
use crow_process::{ExitReason, SandboxWrapper};

use super::{
    TerminalPreference, TerminalTool,
    arguments::CommandRequest,
    local::{PAGER_VARIABLES, sandbox_command},
    report::{CommandExit, CommandOutcome},
    shell::STARTUP_VARIABLE,
};
use crate::{ToolCx, ToolProgress, tool::ToolError};

/// What a client keeps for us of a command's output; we keep the beginning and the end of it.
const CLIENT_OUTPUT_BYTES: u64 = 1024 * 1024;

/// Trying the sandbox takes milliseconds.
const PROBE_WAIT_MAX: Duration = Duration::from_secs(10);

/// A report is a line.
const REPORT_BYTES: u64 = 4096;

/// A command that does nothing.
const NO_COMMAND: &str = ":";

/// What shells say of a program that they cannot start, or do not find.
const NOT_STARTED_CODES: [i32; 2] = [126, 127];

impl TerminalTool {
    /// The warden around what this call runs; `None` when nothing is around it.
    fn sandbox_for(&self, cx: &ToolCx<'_>) -> Option<&SandboxWrapper> {
        let is_confined = cfg!(target_os = "linux") && cx.confinement != Confinement::Free;
        self.sandbox.as_ref().filter(|_| is_confined)
    }

    /// What the client starts for a command.
    pub(super) fn client_command(&self, request: &CommandRequest, cx: &ToolCx<'_>) -> TerminalCommand {
        let secrets = cx.workspace.secret_variables();
        let (shell, args) = (self.shell.name().to_owned(), self.shell.args_in_client(&request.command));
        let sandbox = self.sandbox_for(cx);
        // What a warden hides by itself, whatever its value, need not be named.
        let hidden = secrets.iter().filter(|name| !is_secret_value(name, "/")).cloned().collect();
        let (program, args) = sandbox_command(sandbox, shell, args, Some(hidden), cx);
        let pager_variables =
            PAGER_VARIABLES.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        // Where no warden stands between, a variable can be emptied and not removed.
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

    /// Refuses to hold a command where that is known to be impossible.
    pub(super) fn check_client_sandbox(&self, cx: &ToolCx<'_>) -> Result<(), ToolError> {
        match cx.workspace.no_client_sandbox() {
            Some(reason) if self.sandbox_for(cx).is_some() => Err(ToolError(sandbox_error(reason))),
            Some(_) | None => Ok(()),
        }
    }

    /// Refuses a command that the client opened no terminal for, unless it opens none at all and the command may run here.
    pub(super) async fn check_refused(
        &self,
        error: &ClientError,
        editor: &ClientEditor,
        cx: &ToolCx<'_>,
    ) -> Result<(), ToolError> {
        if self.sandbox_for(cx).is_some() && self.opens_shell(editor, cx).await {
            return Err(record_missing_sandbox(cx, format!("no terminal opens for crow-cli: {error}")));
        }
        // Where Crow is not on the client's machine, this one is not where commands belong.
        let may_run_here =
            self.terminals == TerminalPreference::ClientFirst && cx.workspace.no_client_sandbox().is_none();
        if may_run_here { Ok(()) } else { Err(open_error(error)) }
    }

    /// Refuses a command that was to be held and that nothing held, as far as its end tells.
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

    /// Whether the client opens a terminal for the shell alone.
    async fn opens_shell(&self, editor: &ClientEditor, cx: &ToolCx<'_>) -> bool {
        let (shell, args) = (self.shell.name().to_owned(), self.shell.args_in_client(NO_COMMAND));
        editor.open_terminal(probe_command(shell, args, cx), cx.cancel).await.is_ok()
    }

    /// Tries the sandbox in a terminal of the client; returns why nothing can be held there.
    async fn probe_sandbox(
        &self,
        sandbox: &SandboxWrapper,
        editor: &ClientEditor,
        cx: &ToolCx<'_>,
    ) -> Option<String> {
        let (program, args) = sandbox.probe();
        let terminal = match editor.open_terminal(probe_command(program, args, cx), cx.cancel).await {
            Ok(terminal) => terminal,
            Err(error @ ClientError::Refused(_)) => {
                return Some(format!("no terminal opens for crow-cli: {error}"));
            }
            Err(ClientError::Silent(_) | ClientError::Cut) => return None,
        };
        let exit = match terminal.wait_for_exit(PROBE_WAIT_MAX, cx.cancel).await {
            Ok(exit) => exit,
            Err(ClientError::Refused(_)) => return Some("crow-cli does not start there".into()),
            Err(ClientError::Silent(_) | ClientError::Cut) => return None,
        };
        if exit.code != Some(0) {
            return Some("crow-cli does not start there".into());
        }
        let output = terminal.read_output(cx.cancel).await.ok()?;
        SandboxWrapper::cannot_hold(&output.text).map(str::to_owned)
    }
}

/// A program that is only to be seen to start.
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
    format!("not run: nothing can hold it in a sandbox in the client's terminal: {reason}")
}

/// Has the call judged as where there is no sandbox.
fn record_missing_sandbox(cx: &ToolCx<'_>, reason: String) -> ToolError {
    let refusal = ToolError(sandbox_error(&reason));
    tracing::warn!(reason, "commands in the client's terminals cannot be held");
    cx.workspace.record_no_client_sandbox(reason);
    (cx.progress)(ToolProgress::SandboxUnavailable);
    refusal
}

pub(super) fn open_error(error: &ClientError) -> ToolError {
    ToolError(format!("could not open a terminal: {error}"))
}
