//! Runs commands in processes of our own.

use std::sync::Arc;

use crow_core::{ToolCallContent, may_use_git};
use crow_process::{
    CapturedOutput, CommandConfinement, CommandSpec, ExitReason, JobWaitOptions, OutputLimits, OutputWatcher,
    RunningProgram, SandboxWrapper, SpawnError, StdioKind, WaitOutcome,
};
use tokio::time::Instant;

use super::{
    arguments::CommandRequest,
    command_exit::CommandExit,
    command_runner::{CommandRoute, CommandRunner},
    interactivity::TerminalNeed,
    jobs::{JobBackend, JobEntry, JobTable},
    limits::{HEAD_BYTES, JOB_LIFETIME, JOB_START_WAIT, PROMPT_SOFT_LIMIT, QUIET_PERIOD, TAIL_BYTES},
    report::CommandOutcome,
    shell::STARTUP_VARIABLE,
};
use crate::{ToolCx, ToolProgress, tool_error::ToolError};

/// Prevents programs from starting a pager; also set in a client's terminal.
pub(super) const PAGER_VARIABLES: &[(&str, &str)] =
    &[("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GH_PAGER", "cat")];

/// Prevents programs from drawing on the terminal: a model reads lines.
const DUMB_TERMINAL: (&str, &str) = ("TERM", "dumb");

impl CommandRunner {
    pub(super) async fn run_locally(
        &self,
        request: &CommandRequest,
        cx: &ToolCx<'_>,
        route: CommandRoute,
    ) -> Result<CommandOutcome, ToolError> {
        if request.is_job() {
            self.start_job(request, cx).await
        } else {
            self.run_and_wait(request, cx, route).await
        }
    }

    async fn start_job(
        &self,
        request: &CommandRequest,
        cx: &ToolCx<'_>,
    ) -> Result<CommandOutcome, ToolError> {
        let jobs = cx.workspace.jobs();
        let slot = jobs.reserve_slot()?;
        let program = self.start_program(request, StdioKind::Terminal, cx).await?;
        let job = program.into_job(request.timeout.unwrap_or(JOB_LIFETIME));
        let entry = slot.insert_job(&request.command, cx.confinement, JobBackend::Local(job));
        let wait_options =
            JobWaitOptions { timeout: JOB_START_WAIT, quiet_period: QUIET_PERIOD, n_unread_min: 0 };
        cx.cancel.run_until_cancelled(entry.wait_until_settled(wait_options)).await;
        Ok(collect_job_start(jobs, entry, cx).await)
    }

    async fn run_and_wait(
        &self,
        request: &CommandRequest,
        cx: &ToolCx<'_>,
        route: CommandRoute,
    ) -> Result<CommandOutcome, ToolError> {
        if cx.cancel.is_cancelled() {
            return Ok(CommandOutcome::Ended(
                CommandExit::Known(ExitReason::Cancelled),
                CapturedOutput::default(),
            ));
        }
        let (stdio, soft_limit) = match request.need {
            TerminalNeed::NotNeeded => (StdioKind::Pipe, self.soft_limit),
            TerminalNeed::Prompts | TerminalNeed::Interactive => {
                (StdioKind::Terminal, self.soft_limit.min(PROMPT_SOFT_LIMIT))
            }
        };
        let deadline = Instant::now() + request.timeout.unwrap_or(soft_limit);
        let mut program = self.start_program(request, stdio, cx).await?;
        let mut watcher = build_watcher(cx, route);
        let wait_outcome = program.wait_for_exit(cx.cancel, deadline, watcher.as_mut()).await;
        let wait_outcome = wait_outcome.map_err(|error| start_error(&error.into()))?;
        let slot = match (wait_outcome, request.timeout) {
            // If there is no room for another job, the command has timed out.
            (WaitOutcome::TimedOut, None) => cx.workspace.jobs().reserve_slot().ok(),
            (WaitOutcome::TimedOut, Some(_)) | (WaitOutcome::Exited(_) | WaitOutcome::Cancelled, _) => None,
        };
        let outcome = match slot {
            Some(slot) => {
                let job = program.into_job(JOB_LIFETIME);
                let output = job.take_output().await;
                let entry = slot.insert_job(&request.command, cx.confinement, JobBackend::Local(job));
                CommandOutcome::Running { entry, output, waited: Some(soft_limit) }
            }
            None => {
                let finished = program.finish(wait_outcome, watcher.as_mut()).await;
                CommandOutcome::Ended(CommandExit::Known(finished.exit), finished.output)
            }
        };
        if route == CommandRoute::LocalStreamed {
            (cx.progress)(outcome.exit_progress());
        }
        Ok(outcome)
    }

    async fn start_program(
        &self,
        request: &CommandRequest,
        stdio: StdioKind,
        cx: &ToolCx<'_>,
    ) -> Result<RunningProgram, ToolError> {
        let shell_line = match stdio {
            StdioKind::Pipe => self.shell.announce_directory(&request.command),
            StdioKind::Terminal => request.command.clone(),
        };
        let shell = (self.shell.program().to_owned(), self.shell.args(shell_line));
        let (program, args) = sandbox_command(self.sandbox.as_ref(), shell, &request.command, None, cx);
        let dumb_terminal = if stdio == StdioKind::Terminal { Some(&DUMB_TERMINAL) } else { None };
        let variables = PAGER_VARIABLES
            .iter()
            .chain(dumb_terminal)
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let env = variables.chain(cx.workspace.variables());
        let command = CommandSpec {
            program,
            args,
            cwd: request.working_dir(cx.workspace),
            env: env.collect(),
            env_removed: [STARTUP_VARIABLE.to_owned()]
                .into_iter()
                .chain(cx.workspace.secret_variables().iter().cloned())
                .collect(),
        };
        let limits = OutputLimits {
            head_bytes: HEAD_BYTES,
            tail_bytes: TAIL_BYTES,
            spill_dir: Some(self.spill_dir.clone()),
        };
        RunningProgram::start(&self.groups, command, stdio, limits).await.map_err(|error| start_error(&error))
    }
}

/// Returns the command that runs a shell with a line confined; `hidden` has the variables to hide where we do not set the
/// environment.
pub(super) fn sandbox_command(
    sandbox: Option<&SandboxWrapper>,
    (program, args): (String, Vec<String>),
    line: &str,
    hidden: Option<Vec<String>>,
    cx: &ToolCx<'_>,
) -> (String, Vec<String>) {
    match sandbox {
        Some(sandbox) => {
            let command_confinement = CommandConfinement {
                level: cx.confinement,
                writable: cx.workspace.roots().to_vec(),
                hidden_variables: hidden,
                repositories: cx.workspace.external_git_dirs(),
                keeps_repositories: !may_use_git(line),
                has_grace: false,
            };
            sandbox.wrap_command(&command_confinement, &program, &args)
        }
        None => (program, args),
    }
}

fn start_error(error: &SpawnError) -> ToolError {
    ToolError(format!("could not run the command: {error}"))
}

/// Returns the outcome of starting a job; a job that has already ended is removed.
pub(super) async fn collect_job_start(
    jobs: &JobTable,
    entry: Arc<JobEntry>,
    cx: &ToolCx<'_>,
) -> CommandOutcome {
    // Read first: if the job ends now, it may print more.
    let exit = entry.command_exit();
    let output = entry.take_output(cx.cancel).await;
    match exit {
        None => CommandOutcome::Running { entry, output, waited: None },
        Some(exit) => {
            drop(jobs.remove_jobs(Some(&entry.name)));
            CommandOutcome::Ended(exit, output)
        }
    }
}

fn build_watcher<'a>(cx: &ToolCx<'a>, route: CommandRoute) -> Box<dyn OutputWatcher + 'a> {
    let progress = cx.progress;
    match route {
        CommandRoute::LocalStreamed => Box::new(LiveOutput { progress, pending: Vec::new() }),
        CommandRoute::Local | CommandRoute::Client | CommandRoute::Unavailable => {
            Box::new(move |text: &str| {
                progress(ToolProgress::Content(vec![ToolCallContent::Text(text.to_owned())]));
            })
        }
    }
}

/// Forwards output as text while it arrives, in whole characters.
struct LiveOutput<'a> {
    progress: &'a (dyn Fn(ToolProgress) + Send + Sync),
    pending: Vec<u8>,
}

impl OutputWatcher for LiveOutput<'_> {
    fn on_output(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        let n_complete = match std::str::from_utf8(&self.pending) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Ok(_) | Err(_) => self.pending.len(),
        };
        let text: Vec<u8> = self.pending.drain(..n_complete).collect();
        if !text.is_empty() {
            (self.progress)(ToolProgress::Output(String::from_utf8_lossy(&text).into_owned()));
        }
    }

    fn on_snapshot(&mut self, _text: &dyn Fn() -> String) {}
}
