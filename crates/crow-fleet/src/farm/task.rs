//! Drives one task of a parent: waits for what happens, asks [`FarmMachine`] what that means, and carries it out.

mod requests;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::{Message, Subscriber};
use crow_acp::{ParentRelay, ParentRelayAction};
use crow_core::SessionId;
use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use self::requests::RequestResult;
use super::machine::{FarmAction, FarmEvent, FarmMachine};
use super::new_task::FarmTask;
use super::records::FarmConnection;
use crate::code::CodeReturn;
use crate::connection::{FleetClock, now_in_milliseconds};
use crate::frame::{FrameEpoch, LineFrame};
use crate::line_channel::LineChannel;
use crate::place::{FarmPlace, PlaceKeeper};
use crate::record::{EndRecord, TakenRecord};
use crate::streams::{RECORDS, StoredRecord, TASKS};
use crate::subject::TaskAddress;
use crate::ticket::{SignedKind, TaskTicket};

/// Time between two looks for a task of which nothing was heard: servers lose what they had not written to disk.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// Pause before a message is published again that was not confirmed.
pub(super) const PUBLISH_PAUSE: Duration = Duration::from_secs(1);

/// Lines for the client that wait; more frames are not read before.
const WAITING_LINES_MAX: usize = 64;

/// Time for the last words to the server: longer than two elections, which take up to nine seconds.
pub(super) const CLEAN_UP_TIMEOUT: Duration = Duration::from_secs(20);

/// The driver of one task.
pub(super) struct FarmTaskDriver {
    connection: Arc<FarmConnection>,
    address: TaskAddress,
    ticket: TaskTicket,
    /// `None` if an earlier process gave the task.
    new_task: Option<FarmTask>,
    keeper: Option<Arc<dyn PlaceKeeper>>,
    clock: FleetClock,
    machine: FarmMachine,
    relay: ParentRelay,
    /// The message, once the prompt has come.
    message: Option<Vec<u8>>,
    /// The beginning of the IDs by which the server recognises repeated messages; no two processes have the same.
    message_id: String,
    /// The place to be kept.
    place: Option<FarmPlace>,
    /// Lines that the client does not take yet.
    waiting_lines: VecDeque<String>,
    link: Option<WorkerLink>,
    /// Requests to the server.
    requests: JoinSet<RequestResult>,
    /// Sequences of its records.
    record_sequences: Vec<u64>,
    next_check: Instant,
    is_closed: bool,
    /// Gets what the end of the task says about its code.
    code_return: Option<CodeReturn>,
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
        let relay = ParentRelay::new(SessionId::new(address.task.clone()), task.version);
        let code_return = task.code.as_ref().map(|code| code.returned.clone());
        let keeper = task.keeper.clone();
        let driver = Self::with_relay(connection, address, ticket, relay);
        Self { new_task: Some(task), keeper, code_return, ..driver }
    }

    fn with_relay(
        connection: Arc<FarmConnection>,
        address: TaskAddress,
        ticket: TaskTicket,
        relay: ParentRelay,
    ) -> Self {
        let message_id = address.task.clone();
        Self {
            connection,
            address,
            ticket,
            new_task: None,
            keeper: None,
            clock: FleetClock::start(),
            machine: FarmMachine::default(),
            relay,
            message: None,
            message_id,
            place: None,
            waiting_lines: VecDeque::new(),
            link: None,
            requests: JoinSet::new(),
            record_sequences: Vec::new(),
            next_check: Instant::now() + CHECK_INTERVAL,
            is_closed: false,
            code_return: None,
        }
    }

    /// Creates the driver of a task that an earlier process gave, whose client has spoken to this relay.
    pub(super) fn resume(
        connection: Arc<FarmConnection>,
        place: &FarmPlace,
        keeper: Option<Arc<dyn PlaceKeeper>>,
        relay: ParentRelay,
    ) -> Self {
        let (address, ticket) = (place.address(), place.message.ticket.clone());
        let message_id = format!("{}.{}", address.task, now_in_milliseconds());
        // It was encoded before.
        let message = place.message.encode().ok();
        Self {
            keeper,
            machine: FarmMachine::resume(place.is_old()),
            message,
            message_id,
            ..Self::with_relay(connection, address, ticket, relay)
        }
    }

    /// Sets who gets what the end of the task says about its code.
    pub(super) fn return_code_to(&mut self, code_return: Option<CodeReturn>) {
        self.code_return = code_return;
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
                Some(Ok(result)) = self.requests.join_next() => self.handle_result(result).await,
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
                if let Ok(result) = result {
                    self.handle_result(result).await;
                }
            }
        };
        if timeout(CLEAN_UP_TIMEOUT, finish).await.is_err() {
            self.connection.n_unconfirmed.fetch_add(1, Ordering::Relaxed);
            tracing::debug!("the server did not confirm the end of a task in time");
        }
    }

    /// Whether a line to the worker would have room; others do not need any.
    fn can_send(&self) -> bool {
        self.link.as_ref().is_none_or(|link| link.channel.has_room())
    }

    /// Looks for a task that an earlier process gave and whose client waits for its end.
    pub(super) async fn look_for_task(&mut self) {
        self.handle_event(FarmEvent::Resumed).await;
    }

    /// Cancels the task, whose client is answered.
    pub(super) async fn cancel(&mut self) {
        self.handle_event(FarmEvent::CancelRequested).await;
    }

    async fn handle_result(&mut self, result: RequestResult) {
        match result {
            RequestResult::Nothing => {}
            RequestResult::Event(event) => self.handle_event(event).await,
            RequestResult::Records(records) => {
                for record in &records {
                    self.handle_record(record).await;
                }
                // This means nothing if there was one.
                self.handle_event(FarmEvent::NoEndFound).await;
            }
        }
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
            FarmAction::KeepPlace => self.keep_place(),
            FarmAction::LookForRecords => self.look_for_records(Duration::ZERO),
            FarmAction::LookAgain => self.look_again(),
            FarmAction::FindMessage => self.find_message(),
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
                self.delete(TASKS, sequence);
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
                    self.delete(RECORDS, sequence);
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

    async fn handle_record(&mut self, record: &StoredRecord) {
        if self.record_sequences.contains(&record.sequence) {
            return;
        }
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
        let attachment = now_in_milliseconds();
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
        if let (Some(code), Some(end)) = (&self.code_return, record.code) {
            code.set(&record.worker, end);
        }
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
