//! Drives one task of a parent: waits for what happens, asks [`FarmMachine`] what that means, and carries it out.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_nats::{Message, Subscriber};
use crow_acp::{ParentRelay, ParentRelayAction};
use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::machine::{FarmAction, FarmEvent, FarmMachine};
use super::{FarmConnection, FarmTask, session_name};
use crate::connection::FleetClock;
use crate::frame::{FrameEpoch, LineFrame};
use crate::line_channel::LineChannel;
use crate::record::{EndRecord, TakenRecord, TaskMessage, TaskParts};
use crate::streams::{self, PublishOutcome, RECORDS, StoredRecord, TASKS, publish};
use crate::subject::TaskAddress;
use crate::ticket::{SignedKind, TaskTicket};

/// Time between two looks for a task of which nothing was heard: servers lose what they had not written to disk.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// Pause before a message is published again that was not confirmed.
const PUBLISH_PAUSE: Duration = Duration::from_secs(1);

/// Lines for the client that wait; more frames are not read before.
const WAITING_LINES_MAX: usize = 64;

/// Time for a deletion, which takes milliseconds: a stream that elects its leader does not answer.
const DELETE_TIMEOUT: Duration = Duration::from_secs(1);

/// Pause before a message is deleted again whose deletion was not confirmed.
const DELETE_PAUSE: Duration = Duration::from_secs(1);

/// Time for the last words to the server: longer than two elections, which take up to nine seconds.
const CLEAN_UP_TIMEOUT: Duration = Duration::from_secs(20);

/// The driver of one task.
pub(super) struct FarmTaskDriver {
    connection: Arc<FarmConnection>,
    address: TaskAddress,
    ticket: TaskTicket,
    task: FarmTask,
    clock: FleetClock,
    machine: FarmMachine,
    relay: ParentRelay,
    /// The message, once the prompt has come.
    message: Option<Vec<u8>>,
    /// Lines that the client does not take yet.
    waiting_lines: VecDeque<String>,
    link: Option<WorkerLink>,
    /// Requests to the server.
    requests: JoinSet<Option<FarmEvent>>,
    /// Sequences of its records.
    record_sequences: Vec<u64>,
    next_check: Instant,
    is_closed: bool,
}

/// The connection to the worker that has the task.
struct WorkerLink {
    record: TakenRecord,
    frames: Subscriber,
    channel: LineChannel,
}

impl FarmTaskDriver {
    pub(super) fn new(
        connection: Arc<FarmConnection>,
        address: TaskAddress,
        ticket: TaskTicket,
        task: FarmTask,
    ) -> Self {
        let relay = ParentRelay::new(session_name(&address), task.version);
        Self {
            connection,
            address,
            ticket,
            task,
            clock: FleetClock::start(),
            machine: FarmMachine::default(),
            relay,
            message: None,
            waiting_lines: VecDeque::new(),
            link: None,
            requests: JoinSet::new(),
            record_sequences: Vec::new(),
            next_check: Instant::now() + CHECK_INTERVAL,
            is_closed: false,
        }
    }

    /// Drives the task until its client is gone and the server knows what it has to know.
    pub(super) async fn run(
        mut self,
        mut from_client: mpsc::Receiver<io::Result<String>>,
        to_client: mpsc::Sender<io::Result<String>>,
        mut records: mpsc::Receiver<StoredRecord>,
    ) {
        while !self.is_closed {
            self.send_frames().await;
            let deadline = self.link.as_ref().map(|link| link.channel.next_deadline());
            let (clock, has_lines) = (self.clock, !self.waiting_lines.is_empty());
            let (is_full, can_send) = (self.waiting_lines.len() >= WAITING_LINES_MAX, self.can_send());
            tokio::select! {
                biased;
                line = from_client.recv(), if can_send => match line {
                    Some(Ok(line)) => {
                        let actions = self.relay.handle_client_line(&line);
                        self.carry_out_all(actions).await;
                    }
                    Some(Err(_)) | None => self.handle_event(FarmEvent::ClientClosed).await,
                },
                permit = to_client.reserve(), if has_lines => match permit {
                    Ok(permit) => {
                        if let Some(line) = self.waiting_lines.pop_front() {
                            permit.send(Ok(line));
                        }
                    }
                    Err(_) => self.handle_event(FarmEvent::ClientClosed).await,
                },
                Some(Ok(event)) = self.requests.join_next() => if let Some(event) = event {
                    self.handle_event(event).await;
                },
                // What the worker said before its end comes first.
                frame = next_frame(self.link.as_mut()), if !is_full => self.handle_frame(frame).await,
                Some(record) = records.recv() => self.handle_record(&record).await,
                () = sleep_until(self.next_check) => {
                    self.next_check = Instant::now() + CHECK_INTERVAL;
                    self.handle_event(FarmEvent::CheckDue).await;
                }
                () = wait_until(clock, deadline) => self.end_silence(),
            }
        }
        self.connection.forget_task(&self.address.task);
        let finish = async {
            while let Some(result) = self.requests.join_next().await {
                if let Ok(Some(event)) = result {
                    self.handle_event(event).await;
                }
            }
        };
        if timeout(CLEAN_UP_TIMEOUT, finish).await.is_err() {
            tracing::debug!("the server did not confirm the end of a task in time");
        }
    }

    /// Whether a line to the worker would have room; others do not need any.
    fn can_send(&self) -> bool {
        self.link.as_ref().is_none_or(|link| link.channel.has_room())
    }

    async fn handle_event(&mut self, event: FarmEvent) {
        for action in self.machine.handle_event(event) {
            self.carry_out(action).await;
        }
    }

    async fn carry_out(&mut self, action: FarmAction) {
        match action {
            FarmAction::Publish { attempt } => self.publish(attempt, Duration::ZERO),
            FarmAction::PublishAgain { attempt } => self.publish(attempt, PUBLISH_PAUSE),
            FarmAction::LookForEnd => self.look_for_end(),
            FarmAction::Attach(record) => self.attach(record).await,
            FarmAction::Detach => {
                self.link = None;
                let actions = self.relay.detach();
                self.send_to_client(actions);
            }
            FarmAction::ShowNotice(text) => {
                let notice = self.relay.show_notice(&text);
                self.send_to_client(vec![notice]);
            }
            FarmAction::DeleteMessage { sequence } => {
                self.delete(TASKS, sequence, Some(FarmEvent::MessageDeleted));
            }
            FarmAction::SendCancel => {
                if let ParentRelayAction::SendToWorker(line) = self.relay.cancel() {
                    self.send_to_worker(&line);
                }
                self.send_frames().await;
            }
            FarmAction::Finish(record) => self.finish(record),
            FarmAction::FinishCancelled => {
                let actions = self.relay.finish_cancelled();
                self.send_to_client(actions);
            }
            FarmAction::Fail(reason) => {
                let actions = self.relay.fail(&reason);
                self.send_to_client(actions);
            }
            FarmAction::DeleteRecords => {
                for sequence in std::mem::take(&mut self.record_sequences) {
                    self.delete(RECORDS, sequence, None);
                }
            }
            FarmAction::Close => self.is_closed = true,
        }
    }

    async fn carry_out_all(&mut self, actions: Vec<ParentRelayAction>) {
        for action in actions {
            match action {
                ParentRelayAction::SendToClient(line) => self.waiting_lines.push_back(line),
                ParentRelayAction::SendToWorker(line) => self.send_to_worker(&line),
                ParentRelayAction::StartTask { prompt, model } => self.start_task(prompt, model).await,
                ParentRelayAction::CancelTask => self.handle_event(FarmEvent::CancelRequested).await,
            }
        }
    }

    /// Queues lines for the client; these actions contain no others.
    fn send_to_client(&mut self, actions: Vec<ParentRelayAction>) {
        self.waiting_lines.extend(actions.into_iter().filter_map(|action| match action {
            ParentRelayAction::SendToClient(line) => Some(line),
            ParentRelayAction::SendToWorker(_)
            | ParentRelayAction::StartTask { .. }
            | ParentRelayAction::CancelTask => None,
        }));
    }

    fn send_to_worker(&mut self, line: &str) {
        if let Some(link) = &mut self.link
            && link.channel.push_line(line).is_err()
        {
            tracing::warn!(task = %self.address.task, "a line to a worker is too long and was dropped");
        }
    }

    async fn start_task(&mut self, prompt: String, model: Option<String>) {
        let message = TaskMessage::new(TaskParts {
            task: self.address.task.clone(),
            ticket: self.ticket.clone(),
            prompt,
            model,
            mode: self.task.mode,
            depth: self.task.depth,
        });
        match message.encode() {
            Ok(message) => {
                self.message = Some(message);
                Box::pin(self.handle_event(FarmEvent::Started)).await;
            }
            Err(reason) => {
                let actions = self.relay.fail(&reason);
                self.send_to_client(actions);
            }
        }
    }

    fn publish(&mut self, attempt: u32, pause: Duration) {
        let Some(message) = self.message.clone() else { return };
        let (jetstream, subject) = (self.connection.jetstream.clone(), self.address.task_subject());
        let message_id = format!("{}.{attempt}", self.address.task);
        let queue = self.address.queue.clone();
        self.requests.spawn(async move {
            sleep(pause).await;
            Some(match publish(&jetstream, subject, message, &message_id).await {
                PublishOutcome::Stored { sequence } => FarmEvent::Published { sequence },
                PublishOutcome::AlreadyStored => FarmEvent::AlreadyQueued,
                PublishOutcome::NoStream => FarmEvent::PublishFailed(format!(
                    "the server has no queues yet: start a worker of {queue}, which makes them"
                )),
                PublishOutcome::Unknown(reason) => {
                    tracing::debug!(%reason, "a task was not confirmed; it is published again");
                    FarmEvent::PublishUnconfirmed
                }
            })
        });
    }

    fn look_for_end(&mut self) {
        let (jetstream, address) = (self.connection.jetstream.clone(), self.address.clone());
        let ticket = self.ticket.clone();
        self.requests.spawn(async move {
            let records = streams::read_records(&jetstream, &address).await;
            let records = records.inspect_err(|error| tracing::debug!(%error, "no look for an end")).ok()?;
            let mut ends = records.iter().filter(|record| record.is_end);
            let end = ends.find_map(|record| EndRecord::decode(&record.payload, &ticket));
            Some(end.map_or(FarmEvent::NoEndFound, FarmEvent::Ended))
        });
    }

    /// Deletes a message until the server confirms it; then this happened.
    fn delete(&mut self, stream: &'static str, sequence: u64, event: Option<FarmEvent>) {
        let jetstream = self.connection.jetstream.clone();
        self.requests.spawn(async move {
            loop {
                let deletion = streams::delete_message(&jetstream, stream, sequence);
                match timeout(DELETE_TIMEOUT, deletion).await {
                    Ok(Ok(())) => return event,
                    Ok(Err(reason)) => {
                        tracing::debug!(%reason, stream, sequence, "a message was not deleted");
                    }
                    Err(_) => tracing::debug!(stream, sequence, "a deletion was not confirmed"),
                }
                sleep(DELETE_PAUSE).await;
            }
        });
    }

    async fn handle_record(&mut self, record: &StoredRecord) {
        let event = match record.is_end {
            true => EndRecord::decode(&record.payload, &self.ticket).map(FarmEvent::Ended),
            false => TakenRecord::decode(&record.payload, &self.ticket).map(FarmEvent::Taken),
        };
        match event {
            Some(event) => {
                self.record_sequences.push(record.sequence);
                self.handle_event(event).await;
            }
            None => {
                tracing::warn!(task = %self.address.task, "a record without a valid signature was dropped");
            }
        }
    }

    /// Begins to talk to a worker.
    async fn attach(&mut self, record: TakenRecord) {
        let subject = self.address.up_subject(&record.worker);
        let frames = match self.connection.client.subscribe(subject).await {
            Ok(frames) => frames,
            Err(error) => {
                tracing::warn!(%error, "could not listen to a worker; its updates are missed");
                return;
            }
        };
        let channel = LineChannel::open(self.epoch(&record), self.clock.now());
        self.link = Some(WorkerLink { record, frames, channel });
        self.relay.attach();
    }

    /// A later attachment has a greater number, also that of another process.
    fn epoch(&self, record: &TakenRecord) -> FrameEpoch {
        let attachment = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or_default();
        FrameEpoch { sequence: record.sequence, delivery: record.delivery, attachment }
    }

    async fn send_frames(&mut self) {
        let Some(link) = &mut self.link else { return };
        let subject = self.address.down_subject(&link.record.worker);
        while let Some(frame) = link.channel.next_frame(self.clock.now()) {
            let bytes = frame.encode(SignedKind::DownFrame, &self.ticket);
            if let Err(error) = self.connection.client.publish(subject.clone(), bytes.into()).await {
                tracing::debug!(%error, "a frame was not sent; it is sent again");
                return;
            }
        }
    }

    async fn handle_frame(&mut self, message: Option<Message>) {
        let (Some(message), Some(link)) = (message, &mut self.link) else {
            // The client of the server is closed, with everything else.
            self.link = None;
            return;
        };
        let Some(frame) = LineFrame::decode(&message.payload, SignedKind::UpFrame, &self.ticket) else {
            tracing::warn!(task = %self.address.task, "a frame without a valid signature was dropped");
            return;
        };
        if frame.epoch != link.channel.epoch() {
            return;
        }
        match link.channel.handle_frame(frame, self.clock.now()) {
            Ok(Some(line)) => {
                let actions = self.relay.handle_worker_line(&line);
                self.carry_out_all(actions).await;
            }
            Ok(None) => {}
            Err(_) => {
                tracing::warn!(task = %self.address.task, "a worker sends a line without an end");
                self.link = None;
                let actions = self.relay.detach();
                self.send_to_client(actions);
            }
        }
    }

    /// Attaches anew to a worker that said nothing for long: one end may have given up the other.
    fn end_silence(&mut self) {
        let now = self.clock.now();
        let Some(link) = self.link.as_ref().filter(|link| link.channel.is_silent(now)) else { return };
        let epoch = self.epoch(&link.record);
        if let Some(link) = &mut self.link {
            link.channel = LineChannel::open(epoch, now);
        }
        let actions = self.relay.detach();
        self.send_to_client(actions);
        self.relay.attach();
    }

    fn finish(&mut self, record: EndRecord) {
        self.link = None;
        let mut actions = Vec::new();
        if let Some(answer) = record.missed_answer.filter(|answer| !answer.is_empty()) {
            actions.push(self.relay.show_notice("Updates were missed; this is the end of the answer:"));
            actions.push(self.relay.show_answer(&answer));
        }
        actions.extend(self.relay.finish(record.response));
        self.send_to_client(actions);
    }
}

async fn next_frame(link: Option<&mut WorkerLink>) -> Option<Message> {
    match link {
        Some(link) => link.frames.next().await,
        None => std::future::pending().await,
    }
}

async fn wait_until(clock: FleetClock, deadline: Option<Duration>) {
    match deadline {
        Some(deadline) => clock.sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
