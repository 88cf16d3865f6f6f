//! Running a command in a process of our own.

use std::sync::Arc;

use crow_core::Content;
use crow_process::{
    Command, Confine, Ended, Happened, Kept, Line, Output, Patience, Program, SpawnError, Warden, Watcher,
};
use tokio::time::Instant;

use super::{
    HEAD_BYTES, JOB_LIFE, QUIET, Route, SETTLE, TAIL_BYTES, Terminal,
    jobs::{Entry, Jobs, Place},
    needs::Need,
    shell::STARTUP_VARIABLE,
    wanted::Start,
    words::{Came, How},
};
use crate::{Progress, ToolCx, tool::Refusal};

/// What keeps programs from waiting for a person who turns pages; said to a client's terminal as well.
pub(super) const PLAIN: &[(&str, &str)] = &[("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GH_PAGER", "cat")];

/// What keeps programs on a terminal from drawing on it: a model reads lines.
const DUMB: (&str, &str) = ("TERM", "dumb");

impl Terminal {
    pub(super) async fn run_here(
        &self,
        start: &Start,
        cx: &ToolCx<'_>,
        route: Route,
    ) -> Result<Came, Refusal> {
        if start.is_job() {
            self.start_job(start, cx).await
        } else {
            self.run_and_wait(start, cx, route).await
        }
    }

    async fn start_job(&self, start: &Start, cx: &ToolCx<'_>) -> Result<Came, Refusal> {
        let jobs = cx.workspace.jobs();
        let seat = jobs.reserve()?;
        let program = self.start_program(start, Line::Terminal, cx).await?;
        let job = program.keep(start.timeout.unwrap_or(JOB_LIFE));
        let entry = seat.fill(&start.command, cx.confinement, Place::Here(job));
        let patience = Patience { within: SETTLE, quiet: QUIET, n_unread_min: 0 };
        cx.cut.run_until_cancelled(entry.settled(patience)).await;
        Ok(begun(jobs, entry, cx).await)
    }

    async fn run_and_wait(&self, start: &Start, cx: &ToolCx<'_>, route: Route) -> Result<Came, Refusal> {
        if cx.cut.is_cancelled() {
            return Ok(Came::Ended(How::Here(Ended::Cancelled), Output::default()));
        }
        let (line, patience) = match start.need {
            Need::Nothing => (Line::Pipe, self.soft_limit),
            Need::Asking | Need::Talking => (Line::Terminal, self.soft_limit.min(super::SOFT_LIMIT_ASKING)),
        };
        let deadline = Instant::now() + start.timeout.unwrap_or(patience);
        let mut program = self.start_program(start, line, cx).await?;
        let mut watcher = watcher(cx, route);
        let happened = program.watch(cx.cut, deadline, watcher.as_mut()).await;
        let happened = happened.map_err(|error| not_run(&error.into()))?;
        let seat = match (happened, start.timeout) {
            // Where there is no room for one more job, it has had its time.
            (Happened::TimedOut, None) => cx.workspace.jobs().reserve().ok(),
            (Happened::TimedOut, Some(_)) | (Happened::Exited(_) | Happened::Cut, _) => None,
        };
        let came = match seat {
            Some(seat) => {
                let job = program.keep(JOB_LIFE);
                let output = job.take().await;
                let entry = seat.fill(&start.command, cx.confinement, Place::Here(job));
                Came::Runs { entry, output, waited: Some(patience) }
            }
            None => {
                let ran = program.finish(happened, watcher.as_mut()).await;
                Came::Ended(How::Here(ran.ended), ran.output)
            }
        };
        if route == Route::HereLive {
            (cx.progress)(came.exited());
        }
        Ok(came)
    }

    async fn start_program(&self, start: &Start, line: Line, cx: &ToolCx<'_>) -> Result<Program, Refusal> {
        let line_of_shell = match line {
            Line::Pipe => self.shell.announcing_directory(&start.command),
            Line::Terminal => start.command.clone(),
        };
        let (program, args) = (self.shell.program().to_owned(), self.shell.args(line_of_shell));
        let (program, args) = held(self.warden.as_ref(), (program, args), None, cx);
        let more = if line == Line::Terminal { Some(&DUMB) } else { None };
        let plain = PLAIN.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let env = plain.chain(cx.workspace.variables());
        let command = Command {
            program,
            args,
            cwd: start.folder(cx.workspace),
            env: env.collect(),
            env_removed: [STARTUP_VARIABLE.to_owned()]
                .into_iter()
                .chain(cx.workspace.secret_variables().iter().cloned())
                .collect(),
        };
        let kept =
            Kept { head_bytes: HEAD_BYTES, tail_bytes: TAIL_BYTES, spill: Some(self.spill_dir.clone()) };
        Program::start(&self.groups, command, line, kept).await.map_err(|error| not_run(&error))
    }
}

/// What to start for a program, as it is held; `hidden` is for those whose environment we do not make.
pub(super) fn held(
    warden: Option<&Warden>,
    (program, args): (String, Vec<String>),
    hidden: Option<Vec<String>>,
    cx: &ToolCx<'_>,
) -> (String, Vec<String>) {
    match warden {
        Some(warden) => {
            let confine = Confine {
                confinement: cx.confinement,
                writable: cx.workspace.roots().to_vec(),
                hidden,
                repositories: cx.workspace.repositories(),
            };
            warden.around(&confine, &program, &args)
        }
        None => (program, args),
    }
}

fn not_run(error: &SpawnError) -> Refusal {
    Refusal(format!("could not run the command: {error}"))
}

/// What came of a job's first moment; one that is over already was none.
pub(super) async fn begun(jobs: &Jobs, entry: Arc<Entry>, cx: &ToolCx<'_>) -> Came {
    // Looked at first: what ends meanwhile may have more to say.
    let ended = entry.ended();
    let output = entry.take(cx.cut).await;
    match ended {
        None => Came::Runs { entry, output, waited: None },
        Some(how) => {
            drop(jobs.remove(Some(&entry.name)));
            Came::Ended(how, output)
        }
    }
}

fn watcher<'a>(cx: &ToolCx<'a>, route: Route) -> Box<dyn Watcher + 'a> {
    let progress = cx.progress;
    match route {
        Route::HereLive => Box::new(Live { progress, begun: Vec::new() }),
        Route::Here | Route::Client | Route::Nowhere => {
            Box::new(move |text: &str| progress(Progress::Shows(vec![Content::Text(text.to_owned())])))
        }
    }
}

/// Hands output on as text while it comes, whole characters only.
struct Live<'a> {
    progress: &'a (dyn Fn(Progress) + Send + Sync),
    begun: Vec<u8>,
}

impl Watcher for Live<'_> {
    fn piece(&mut self, bytes: &[u8]) {
        self.begun.extend_from_slice(bytes);
        let n_whole = match std::str::from_utf8(&self.begun) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Ok(_) | Err(_) => self.begun.len(),
        };
        let whole: Vec<u8> = self.begun.drain(..n_whole).collect();
        if !whole.is_empty() {
            (self.progress)(Progress::Printed(String::from_utf8_lossy(&whole).into_owned()));
        }
    }

    fn picture(&mut self, _text: &dyn Fn() -> String) {}
}
