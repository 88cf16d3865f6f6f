//! Runs the tasks. The only place that waits for them, for signals and for time at once; what happens next is decided
//! by [`BatchSchedule`].

mod conclusion;
mod task_run;
mod task_worktree;

use std::{
    collections::BTreeMap,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use crow_core::{
    AgentServer, BatchAdmission, BatchSchedule, BatchSlot, BatchStopCause, BatchStopOrder, BatchStopStep,
};
use crow_fleet::FarmConnections;
use crow_process::{SignalListener, StopRequest};
use crow_tools::GitCli;
use futures_util::{FutureExt, StreamExt, future::LocalBoxFuture, stream::FuturesUnordered};
use serde_json::json;
use tokio::{
    sync::{Notify, Semaphore, watch},
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};

use self::conclusion::{TaskConclusion, conclude_task, exit_of_batch};
use self::task_run::run_task;
use super::{
    result_file::{EarlierResults, ResultFile},
    result_line::{BatchTaskState, TaskResult},
    screen::{BatchScreen, BatchStatus},
    tally::{self, BatchTally},
    task_dirs::TaskDirs,
    task_file::{TaskFile, TaskSurvey},
    task_line::{BatchTask, TaskRules},
    task_output::{TaskOutput, TaskRecord},
};
use crate::{
    agent::ConfigSource,
    cli::BatchArgs,
    failure::{CliError, CliExitCode},
    run::{self, PaintMode},
    settings::Settings,
};

/// Interval of the last line; its time changes each second.
const TICK: Duration = Duration::from_millis(250);

/// Results that are written together, unless their answers have more than [`ANSWER_BYTES_AT_ONCE`]. Each write waits for the
/// disk, and thousands of tasks may be cancelled at once.
const RESULTS_AT_ONCE_MAX: usize = 1024;

/// Bytes of answers after which results are written; one more may follow.
const ANSWER_BYTES_AT_ONCE: usize = 4 * 1024 * 1024;

/// Everything that stays the same during a batch.
pub(super) struct BatchContext<'a> {
    pub(super) args: BatchArgs,
    /// The file of results.
    pub(super) output: PathBuf,
    /// The agent; `None` is Crow.
    pub(super) external: Option<&'a AgentServer>,
    pub(super) dirs: TaskDirs,
    pub(super) rules: TaskRules<'a>,
    pub(super) settings: &'a Settings,
    pub(super) source: &'a ConfigSource,
    pub(super) current_dir: &'a Path,
    /// The connections of all tasks.
    pub(super) farms: FarmConnections,
    pub(super) git: GitCli,
    /// Permits to make or settle a worktree: thousands may begin at once.
    pub(super) worktree_permits: Semaphore,
}

/// The files of a batch, checked and read.
pub(super) struct BatchFiles {
    pub(super) tasks: TaskFile,
    pub(super) results: ResultFile,
    pub(super) earlier: EarlierResults,
}

/// A batch that runs.
pub(super) struct BatchRunner<'a> {
    context: &'a BatchContext<'a>,
    tasks: TaskFile,
    results: ResultFile,
    earlier: EarlierResults,
    schedule: BatchSchedule,
    tally: BatchTally,
    /// `None` if events are printed instead.
    screen: Option<BatchScreen<io::Stderr>>,
    signals: SignalListener,
    start: Instant,
    /// The next task, which could not start yet.
    next_task: Option<BatchTask>,
    running: BTreeMap<BatchSlot, RunningTask>,
    ends: FuturesUnordered<LocalBoxFuture<'a, TaskEnd>>,
    tokens_changed: Arc<Notify>,
    /// The reason why the batch cannot go on.
    abort_error: Option<CliError>,
    has_warned_of_tokens: bool,
}

struct RunningTask {
    id: String,
    record: TaskRecord,
    stop: watch::Sender<Option<StopRequest>>,
    start: Instant,
}

struct TaskEnd {
    slot: BatchSlot,
    result: Result<(), CliError>,
}

impl<'a> BatchRunner<'a> {
    pub(super) fn new(
        context: &'a BatchContext<'a>,
        files: BatchFiles,
        schedule: BatchSchedule,
        survey: TaskSurvey,
    ) -> Result<Self, CliError> {
        let screen = (!context.args.json).then(|| BatchScreen {
            err: io::stderr(),
            paint: PaintMode::for_stderr(),
            live_columns: live_columns(context),
        });
        Ok(Self {
            context,
            tasks: files.tasks,
            results: files.results,
            earlier: files.earlier,
            schedule,
            tally: BatchTally::new(survey),
            screen,
            signals: run::listen_for_signals()?,
            start: Instant::now(),
            next_task: None,
            running: BTreeMap::new(),
            ends: FuturesUnordered::new(),
            tokens_changed: Arc::default(),
            abort_error: None,
            has_warned_of_tokens: false,
        })
    }

    /// Runs all tasks and reports.
    pub(super) async fn run(mut self) -> Result<(), CliError> {
        let tokens_changed = Arc::clone(&self.tokens_changed);
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            self.start_tasks();
            if self.running.is_empty() {
                break;
            }
            let deadline = self.schedule.next_deadline().map(|at| self.start + at);
            tokio::select! {
                biased;
                request = self.signals.next_request() => self.on_signal(request),
                Some(end) = self.ends.next() => self.on_ends(end).await,
                () = tokens_changed.notified() => self.on_tokens(),
                () = wait_until(deadline) => {
                    let orders = self.schedule.on_time(self.start.elapsed());
                    self.stop_tasks(orders);
                }
                _ = ticks.tick(), if self.screen.is_some() => self.draw_status(),
            }
        }
        self.close_farms().await;
        self.report()
    }

    /// Waits for the servers of queues as long as they confirm what was cancelled.
    async fn close_farms(&mut self) {
        let mut n_left = usize::MAX;
        loop {
            match self.context.farms.close().await {
                0 => return,
                n if n < n_left => n_left = n,
                n => {
                    return self.notice(&format!(
                        "the server has not confirmed the end of {n} tasks; workers may still begin them"
                    ));
                }
            }
        }
    }

    fn start_tasks(&mut self) {
        loop {
            let task = match self.next_task.take().map_or_else(|| self.read_task(), |task| Ok(Some(task))) {
                Ok(Some(task)) => task,
                Ok(None) => return,
                Err(error) => return self.abort(error),
            };
            match self.schedule.admit(task.limits) {
                BatchAdmission::Start => self.start_task(task),
                BatchAdmission::Wait | BatchAdmission::Closed => {
                    self.next_task = Some(task);
                    return;
                }
            }
        }
    }

    /// Reads the next task that has not ended in an earlier run.
    fn read_task(&mut self) -> Result<Option<BatchTask>, CliError> {
        while let Some(task) = self.tasks.next_task(self.context.rules)? {
            if !self.earlier.has_ended(&task.id) {
                return Ok(Some(task));
            }
        }
        Ok(None)
    }

    fn start_task(&mut self, task: BatchTask) {
        let slot = self.schedule.start(task.limits, self.start.elapsed());
        let (stop, requests) = watch::channel(None);
        let record = TaskRecord::default();
        let id = task.id.clone();
        self.print_event(|| json!({"type": "started", "id": id}));
        self.running.insert(slot, RunningTask { id, record: record.clone(), stop, start: Instant::now() });
        let output = TaskOutput { record, tokens_changed: Arc::clone(&self.tokens_changed) };
        let context = self.context;
        let end = async move { TaskEnd { slot, result: run_task(context, task, output, requests).await } };
        self.ends.push(end.boxed_local());
    }

    fn on_signal(&mut self, request: StopRequest) {
        let now = self.start.elapsed();
        let is_first = self.schedule.stop_cause().is_none();
        let orders = match request {
            StopRequest::Interrupt if is_first => self.schedule.stop_all(BatchStopCause::Interrupted, now),
            StopRequest::Interrupt | StopRequest::Terminate => {
                self.schedule.quit_all(BatchStopCause::Interrupted, now)
            }
        };
        self.stop_tasks(orders);
        if is_first && request == StopRequest::Interrupt {
            let n_running = self.schedule.n_running();
            self.notice(&format!("stopping {n_running} running; Ctrl-C again ends them at once"));
        }
    }

    fn on_tokens(&mut self) {
        let tokens: Vec<_> = self
            .running
            .iter()
            .filter_map(|(slot, task)| Some((*slot, task.record.lock().tokens?)))
            .collect();
        for (slot, tokens) in tokens {
            let orders = self.schedule.on_tokens(slot, tokens, self.start.elapsed());
            self.stop_tasks(orders);
        }
    }

    /// Handles an end, and those that are there as well: they are written to the disk together.
    async fn on_ends(&mut self, first: TaskEnd) {
        let mut results = Vec::from_iter(self.on_end(first));
        let mut n_bytes: usize = results.iter().map(|result| result.text.len()).sum();
        while results.len() < RESULTS_AT_ONCE_MAX
            && n_bytes < ANSWER_BYTES_AT_ONCE
            && let Some(Some(end)) = self.ends.next().now_or_never()
        {
            let result = self.on_end(end);
            n_bytes += result.as_ref().map_or(0, |result| result.text.len());
            results.extend(result);
        }
        if self.abort_error.is_none()
            && let Err(error) = self.results.append(&results).await
        {
            let reason = format!("could not write the results to {}: {error}", self.context.output.display());
            self.abort(CliError::new(CliExitCode::Failed, reason));
        }
        for result in results {
            self.show_result(&result);
        }
    }

    /// Frees the slot of a task that ended; returns its result, unless it ends the batch.
    fn on_end(&mut self, TaskEnd { slot, result }: TaskEnd) -> Option<TaskResult> {
        let task = self.running.remove(&slot)?;
        let mut progress = std::mem::take(&mut *task.record.lock());
        let cause = self.schedule.on_end(slot, progress.tokens);
        match conclude_task(result, cause, progress.error.take(), progress.failure_kind) {
            TaskConclusion::Ended { state, error } => Some(TaskResult {
                id: task.id,
                state,
                text: progress.answer.take(),
                session: progress.session,
                branch: progress.branch,
                worktree: progress.kept_worktree,
                tokens: progress.tokens,
                seconds: (task.start.elapsed().as_secs_f64() * 10.0).round() / 10.0,
                error,
            }),
            TaskConclusion::Aborted(error) => {
                self.abort(error);
                None
            }
        }
    }

    fn show_result(&mut self, result: &TaskResult) {
        self.warn_of_tokens(result);
        self.tally.add(result);
        if let Some(screen) = &mut self.screen {
            // A closed stderr is not an error.
            let _ = screen.show_result(result, &self.tally);
            self.draw_status();
        }
        self.print_event(|| {
            let mut event = json!({"type": "result"});
            if let (Some(event), Ok(serde_json::Value::Object(fields))) =
                (event.as_object_mut(), serde_json::to_value(result))
            {
                event.extend(fields);
            }
            event
        });
    }

    /// Ends the batch, since no further task can succeed or be recorded. The first reason counts.
    fn abort(&mut self, error: CliError) {
        self.abort_error.get_or_insert(error);
        let orders = self.schedule.stop_all(BatchStopCause::Aborted, self.start.elapsed());
        self.stop_tasks(orders);
    }

    fn stop_tasks(&self, orders: Vec<BatchStopOrder>) {
        for BatchStopOrder { slot, step } in orders {
            let request = match step {
                BatchStopStep::Cancel => StopRequest::Interrupt,
                BatchStopStep::Quit => StopRequest::Terminate,
            };
            if let Some(task) = self.running.get(&slot) {
                task.stop.send_replace(Some(request));
            }
        }
    }

    /// Shows a notice, once, if tokens are limited and the agent does not count them.
    fn warn_of_tokens(&mut self, result: &TaskResult) {
        let is_uncounted = result.state == BatchTaskState::Done && result.tokens.is_none();
        if is_uncounted && self.context.args.max_tokens.is_some() && !self.has_warned_of_tokens {
            self.has_warned_of_tokens = true;
            self.notice("the agent does not say how many tokens it uses; only each max_tokens is counted");
        }
    }

    fn notice(&mut self, text: &str) {
        // A closed stderr is not an error.
        let _ = match &mut self.screen {
            Some(screen) => screen.show_notice(text),
            None => writeln!(io::stderr(), "{text}"),
        };
    }

    fn draw_status(&mut self) {
        let Some(screen) = &mut self.screen else { return };
        let status = BatchStatus {
            n_running: self.schedule.n_running(),
            tokens: self.schedule.tokens(),
            elapsed: self.start.elapsed(),
            is_stopping: self.schedule.stop_cause().is_some(),
        };
        // A closed stderr is not an error.
        let _ = screen.draw_status(status, &self.tally);
    }

    fn print_event(&mut self, event: impl FnOnce() -> serde_json::Value) {
        if !self.context.args.json {
            return;
        }
        let mut out = io::stdout().lock();
        if let Err(error) = writeln!(out, "{}", event()).and_then(|()| out.flush()) {
            drop(out);
            self.abort(error.into());
        }
    }

    /// Prints the tables, or the last event, and returns how the batch ended.
    fn report(mut self) -> Result<(), CliError> {
        if let Some(screen) = &mut self.screen {
            // A closed stderr is not an error.
            let _ = screen.erase_status();
            if self.tally.n_ended() > 0 {
                let _ = screen.show_gap();
            }
            let columns = crow_process::terminal_size(&io::stdout()).ok().flatten();
            let columns = columns.map_or(tally::COLUMNS, |cells| usize::from(cells.columns));
            let mut out = io::stdout().lock();
            self.tally.write_tables(&mut out, columns)?;
            out.flush()?;
            let _ = screen.show_gap();
            let _ = screen.show_labelled("results", &self.context.output.display().to_string());
            let next_step = match (self.tally.is_incomplete(), self.tally.has_failures()) {
                (true, _) => Some("run the same command again"),
                (false, true) => Some("add --retry-failed to run failed tasks again"),
                (false, false) => None,
            };
            if let Some(next_step) = next_step {
                let _ = screen.show_labelled("continue", next_step);
            }
        }
        let event = self.tally.to_json();
        self.print_event(|| event);
        exit_of_batch(self.abort_error, self.schedule.stop_cause(), &self.tally)
    }
}

/// Returns how wide the last line may be. Only a terminal that can move its cursor has one.
fn live_columns(context: &BatchContext<'_>) -> fn() -> Option<usize> {
    let is_dumb = context.source.env.get("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    if is_dumb {
        return || None;
    }
    || {
        let cells = crow_process::terminal_size(&io::stderr()).ok().flatten()?;
        Some(usize::from(cells.columns))
    }
}

async fn wait_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
