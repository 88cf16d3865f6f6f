//! Runs one task: says so, starts its agent, talks to its parent if there is one, and says how it ended.

mod checkout;
mod licence_keeper;
mod records;

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_nats::Subscriber;
use async_nats::jetstream::{AckKind, Message};
use crow_acp::{
    AgentCommand, AgentProgram, RelayOutcome, RelayTask, WorkerRelay, WorkerRelayAction, channel_transport,
    splice_transports,
};
use futures_util::StreamExt;
use tokio::sync::mpsc;

use self::checkout::{CheckoutRequest, TaskCheckout};
use self::licence_keeper::{LicenceEnd, LicenceKeeper, LicenceKeeperInit};
use self::records::list_lost_workers;
use super::{WorkerContext, WorkerEvent};
use crate::code::EndCode;
use crate::connection::FleetClock;
use crate::frame::LineFrame;
use crate::line_channel::LineChannel;
use crate::record::{EndRecord, TakenRecord, TaskMessage};
use crate::streams;
use crate::subject::TaskAddress;
use crate::ticket::SignedKind;

/// Workers that may lose a task before it is ended: it has probably killed them.
const LOST_WORKERS_MAX: usize = 5;

/// Time until a task is delivered again whose records could not be read.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Lines between this and the agent.
const QUEUED_LINES_MAX: usize = 64;

/// The directory of repositories for later tasks, beside the directories of tasks.
const BASES_DIR: &str = "repositories";

/// Time that the last lines have to reach the parent before the end is told.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(2);

/// Why the run of a task stops.
enum RunEnd {
    /// It has ended, and its parent is told.
    Outcome(RelayOutcome),
    /// This worker may not run it any more.
    Stopped(LicenceEnd),
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
}

impl TaskRun {
    pub(super) fn new(context: Arc<WorkerContext>, message: Message) -> Self {
        Self { context, message }
    }

    pub(super) async fn run(self) {
        let _held = self.message.reply.as_ref().map(|reply| self.context.watchdog.hold(reply));
        let task = match self.accept() {
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
        let announcement = self.announce(&task).await;
        let context = &self.context;
        context.counts.set_tokens(&task.address.task, 0);
        (context.report)(WorkerEvent::Taken { task: task.address.task.clone(), delivery });
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
        };
        Ok(AcceptedTask { address, message, taken })
    }
}

/// The processes and the directory of a task that is over.
struct Leftovers {
    /// `None` if it never started or has exited.
    program: Option<AgentProgram>,
    directory: PathBuf,
    /// The code after the task, if its end is told.
    code: Option<EndCode>,
}

impl Leftovers {
    async fn remove(self) {
        if let Some(program) = self.program {
            program.shut_down().await;
        }
        if let Err(error) = tokio::fs::remove_dir_all(&self.directory).await {
            let directory = self.directory.display();
            tracing::warn!(%error, %directory, "the directory of a task was not removed");
        }
    }
}

/// A task whose agent runs.
struct RunningTask<'a> {
    run: &'a TaskRun,
    task: &'a AcceptedTask,
    clock: FleetClock,
    relay: WorkerRelay,
    keeper: &'a mut LicenceKeeper,
    channel: Option<LineChannel>,
    /// Lines that the agent does not take yet.
    waiting_lines: VecDeque<String>,
    outcome: Option<RelayOutcome>,
}

impl TaskRun {
    /// Runs a task from its directory to its end.
    async fn run_task(&self, task: &AcceptedTask, frames: Subscriber) -> (RunEnd, Leftovers) {
        let directory = format!("{}-{}", task.address.task, task.taken.delivery);
        let directory = self.context.options.workspaces_dir.join(directory);
        let mut leftovers = Leftovers { program: None, directory: directory.clone(), code: None };
        let failed = |reason: String| RunEnd::Outcome(RelayOutcome::failed(&reason));
        if let Err(error) = tokio::fs::create_dir_all(&directory).await {
            let reason = format!("the worker could not make a directory for the task: {error}");
            return (failed(reason), leftovers);
        }
        let context = &self.context;
        let mut keeper = LicenceKeeper::start(LicenceKeeperInit {
            message: self.message.clone(),
            jetstream: context.jetstream.clone(),
            address: task.address.clone(),
            ack_wait: context.ack_wait,
            kill: context.kill.clone(),
        });
        let bases_dir = context.options.workspaces_dir.join(BASES_DIR);
        let checking_out = async {
            let Some(code) = &task.message.code else { return Ok(None) };
            let request = CheckoutRequest {
                git: &context.options.git,
                jetstream: &context.jetstream,
                address: &task.address,
                worker: &task.taken.worker,
                code,
                directory: &directory,
                bases_dir: &bases_dir,
            };
            TaskCheckout::create(request).await.map(Some)
        };
        let checkout = match keeper.run_step(Box::pin(checking_out)).await {
            Ok(Ok(checkout)) => checkout,
            Ok(Err(reason)) => {
                leftovers.code = Some(EndCode::Unchanged);
                return (failed(format!("the worker could not check out the code: {reason}")), leftovers);
            }
            Err(end) => return (RunEnd::Stopped(end), leftovers),
        };
        let cwd = checkout.as_ref().map_or(directory.as_path(), TaskCheckout::cwd);
        let (end, program) = self.run_agent(task, cwd, frames, &mut keeper).await;
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

    /// Runs the agent of a task; returns its program unless it has exited.
    async fn run_agent(
        &self,
        task: &AcceptedTask,
        cwd: &Path,
        frames: Subscriber,
        keeper: &mut LicenceKeeper,
    ) -> (RunEnd, Option<AgentProgram>) {
        let options = &self.context.options;
        let depth = (options.depth_variable.to_owned(), task.message.depth.to_string());
        let command = AgentCommand {
            cwd: cwd.to_owned(),
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
        let end = RunningTask::start(self, task, cwd, keeper).drive(to_agent, from_agent, frames).await;
        splice.abort();
        match end {
            Some(end) => (end, Some(program)),
            None => (RunningTask::exit_of(program).await, None),
        }
    }
}

impl<'a> RunningTask<'a> {
    /// Returns the end of a task whose agent exited by itself: its exit is the reason.
    async fn exit_of(program: AgentProgram) -> RunEnd {
        let exit = program.shut_down().await;
        let stderr = exit.stderr.lines().last().unwrap_or_default();
        RunEnd::Outcome(RelayOutcome::failed(&format!(
            "the agent exited{}{stderr}",
            if stderr.is_empty() { "" } else { "; its stderr: " }
        )))
    }

    fn start(run: &'a TaskRun, task: &'a AcceptedTask, cwd: &Path, keeper: &'a mut LicenceKeeper) -> Self {
        let options = &run.context.options;
        let (relay, actions) = WorkerRelay::start(RelayTask {
            cwd: cwd.to_owned(),
            prompt: task.message.prompt.clone(),
            model: task.message.model.clone(),
            mode: task.message.mode.stricter(options.mode_max),
            version: options.version,
        });
        let mut running = Self {
            run,
            task,
            clock: keeper.clock(),
            relay,
            keeper,
            channel: None,
            waiting_lines: VecDeque::new(),
            outcome: None,
        };
        running.carry_out(actions);
        running
    }

    /// Runs until the end; `None` if the agent exited before.
    async fn drive(
        mut self,
        to_agent: mpsc::Sender<io::Result<String>>,
        mut from_agent: mpsc::Receiver<io::Result<String>>,
        mut frames: Subscriber,
    ) -> Option<RunEnd> {
        let context = &self.run.context;
        let time_limit = context.options.task_time_max;
        loop {
            if let Some(outcome) = self.outcome.take() {
                return Some(RunEnd::Outcome(self.flush(outcome, &mut frames).await));
            }
            self.send_frames().await;
            if let Some(end) = self.keeper.end() {
                return Some(RunEnd::Stopped(end));
            }
            let wake = self.keeper.next_time().min(time_limit);
            let deadline = self.channel.as_ref().map(LineChannel::next_deadline);
            let wake = deadline.map_or(wake, |deadline| deadline.min(wake));
            let (has_lines, can_send) = (!self.waiting_lines.is_empty(), self.can_send());
            let is_backed_up = self.waiting_lines.len() >= QUEUED_LINES_MAX;
            tokio::select! {
                biased;
                () = context.kill.cancelled() => return Some(RunEnd::Stopped(LicenceEnd::GivenBack)),
                permit = to_agent.reserve(), if has_lines => match permit {
                    Ok(permit) => if let Some(line) = self.waiting_lines.pop_front() {
                        permit.send(Ok(line));
                    },
                    Err(_) => self.waiting_lines.clear(),
                },
                () = self.keeper.wait_for_answer() => {}
                Some(frame) = frames.next(), if !is_backed_up => self.handle_frame(&frame.payload),
                line = from_agent.recv(), if can_send => match line {
                    Some(Ok(line)) => {
                        let tokens = self.relay.tokens_spent();
                        let actions = self.relay.handle_agent_line(&line);
                        if self.relay.tokens_spent() != tokens {
                            context.counts.set_tokens(&self.task.address.task, self.relay.tokens_spent());
                        }
                        self.carry_out(actions);
                    }
                    Some(Err(_)) | None => return None,
                },
                () = self.clock.sleep_until(wake) => {
                    self.keeper.send_when_due();
                    if self.clock.now() >= time_limit {
                        let limit = time_limit.as_secs().div_ceil(60);
                        let actions = self.relay.fail(&format!("the worker's limit of {limit} minutes is over"));
                        self.carry_out(actions);
                    }
                    self.end_silence();
                }
            }
        }
    }

    fn can_send(&self) -> bool {
        self.channel.as_ref().is_none_or(LineChannel::has_room)
    }

    fn carry_out(&mut self, actions: Vec<WorkerRelayAction>) {
        for action in actions {
            match action {
                WorkerRelayAction::SendToAgent(line) => self.waiting_lines.push_back(line),
                WorkerRelayAction::SendToParent(line) => match &mut self.channel {
                    Some(channel) => {
                        if channel.push_line(&line).is_err() {
                            self.relay.mark_incomplete();
                        }
                    }
                    None => self.relay.mark_incomplete(),
                },
                WorkerRelayAction::End(outcome) => self.outcome = Some(outcome),
            }
        }
    }

    async fn send_frames(&mut self) {
        let Some(channel) = &mut self.channel else { return };
        let subject = self.task.address.up_subject(&self.task.taken.worker);
        while let Some(frame) = channel.next_frame(self.clock.now()) {
            let bytes = frame.encode(SignedKind::UpFrame, &self.task.message.ticket);
            if let Err(error) = self.run.context.client.publish(subject.clone(), bytes.into()).await {
                tracing::debug!(%error, "a frame was not sent; it is sent again");
                return;
            }
        }
    }

    fn handle_frame(&mut self, payload: &[u8]) {
        let Some(frame) = LineFrame::decode(payload, SignedKind::DownFrame, &self.task.message.ticket) else {
            tracing::warn!(task = %self.task.address.task, "a frame without a valid signature was dropped");
            return;
        };
        let (epoch, now) = (frame.epoch, self.clock.now());
        if (epoch.sequence, epoch.delivery) != (self.task.taken.sequence, self.task.taken.delivery) {
            return;
        }
        if self.channel.as_ref().is_none_or(|channel| channel.epoch() < epoch) {
            self.drop_channel();
            self.channel = Some(LineChannel::accept(epoch, now));
            let actions = self.relay.attach();
            self.carry_out(actions);
        }
        let Some(channel) = self.channel.as_mut().filter(|channel| channel.epoch() == epoch) else { return };
        match channel.handle_frame(frame, now) {
            Ok(Some(line)) => {
                let actions = self.relay.handle_parent_line(&line);
                self.carry_out(actions);
            }
            Ok(None) => {}
            Err(_) => self.drop_channel(),
        }
    }

    fn end_silence(&mut self) {
        if self.channel.as_ref().is_some_and(|channel| channel.is_silent(self.clock.now())) {
            self.drop_channel();
        }
    }

    /// Ends the connection to a parent, which misses what was not acknowledged.
    fn drop_channel(&mut self) {
        if self.channel.take().is_some_and(|channel| !channel.is_delivered()) {
            self.relay.mark_incomplete();
        }
        self.relay.detach();
    }

    /// Gives the parent some time to come for the first time, and for the last lines.
    async fn flush(&mut self, outcome: RelayOutcome, frames: &mut Subscriber) -> RelayOutcome {
        let deadline = self.clock.now() + FLUSH_TIME_MAX;
        while self.clock.now() < deadline {
            let wake = match &self.channel {
                Some(channel) if !channel.is_delivered() => channel.next_deadline().min(deadline),
                None if self.relay.has_early_updates() => deadline,
                Some(_) | None => break,
            };
            self.send_frames().await;
            tokio::select! {
                Some(frame) = frames.next() => self.handle_frame(&frame.payload),
                () = self.clock.sleep_until(wake) => {}
            }
        }
        let is_delivered = self.channel.as_ref().is_some_and(LineChannel::is_delivered);
        RelayOutcome { is_complete: self.relay.is_complete() && is_delivered, ..outcome }
    }
}
