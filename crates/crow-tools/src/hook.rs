//! Runs a hook: a command of the user that gets its input on stdin.
//!
//! Must not know how its decision is used. A hook runs like the user's own command, in the session's working directory
//! and without the secrets; it ends at its timeout, when the turn is cancelled, and with the process.

use crow_core::{HookConfig, HookDecision, HookExit, read_hook};
use crow_process::{CommandSpec, ExitReason, FilterLimits, SpawnError, posix_shell, run_filter};
use tokio_util::sync::CancellationToken;

use crate::{ToolRegistry, Workspace};

/// The variable with the session's working directory, for commands that change theirs.
const PROJECT_VARIABLE: &str = "CROW_PROJECT_DIR";

/// More than any useful output.
const OUTPUT_BYTES: usize = 64 * 1024;

impl ToolRegistry {
    /// Runs a hook with this input and returns its decision; `None` if the turn was cancelled.
    pub async fn run_hook(
        &self,
        hook: &HookConfig,
        input: &str,
        workspace: &Workspace,
        cancel: &CancellationToken,
    ) -> Option<HookDecision> {
        let (program, args) =
            self.supervised_command(&posix_shell(), &["-c".to_owned(), hook.command.clone()]);
        let command = CommandSpec {
            program,
            args,
            cwd: workspace.cwd().to_owned(),
            env: vec![(PROJECT_VARIABLE.into(), workspace.cwd().display().to_string())],
            env_removed: workspace.secret_variables().to_vec(),
        };
        let limits =
            FilterLimits { timeout: hook.timeout, stdout_bytes: OUTPUT_BYTES, stderr_bytes: OUTPUT_BYTES };
        let decision =
            |exit: HookExit, stdout: &str, stderr: &str| read_hook(hook.event, &exit, stdout, stderr);
        let output =
            match run_filter(self.process_groups(), command, input.as_bytes().to_vec(), limits, cancel).await
            {
                Ok(output) => output,
                Err(SpawnError::Closed) => return None,
                Err(error) => return Some(decision(HookExit::NotStarted(error.to_string()), "", "")),
            };
        let exit = match output.exit {
            ExitReason::Exited(code) => HookExit::Exited(code),
            ExitReason::Signalled(signal) => HookExit::Signalled(signal),
            ExitReason::TimedOut => HookExit::TimedOut(hook.timeout),
            ExitReason::Cancelled => return None,
        };
        Some(decision(exit, &output.stdout.text, &output.stderr.text))
    }
}
