//! Runs one task: says so, starts its agent, talks to its parent if there is one, and says how it ended.

mod checkout;
mod licence_keeper;
mod records;
mod running;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_nats::Subscriber;
use async_nats::jetstream::{AckKind, Message};
use crow_acp::{AgentCommand, AgentProgram, RelayOutcome, channel_transport, splice_transports};
use tokio::sync::mpsc;

use self::checkout::{CheckoutRequest, TaskCheckout};
use self::licence_keeper::{LicenceEnd, LicenceKeeper, LicenceKeeperInit};
use self::records::list_lost_workers;
use self::running::RunningTask;
use super::context::{TaskBeginning, WorkerContext, WorkerEvent};
use super::kept_tasks::KeptTask;
use crate::code::EndCode;
use crate::record::{EndRecord, TakenRecord, TaskMessage};
use crate::streams;
use crate::subject::TaskAddress;

/// Workers that may lose a task before it is ended: it has probably killed them.
const LOST_WORKERS_MAX: usize = 5;

/// Time until a task is delivered again whose records could not be read.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Lines between this and the agent.
const QUEUED_LINES_MAX: usize = 64;

/// The directory of repositories for later tasks, beside the directories of tasks.
const BASES_DIR: &str = "repositories";

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

/// The parts of a task that was accepted.
struct AcceptedTask {
    address: TaskAddress,
    message: TaskMessage,
    taken: TakenRecord,
    /// The conversation with which it goes on.
    kept: Option<KeptTask>,
}

/// The directories of a task that runs.
#[derive(Clone, Copy)]
struct TaskPlace<'a> {
    /// The name of its directory.
    directory: &'a str,
    /// The working directory, in a worktree or the directory itself.
    cwd: &'a Path,
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
        let records = match streams::read_records(&self.context.jetstream, &task.address).await {
            Ok(records) => records,
            Err(reason) => {
                tracing::warn!(%reason, "it is not known whether a task has ended; it is given back");
                return self.acknowledge(AckKind::Nak(Some(RETRY_AFTER))).await;
            }
        };
        let has_ended = records.iter().any(|record| {
            record.is_end && EndRecord::decode(&record.payload, &task.message.ticket).is_some()
        });
        if has_ended {
            // An earlier worker has told the end, and could not remove the message.
            return self.acknowledge(AckKind::Ack).await;
        }
        let lost_workers = list_lost_workers(&records, &task.message.ticket);
        if lost_workers.len() >= LOST_WORKERS_MAX {
            let (n_workers, names) = (lost_workers.len(), lost_workers.join(", "));
            let outcome = RelayOutcome::failed(&format!(
                "{n_workers} workers began the task and did not finish it, so it is not tried again: {names}"
            ));
            return self.tell_end(&task, outcome, None).await;
        }
        let context = &self.context;
        task.kept = context.kept_tasks.find(&task.address.task, &task.message.ticket).await;
        task.taken.goes_on = task.kept.is_some();
        let announcement = self.announce(&task).await;
        context.counts.set_tokens(&task.address.task, 0);
        let is_first = !records.iter().any(|record| {
            !record.is_end && TakenRecord::decode(&record.payload, &task.message.ticket).is_some()
        });
        let beginning = match task.kept {
            Some(_) => TaskBeginning::Continued,
            None if is_first => TaskBeginning::First,
            None => TaskBeginning::Again,
        };
        let name = task.address.task.clone();
        (context.report)(WorkerEvent::Taken { task: name, delivery, beginning });
        let (end, leftovers) = self.run_task(&task, frames).await;
        drop(announcement);
        let outcome = self.conclude(&task, end, leftovers).await;
        context.counts.end_task(&task.address.task);
        (context.report)(WorkerEvent::Ended { task: task.address.task, outcome });
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
        Ok(AcceptedTask { address, message, taken, kept: None })
    }
}

/// The processes and the directory of a task that is over.
struct Leftovers {
    /// `None` if it never started or has exited.
    program: Option<AgentProgram>,
    directory: Option<PathBuf>,
    /// The code after the task, if its end is told.
    code: Option<EndCode>,
}

impl Leftovers {
    /// Ends the processes and removes the directory.
    async fn remove(self) {
        let directory = self.directory.clone();
        self.end_processes().await;
        let Some(directory) = directory else { return };
        if let Err(error) = tokio::fs::remove_dir_all(&directory).await {
            let directory = directory.display();
            tracing::warn!(%error, %directory, "the directory of a task was not removed");
        }
    }

    /// Ends the processes; another worker may go on in the directory.
    async fn end_processes(self) {
        if let Some(program) = self.program {
            program.shut_down().await;
        }
    }
}

impl TaskRun {
    /// Runs a task from its directory to its end.
    async fn run_task(&self, task: &AcceptedTask, frames: Subscriber) -> (RunEnd, Leftovers) {
        let context = &self.context;
        let mut leftovers = Leftovers { program: None, directory: None, code: None };
        let name = match &task.kept {
            Some(kept) => Ok(kept.directory.clone()),
            None => context.kept_tasks.make_directory(&task.address.task).await,
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
        let checking_out = self.check_out(task, &directory);
        let checkout = match keeper.run_step(Box::pin(checking_out)).await {
            Ok(Ok(checkout)) => checkout,
            Ok(Err(reason)) if task.kept.is_some() => return (RunEnd::NotResumed(reason), leftovers),
            Ok(Err(reason)) => {
                leftovers.code = Some(EndCode::Unchanged);
                let reason = format!("the worker could not check out the code: {reason}");
                return (RunEnd::Outcome(RelayOutcome::failed(&reason)), leftovers);
            }
            Err(end) => return (RunEnd::Stopped(end), leftovers),
        };
        let cwd = checkout.as_ref().map_or(directory.as_path(), TaskCheckout::cwd);
        let place = TaskPlace { directory: &name, cwd };
        let (end, program) = self.run_agent(task, place, frames, &mut keeper).await;
        leftovers.program = program;
        let (Some(checkout), RunEnd::Outcome(_)) = (checkout, &end) else { return (end, leftovers) };
        let sending = async {
            // What the agent has started must not write any more.
            if let Some(program) = leftovers.program.take() {
                program.shut_down().await;
            }
            checkout.send_back().await
        };
        match keeper.run_step(Box::pin(sending)).await {
            Ok(code) => leftovers.code = Some(code),
            Err(end) => return (RunEnd::Stopped(end), leftovers),
        }
        (end, leftovers)
    }

    /// Makes the worktree of a task that has code, or opens the one in which it goes on.
    async fn check_out<'a>(
        &'a self,
        task: &'a AcceptedTask,
        directory: &'a Path,
    ) -> Result<Option<TaskCheckout<'a>>, String> {
        let context = &self.context;
        let Some(code) = &task.message.code else { return Ok(None) };
        let request = CheckoutRequest {
            git: &context.options.git,
            jetstream: &context.jetstream,
            address: &task.address,
            worker: &task.taken.worker,
            code,
            directory,
            bases_dir: context.options.workspaces_dir.join(BASES_DIR),
        };
        match task.kept {
            Some(_) => TaskCheckout::reopen(request).await.map(Some),
            None => TaskCheckout::create(request).await.map(Some),
        }
    }

    /// Runs the agent of a task; returns its program unless it has exited.
    async fn run_agent(
        &self,
        task: &AcceptedTask,
        place: TaskPlace<'_>,
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
