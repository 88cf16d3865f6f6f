//! Drives the agent of a task: its lines, the frames of its parent, the licence to run it, and its end.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::time::Duration;

use async_nats::Subscriber;
use crow_acp::{AgentProgram, RelayOutcome, RelayTask, WorkerRelay, WorkerRelayAction};
use futures_util::StreamExt;
use tokio::sync::mpsc;

use super::accepted::{AcceptedTask, TaskDirectories};
use super::earlier_work::EarlierWork;
use super::licence_keeper::{LicenceEnd, LicenceKeeper};
use super::{QUEUED_LINES_MAX, RunEnd, TaskRun};
use crate::connection::FleetClock;
use crate::frame::LineFrame;
use crate::line_channel::LineChannel;
use crate::ticket::SignedKind;
use crate::worker::kept_tasks::KeptTask;

/// Time that the last lines have to reach the parent before the end is told.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(2);

/// Pause before a session is asked for again.
const RESUME_PAUSE: Duration = Duration::from_millis(500);

/// Time for a session to be free: a database notices within some 20 seconds that the machine of its process is lost.
const RESUME_TIME_MAX: Duration = Duration::from_secs(40);

/// The prompt with which a task goes on in its directory.
const GO_ON_PROMPT: &str = "The process that worked on this task was stopped, and you go on where it was, in the same \
    directory. Calls that ran at that moment may have had effects: look before you repeat one. Finish the task, and end with \
    its result.";

/// The prompt with which a task goes on on another machine.
fn move_prompt(cwd: &Path) -> String {
    format!(
        "The machine that worked on this task was lost, and you go on on another one. Your working directory is {}. Its files \
         are as they were after one of your last calls; files that git ignores, and all that was outside of it, are not here. \
         Look before you rely on a file or repeat a call. Finish the task, and end with its result.",
        cwd.display()
    )
}

/// A task whose agent runs.
pub(super) struct RunningTask<'a> {
    run: &'a TaskRun,
    task: &'a AcceptedTask,
    clock: FleetClock,
    relay: WorkerRelay,
    keeper: &'a mut LicenceKeeper,
    channel: Option<LineChannel>,
    /// Lines that the agent does not take yet.
    waiting_lines: VecDeque<String>,
    /// The directories of the task, until the conversation is kept.
    unkept: Option<TaskDirectories<'a>>,
    /// When the session is asked for again.
    resume_time: Option<Duration>,
    end: Option<RunEnd>,
}

impl<'a> RunningTask<'a> {
    /// Returns the end of a task whose agent exited by itself: its exit is the reason.
    pub(super) async fn exit_of(program: AgentProgram) -> RunEnd {
        let exit = program.shut_down().await;
        let stderr = exit.stderr.lines().last().unwrap_or_default();
        RunEnd::Outcome(RelayOutcome::failed(&format!(
            "the agent exited{}{stderr}",
            if stderr.is_empty() { "" } else { "; its stderr: " }
        )))
    }

    pub(super) fn start(
        run: &'a TaskRun,
        task: &'a AcceptedTask,
        place: TaskDirectories<'a>,
        keeper: &'a mut LicenceKeeper,
    ) -> Self {
        let options = &run.context.options;
        let prompt = match &task.earlier_work {
            None => task.message.prompt.clone(),
            Some(EarlierWork::Kept(_)) => GO_ON_PROMPT.to_owned(),
            Some(EarlierWork::Saved(_)) => move_prompt(place.cwd),
        };
        let (relay, actions) = WorkerRelay::start(RelayTask {
            cwd: place.cwd.to_owned(),
            prompt,
            session: task.earlier_work.as_ref().map(EarlierWork::session),
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
            unkept: Some(place),
            resume_time: None,
            end: None,
        };
        running.carry_out(actions);
        running
    }

    /// Runs until the end; `None` if the agent exited before.
    pub(super) async fn drive(
        mut self,
        to_agent: mpsc::Sender<io::Result<String>>,
        mut from_agent: mpsc::Receiver<io::Result<String>>,
        mut frames: Subscriber,
    ) -> Option<RunEnd> {
        let context = &self.run.context;
        let time_limit = context.options.task_time_max;
        loop {
            match self.end.take() {
                Some(RunEnd::Outcome(outcome)) => {
                    return Some(RunEnd::Outcome(self.flush(outcome, &mut frames).await));
                }
                Some(end) => return Some(end),
                None => {}
            }
            self.send_frames().await;
            if let Some(end) = self.keeper.end() {
                return Some(RunEnd::Stopped(end));
            }
            let deadline = self.channel.as_ref().map(LineChannel::next_deadline);
            let times = [Some(self.keeper.next_time()), deadline, self.resume_time];
            let wake = times.into_iter().flatten().fold(time_limit, Duration::min);
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
                        self.follow_conversation().await;
                    }
                    Some(Err(_)) | None => return None,
                },
                () = self.clock.sleep_until(wake) => {
                    self.keeper.send_when_due();
                    self.resume_when_due();
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
                WorkerRelayAction::NotResumed { reason, is_missing } => {
                    self.retry_resuming(reason, is_missing);
                }
                WorkerRelayAction::End(outcome) => self.end = Some(RunEnd::Outcome(outcome)),
            }
        }
    }

    /// Asks for the session again later, because the process that had it may still be ending.
    fn retry_resuming(&mut self, reason: String, is_missing: bool) {
        let now = self.clock.now();
        if is_missing || now >= RESUME_TIME_MAX {
            self.end = Some(RunEnd::NotResumed(reason));
        } else {
            self.resume_time = Some(now + RESUME_PAUSE);
        }
    }

    fn resume_when_due(&mut self) {
        if self.resume_time.take_if(|time| *time <= self.clock.now()).is_some() {
            let actions = self.relay.resume_again();
            self.carry_out(actions);
        }
    }

    /// Keeps the conversation once it has begun, so that another worker can go on with it, and tells of its calls.
    async fn follow_conversation(&mut self) {
        let Some(session) = self.relay.resumable_session() else { return };
        let n_ended_calls = self.relay.n_ended_calls();
        self.task.progress.send_if_modified(|progress| {
            if progress.session.is_empty() {
                session.clone_into(&mut progress.session);
            }
            std::mem::replace(&mut progress.n_ended_calls, n_ended_calls) != n_ended_calls
        });
        let Some(TaskDirectories { directory, first_cwd, .. }) = self.unkept.take() else { return };
        let (task, ticket) = (&self.task.address.task, &self.task.message.ticket);
        let kept = KeptTask {
            session: session.to_owned(),
            first_cwd: first_cwd.to_owned(),
            directory: directory.to_owned(),
            delivery: self.task.taken.task_delivery(),
        };
        if let Err(error) = self.run.context.kept_tasks.keep(task, &kept, ticket).await {
            tracing::warn!(%error, %task, "the conversation could not be kept; a lost task begins again");
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
