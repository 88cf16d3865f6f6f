//! Runs one task: says so, starts its agent, talks to its parent if there is one, and says how it ended.

mod accepted;
mod checkout;
mod earlier_work;
mod licence_keeper;
mod records;
mod running;
mod saver;
mod workspace;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_nats::Subscriber;
use async_nats::jetstream::{AckKind, Message};
use crow_acp::{AgentCommand, AgentProgram, RelayOutcome, channel_transport, splice_transports};
use tokio::sync::{mpsc, watch};

use self::accepted::{AcceptedTask, TaskDirectories};
use self::earlier_work::EarlierWork;
use self::licence_keeper::{LicenceEnd, LicenceKeeper, LicenceKeeperInit};
use self::records::list_lost_workers;
use self::running::RunningTask;
use self::saver::TaskSaver;
use self::workspace::TaskWorkspace;
use super::context::{TaskBeginning, WorkerContext, WorkerEvent};
use crate::code::EndCode;
use crate::record::{EndRecord, TakenRecord, TaskMessage};
use crate::streams::{self, StoredRecord};
use crate::subject::TaskAddress;

/// Workers that may lose a task before it is ended: it has probably killed them.
const LOST_WORKERS_MAX: usize = 5;

/// Time until a task is delivered again whose records could not be read.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Lines between this and the agent.
const QUEUED_LINES_MAX: usize = 64;

/// Why the run of a task stops.
enum RunEnd {
    /// It has ended, and its parent is told.
    Outcome(RelayOutcome),
    /// This worker may not run it any more.
    Stopped(LicenceEnd),
    /// It cannot go on where an earlier worker stopped, for this reason.
    NotResumed(String),
}

/// A task that was delivered.
pub(super) struct TaskRun {
    context: Arc<WorkerContext>,
    message: Message,
}

impl TaskRun {
    pub(super) fn new(context: Arc<WorkerContext>, message: Message) -> Self {
        Self { context, message }
    }

    pub(super) async fn run(self) {
        let _held = self.message.reply.as_ref().map(|reply| self.context.watchdog.hold(reply));
        let mut task = match self.accept() {
            Ok(task) => task,
            Err(reason) => {
                tracing::warn!(subject = %self.message.subject, %reason, "a message that is no task was removed");
                return self.acknowledge(AckKind::Term).await;
            }
        };
        let (name, delivery) = (task.taken.worker.clone(), task.taken.delivery);
        let frames = self.context.client.subscribe(task.address.down_subject(&name)).await;
        let frames = match frames {
            Ok(frames) => frames,
            Err(error) => {
                tracing::warn!(%error, "could not listen to a parent");
                return self.acknowledge(AckKind::Nak(None)).await;
            }
        };
        let records = match self.read_records_of_open(&task).await {
            Ok(Some(records)) => records,
            Ok(None) => return self.acknowledge(AckKind::Ack).await,
            Err(reason) => {
                tracing::warn!(%reason, "it is not known whether a task has ended; it is given back");
                return self.acknowledge(AckKind::Nak(Some(RETRY_AFTER))).await;
            }
        };
        let lost_workers = list_lost_workers(&records, &task.message.ticket);
        if lost_workers.len() >= LOST_WORKERS_MAX {
            let (n_workers, names) = (lost_workers.len(), lost_workers.join(", "));
            let outcome = RelayOutcome::failed(&format!(
                "{n_workers} workers began the task and did not finish it, so it is not tried again: {names}"
            ));
            return self.tell_end(&task, outcome, None).await;
        }
        let context = &self.context;
        task.earlier_work = EarlierWork::find(context, &task.address, &task.message.ticket, &records).await;
        task.taken.goes_on = task.earlier_work.is_some();
        let announcement = self.announce(&task).await;
        context.counts.set_tokens(&task.address.task, 0);
        let was_taken = |record: &StoredRecord| {
            !record.is_end && TakenRecord::decode(&record.payload, &task.message.ticket).is_some()
        };
        let beginning = match task.earlier_work {
            Some(_) => TaskBeginning::Continued,
            None if records.iter().any(was_taken) => TaskBeginning::Again,
            None => TaskBeginning::First,
        };
        let name = task.address.task.clone();
        (context.report)(WorkerEvent::Taken { task: name, delivery, beginning });
        let (end, leftovers) = Box::pin(self.run_task(&task, frames)).await;
        drop(announcement);
        let outcome = self.conclude(&task, end, leftovers).await;
        context.counts.end_task(&task.address.task);
        (context.report)(WorkerEvent::Ended { task: task.address.task, outcome });
    }

    /// Returns the records of a task, or `None` if the task is over. Then an earlier worker has told the end and could not
    /// remove the message, or the parent removed the message while it was on its way here. A parent removes the message
    /// before the records, so this reads the records first.
    async fn read_records_of_open(&self, task: &AcceptedTask) -> Result<Option<Vec<StoredRecord>>, String> {
        let (jetstream, ticket) = (&self.context.jetstream, &task.message.ticket);
        let records = streams::read_records(jetstream, &task.address).await?;
        let is_end =
            |record: &StoredRecord| record.is_end && EndRecord::decode(&record.payload, ticket).is_some();
        if records.iter().any(is_end) {
            return Ok(None);
        }
        let message = streams::find_task(jetstream, &task.address).await?;
        Ok((message == Some(task.taken.sequence)).then_some(records))
    }

    fn accept(&self) -> Result<AcceptedTask, String> {
        let address =
            TaskAddress::parse_task_subject(&self.message.subject).ok_or("its subject is unknown")?;
        let message = TaskMessage::decode(&self.message.payload, &address.task)?;
        let info = self.message.info().map_err(|error| error.to_string())?;
        let taken = TakenRecord {
            worker: self.context.options.name.clone(),
            sequence: info.stream_sequence,
            delivery: u32::try_from(info.delivered).unwrap_or(u32::MAX),
            is_given_back: false,
            goes_on: false,
        };
        let progress = watch::Sender::default();
        Ok(AcceptedTask { address, message, taken, earlier_work: None, progress })
    }
}

/// The processes and the directory of a task that is over.
struct Leftovers {
    /// `None` if it never started or has exited.
    program: Option<AgentProgram>,
    directory: Option<PathBuf>,
    /// Has saved the files for other machines.
    saver: Option<TaskSaver>,
    /// The code after the task, if its end is told.
    code: Option<EndCode>,
}

impl Leftovers {
    /// Ends the processes and removes the directory, and what was saved of it.
    async fn remove(mut self) {
        self.end_processes().await;
        if let Some(saver) = self.saver {
            saver.clear().await;
        }
        let Some(directory) = self.directory else { return };
        if self.code.is_some_and(|code| code.has_unsent_work()) {
            let directory = directory.display();
            tracing::warn!(%directory, "the directory of a task is kept: it has work that was not sent back");
            return;
        }
        if let Err(error) = tokio::fs::remove_dir_all(&directory).await {
            let directory = directory.display();
            tracing::warn!(%error, %directory, "the directory of a task was not removed");
        }
    }

    /// Ends the processes; another worker may go on in the directory.
    async fn end_processes(&mut self) {
        if let Some(program) = self.program.take() {
            program.shut_down().await;
        }
    }
}

impl TaskRun {
    /// Runs a task from its directory to its end.
    async fn run_task(&self, task: &AcceptedTask, frames: Subscriber) -> (RunEnd, Leftovers) {
        let context = &self.context;
        let mut leftovers = Leftovers { program: None, directory: None, saver: None, code: None };
        let name = match &task.earlier_work {
            Some(EarlierWork::Kept(kept)) => Ok(kept.directory.clone()),
            Some(EarlierWork::Saved(saved)) => {
                let wanted = Some(saved.work.directory.as_str());
                context.kept_tasks.make_directory(&task.address.task, wanted).await
            }
            None => context.kept_tasks.make_directory(&task.address.task, None).await,
        };
        let name = match name {
            Ok(name) => name,
            Err(reason) => {
                let reason = format!("the worker could not make a directory for the task: {reason}");
                return (RunEnd::Outcome(RelayOutcome::failed(&reason)), leftovers);
            }
        };
        let directory = context.kept_tasks.directory(&name);
        leftovers.directory = Some(directory.clone());
        let mut keeper = LicenceKeeper::start(LicenceKeeperInit {
            message: self.message.clone(),
            jetstream: context.jetstream.clone(),
            address: task.address.clone(),
            ack_wait: context.ack_wait,
            kill: context.kill.clone(),
        });
        let preparing = TaskWorkspace::prepare(context, task, &directory);
        let workspace = match keeper.run_step(Box::pin(preparing)).await {
            Ok(Ok(workspace)) => workspace,
            Ok(Err(reason)) if task.earlier_work.is_some() => return (RunEnd::NotResumed(reason), leftovers),
            Ok(Err(reason)) => {
                leftovers.code = task.message.code.is_some().then_some(EndCode::Unchanged);
                return (RunEnd::Outcome(RelayOutcome::failed(&reason)), leftovers);
            }
            Err(end) => return (RunEnd::Stopped(end), leftovers),
        };
        let first_cwd = task.earlier_work.as_ref().map_or(workspace.cwd(), EarlierWork::first_cwd);
        let place = TaskDirectories { directory: &name, cwd: workspace.cwd(), first_cwd };
        if context.options.shares_sessions {
            leftovers.saver = Some(TaskSaver::new(context.clone(), task, place, workspace.files()));
        }
        let running = self.run_agent(task, place, frames, &mut keeper);
        let (end, program) = match &mut leftovers.saver {
            Some(saver) => saver.run_beside(running).await,
            None => running.await,
        };
        leftovers.program = program;
        let RunEnd::Outcome(_) = &end else { return (end, leftovers) };
        let sending = async {
            // What the agent has started must not write any more.
            leftovers.end_processes().await;
            workspace.send_back().await
        };
        match keeper.run_step(Box::pin(sending)).await {
            Ok(code) => leftovers.code = code,
            Err(end) => return (RunEnd::Stopped(end), leftovers),
        }
        (end, leftovers)
    }

    /// Runs the agent of a task; returns its program unless it has exited.
    async fn run_agent(
        &self,
        task: &AcceptedTask,
        place: TaskDirectories<'_>,
        frames: Subscriber,
        keeper: &mut LicenceKeeper,
    ) -> (RunEnd, Option<AgentProgram>) {
        let options = &self.context.options;
        let depth = (options.depth_variable.to_owned(), task.message.depth.to_string());
        let command = AgentCommand {
            cwd: place.cwd.to_owned(),
            env: options.agent.env.iter().cloned().chain([depth]).collect(),
            ..options.agent.clone()
        };
        let (lines, program) = match options.launcher.start("task", command).await {
            Ok(started) => started,
            Err(error) => {
                let outcome = RelayOutcome::failed(&format!("the agent could not be started: {error}"));
                return (RunEnd::Outcome(outcome), None);
            }
        };
        let (to_agent, agent_input) = mpsc::channel(QUEUED_LINES_MAX);
        let (agent_output, from_agent) = mpsc::channel(QUEUED_LINES_MAX);
        let splice = tokio::spawn(splice_transports(channel_transport(agent_input, agent_output), lines));
        let end = RunningTask::start(self, task, place, keeper).drive(to_agent, from_agent, frames).await;
        splice.abort();
        match end {
            Some(end) => (end, Some(program)),
            None => (RunningTask::exit_of(program).await, None),
        }
    }
}
