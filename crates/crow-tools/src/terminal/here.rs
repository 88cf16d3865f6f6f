//! Running a command in a process of our own.

use std::sync::Arc;

use crow_core::ToolCallContent;
use crow_process::{
    CapturedOutput, CommandConfinement, CommandSpec, ExitReason, JobWaitOptions, OutputLimits, OutputWatcher,
    RunningProgram, SandboxWrapper, SpawnError, StdioKind, WaitOutcome,
};
use tokio::time::Instant;

use super::{
    CommandRoute, HEAD_BYTES, JOB_LIFE, QUIET, SETTLE, TAIL_BYTES, TerminalTool,
    jobs::{JobBackend, JobEntry, JobTable},
    needs::TerminalNeed,
    shell::STARTUP_VARIABLE,
    wanted::CommandRequest,
    words::{CommandExit, CommandOutcome},
};
use crate::{ToolCx, ToolProgress, tool::ToolError};

/// What keeps programs from waiting for a person who turns pages; said to a client's terminal as well.
pub(super) const PLAIN: &[(&str, &str)] = &[("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GH_PAGER", "cat")];

/// What keeps programs on a terminal from drawing on it: a model reads lines.
const DUMB: (&str, &str) = ("TERM", "dumb");

impl TerminalTool {
    pub(super) async fn run_locally(
        &self,
        start: &CommandRequest,
        cx: &ToolCx<'_>,
        route: CommandRoute,
    ) -> Result<CommandOutcome, ToolError> {
        if start.is_job() {
            self.start_job(start, cx).await
        } else {
            self.run_and_wait(start, cx, route).await
        }
    }

    async fn start_job(&self, start: &CommandRequest, cx: &ToolCx<'_>) -> Result<CommandOutcome, ToolError> {
        let jobs = cx.workspace.jobs();
        let seat = jobs.reserve_slot()?;
        let program = self.start_program(start, StdioKind::Terminal, cx).await?;
        let job = program.into_job(start.timeout.unwrap_or(JOB_LIFE));
        let entry = seat.insert_job(&start.command, cx.confinement, JobBackend::Here(job));
        let patience = JobWaitOptions { within: SETTLE, quiet: QUIET, n_unread_min: 0 };
        cx.cut.run_until_cancelled(entry.wait_until_settled(patience)).await;
        Ok(collect_job_start(jobs, entry, cx).await)
    }

    async fn run_and_wait(
        &self,
        start: &CommandRequest,
        cx: &ToolCx<'_>,
        route: CommandRoute,
    ) -> Result<CommandOutcome, ToolError> {
        if cx.cut.is_cancelled() {
            return Ok(CommandOutcome::Ended(
                CommandExit::Here(ExitReason::Cancelled),
                CapturedOutput::default(),
            ));
        }
        let (line, patience) = match start.need {
            TerminalNeed::Nothing => (StdioKind::Pipe, self.soft_limit),
            TerminalNeed::Asking | TerminalNeed::Talking => {
                (StdioKind::Terminal, self.soft_limit.min(super::SOFT_LIMIT_ASKING))
            }
        };
        let deadline = Instant::now() + start.timeout.unwrap_or(patience);
        let mut program = self.start_program(start, line, cx).await?;
        let mut watcher = build_watcher(cx, route);
        let happened = program.wait_for_exit(cx.cut, deadline, watcher.as_mut()).await;
        let happened = happened.map_err(|error| start_error(&error.into()))?;
        let seat = match (happened, start.timeout) {
            // Where there is no room for one more job, it has had its time.
            (WaitOutcome::TimedOut, None) => cx.workspace.jobs().reserve_slot().ok(),
            (WaitOutcome::TimedOut, Some(_)) | (WaitOutcome::Exited(_) | WaitOutcome::Cut, _) => None,
        };
        let came = match seat {
            Some(seat) => {
                let job = program.into_job(JOB_LIFE);
                let output = job.take_output().await;
                let entry = seat.insert_job(&start.command, cx.confinement, JobBackend::Here(job));
                CommandOutcome::Runs { entry, output, waited: Some(patience) }
            }
            None => {
                let ran = program.finish(happened, watcher.as_mut()).await;
                CommandOutcome::Ended(CommandExit::Here(ran.ended), ran.output)
            }
        };
        if route == CommandRoute::HereLive {
            (cx.progress)(came.exit_progress());
        }
        Ok(came)
    }

    async fn start_program(
        &self,
        start: &CommandRequest,
        line: StdioKind,
        cx: &ToolCx<'_>,
    ) -> Result<RunningProgram, ToolError> {
        let line_of_shell = match line {
            StdioKind::Pipe => self.shell.announce_directory(&start.command),
            StdioKind::Terminal => start.command.clone(),
        };
        let (program, args) = (self.shell.program().to_owned(), self.shell.args(line_of_shell));
        let (program, args) = sandbox_command(self.warden.as_ref(), (program, args), None, cx);
        let more = if line == StdioKind::Terminal { Some(&DUMB) } else { None };
        let plain = PLAIN.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let env = plain.chain(cx.workspace.variables());
        let command = CommandSpec {
            program,
            args,
            cwd: start.working_dir(cx.workspace),
            env: env.collect(),
            env_removed: [STARTUP_VARIABLE.to_owned()]
                .into_iter()
                .chain(cx.workspace.secret_variables().iter().cloned())
                .collect(),
        };
        let kept = OutputLimits {
            head_bytes: HEAD_BYTES,
            tail_bytes: TAIL_BYTES,
            spill: Some(self.spill_dir.clone()),
        };
        RunningProgram::start(&self.groups, command, line, kept).await.map_err(|error| start_error(&error))
    }
}

/// What to start for a program, as it is held; `hidden` is for those whose environment we do not make.
pub(super) fn sandbox_command(
    warden: Option<&SandboxWrapper>,
    (program, args): (String, Vec<String>),
    hidden: Option<Vec<String>>,
    cx: &ToolCx<'_>,
) -> (String, Vec<String>) {
    match warden {
        Some(warden) => {
            let confine = CommandConfinement {
                confinement: cx.confinement,
                writable: cx.workspace.roots().to_vec(),
                hidden,
                repositories: cx.workspace.external_git_dirs(),
            };
            warden.wrap_command(&confine, &program, &args)
        }
        None => (program, args),
    }
}

fn start_error(error: &SpawnError) -> ToolError {
    ToolError(format!("could not run the command: {error}"))
}

/// What came of a job's first moment; one that is over already was none.
pub(super) async fn collect_job_start(
    jobs: &JobTable,
    entry: Arc<JobEntry>,
    cx: &ToolCx<'_>,
) -> CommandOutcome {
    // Looked at first: what ends meanwhile may have more to say.
    let ended = entry.command_exit();
    let output = entry.take_output(cx.cut).await;
    match ended {
        None => CommandOutcome::Runs { entry, output, waited: None },
        Some(how) => {
            drop(jobs.remove_jobs(Some(&entry.name)));
            CommandOutcome::Ended(how, output)
        }
    }
}

fn build_watcher<'a>(cx: &ToolCx<'a>, route: CommandRoute) -> Box<dyn OutputWatcher + 'a> {
    let progress = cx.progress;
    match route {
        CommandRoute::HereLive => Box::new(LiveOutput { progress, begun: Vec::new() }),
        CommandRoute::Here | CommandRoute::Client | CommandRoute::Nowhere => Box::new(move |text: &str| {
            progress(ToolProgress::Shows(vec![ToolCallContent::Text(text.to_owned())]));
        }),
    }
}

/// Hands output on as text while it comes, whole characters only.
struct LiveOutput<'a> {
    progress: &'a (dyn Fn(ToolProgress) + Send + Sync),
    begun: Vec<u8>,
}

impl OutputWatcher for LiveOutput<'_> {
    fn on_output(&mut self, bytes: &[u8]) {
        self.begun.extend_from_slice(bytes);
        let n_whole = match std::str::from_utf8(&self.begun) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Ok(_) | Err(_) => self.begun.len(),
        };
        let whole: Vec<u8> = self.begun.drain(..n_whole).collect();
        if !whole.is_empty() {
            (self.progress)(ToolProgress::Printed(String::from_utf8_lossy(&whole).into_owned()));
        }
    }

    fn on_snapshot(&mut self, _text: &dyn Fn() -> String) {}
}
