//! Runs a hook: a command of the person's, with what it is told on stdin.
//!
//! Must never know what becomes of the answer. A hook runs as the person's own command does, in the session's
//! folder and without the keys; it ends when its time is over, when the turn is cut, and with the process.

use crow_core::{Hook, HookEnd, Said, read_hook};
use crow_process::{Command, Ended, FilterBounds, SpawnError, filter};
use tokio_util::sync::CancellationToken;

use crate::{Tools, Workspace};

/// Every system with a shell has this one.
const SHELL: &str = "/bin/sh";

/// Names the session's folder for commands that may have gone elsewhere.
const PROJECT_VARIABLE: &str = "CROW_PROJECT_DIR";

/// More than any answer or complaint that somebody reads.
const OUTPUT_BYTES: usize = 64 * 1024;

impl Tools {
    /// Runs a hook on what it is told and reads its answer; `None` when the turn was cut meanwhile.
    pub async fn run_hook(
        &self,
        hook: &Hook,
        told: &str,
        workspace: &Workspace,
        cut: &CancellationToken,
    ) -> Option<Said> {
        let (program, args) = self.watched(SHELL, &["-c".to_owned(), hook.command.clone()]);
        let command = Command {
            program,
            args,
            cwd: workspace.cwd().to_owned(),
            env: vec![(PROJECT_VARIABLE.into(), workspace.cwd().display().to_string())],
            env_removed: workspace.secret_variables().to_vec(),
        };
        let bounds =
            FilterBounds { timeout: hook.timeout, stdout_bytes: OUTPUT_BYTES, stderr_bytes: OUTPUT_BYTES };
        let said = |end: HookEnd, stdout: &str, stderr: &str| read_hook(hook.event, &end, stdout, stderr);
        let filtered = match filter(self.groups(), command, told.as_bytes().to_vec(), bounds, cut).await {
            Ok(filtered) => filtered,
            Err(SpawnError::Closed) => return None,
            Err(error) => return Some(said(HookEnd::NotStarted(error.to_string()), "", "")),
        };
        let end = match filtered.ended {
            Ended::Exited(code) => HookEnd::Exited(code),
            Ended::Signalled(signal) => HookEnd::Signalled(signal),
            Ended::TimedOut => HookEnd::TimedOut(hook.timeout),
            Ended::Cancelled => return None,
        };
        Some(said(end, &filtered.stdout.text, &filtered.stderr.text))
    }
}
