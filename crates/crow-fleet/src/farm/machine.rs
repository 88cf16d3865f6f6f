//! The course of one task as its parent sees it. Pure: what happened in, what to do out.

use crate::record::{EndRecord, TakenRecord};

/// The failure of a task without message and end that was given long ago.
const TOO_OLD: &str = "its end is no longer kept: a server keeps ends for seven days";

/// Something that happened to a task.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FarmEvent {
    /// The client has sent the prompt.
    Started,
    /// The place of the task is kept.
    PlaceKept,
    /// The place of the task cannot be kept.
    PlaceNotKept(String),
    /// The client has sent the prompt of a task that an earlier process gave.
    Resumed,
    /// The queue has the message.
    Published {
        sequence: u64,
    },
    /// The queue had the message already.
    AlreadyQueued,
    /// It is not known whether the queue has the message.
    PublishUnconfirmed,
    /// The message cannot be published.
    PublishFailed(String),
    Taken(TakenRecord),
    Ended(EndRecord),
    CancelRequested,
    /// The client has closed the connection.
    ClientClosed,
    /// It is time to look whether the task is still there.
    CheckDue,
    /// There is no end of the task.
    NoEndFound,
    /// It is not known whether there is one.
    LookFailed,
    /// The queue no longer has the message.
    MessageDeleted,
    /// The queue does not have the message that was looked for.
    MessageMissing,
}

impl FarmEvent {
    /// Whether it is the outcome of a request.
    fn is_outcome(&self) -> bool {
        match self {
            Self::Published { .. }
            | Self::AlreadyQueued
            | Self::PublishUnconfirmed
            | Self::PublishFailed(_)
            | Self::PlaceKept
            | Self::PlaceNotKept(_)
            | Self::NoEndFound
            | Self::LookFailed
            | Self::MessageDeleted
            | Self::MessageMissing => true,
            Self::Started
            | Self::Resumed
            | Self::Taken(_)
            | Self::Ended(_)
            | Self::CancelRequested
            | Self::ClientClosed
            | Self::CheckDue => false,
        }
    }
}

/// The next step of the driver of a task.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FarmAction {
    /// Keep the place of the task, so that a later process finds it.
    KeepPlace,
    /// Publish the message. Attempts with the same number are one message for the server.
    Publish {
        attempt: u32,
    },
    /// Publish the message after a pause.
    PublishAgain {
        attempt: u32,
    },
    /// Look for workers and an end; they are events, and so is that there is no end.
    LookForRecords,
    /// Look again after a pause.
    LookAgain,
    /// Talk to the worker.
    Attach(TakenRecord),
    /// Withdraw what the worker asked, and talk to it no longer.
    Detach,
    ShowNotice(String),
    /// Look for the message, whose sequence is not known.
    FindMessage,
    /// Take the message out of the queue.
    DeleteMessage {
        sequence: u64,
    },
    /// Tell the worker.
    SendCancel,
    Finish(EndRecord),
    FinishCancelled,
    Fail(String),
    /// Delete what was said about the task. As long as the queue has its message or may get it, a worker that gets it must
    /// see the end.
    DeleteRecords,
    /// Nothing follows, except the deletion of messages.
    Close,
}

impl FarmAction {
    /// Whether it is a request to the server or to the keeper of the place, of which there will be one outcome.
    fn is_request(&self) -> bool {
        match self {
            Self::KeepPlace
            | Self::Publish { .. }
            | Self::PublishAgain { .. }
            | Self::LookForRecords
            | Self::LookAgain
            | Self::FindMessage
            | Self::DeleteMessage { .. } => true,
            Self::Attach(_)
            | Self::Detach
            | Self::ShowNotice(_)
            | Self::SendCancel
            | Self::Finish(_)
            | Self::FinishCancelled
            | Self::Fail(_)
            | Self::DeleteRecords
            | Self::Close => false,
        }
    }
}

/// The course of one task.
#[derive(Debug, Default)]
pub(crate) struct FarmMachine {
    is_started: bool,
    /// True if an earlier process gave the task.
    is_resumed: bool,
    /// True while the next step depends on whether the task has ended: a look that failed is repeated.
    must_look: bool,
    /// True if an end may have been deleted by age.
    is_old: bool,
    /// The sequence of its message, once it is known.
    sequence: Option<u64>,
    attempt: u32,
    /// The newest worker that took it.
    taken: Option<TakenRecord>,
    /// True while that worker has it.
    has_worker: bool,
    /// It is told to the client, or the client is gone.
    is_over: bool,
    is_cancelled: bool,
    /// True if the queue no longer has the message.
    is_message_gone: bool,
    /// Requests without an outcome.
    n_requests: usize,
    is_closed: bool,
}

impl FarmMachine {
    /// Creates the course of a task that an earlier process gave.
    pub(crate) fn resume(is_old: bool) -> Self {
        Self { is_started: true, is_resumed: true, must_look: true, is_old, ..Self::default() }
    }

    pub(crate) fn handle_event(&mut self, event: FarmEvent) -> Vec<FarmAction> {
        self.n_requests = self.n_requests.saturating_sub(usize::from(event.is_outcome()));
        let mut actions = self.on_event(event);
        self.n_requests += actions.iter().filter(|action| action.is_request()).count();
        if self.is_closed && self.is_message_gone && self.n_requests == 0 {
            actions.push(FarmAction::DeleteRecords);
        }
        actions
    }

    fn on_event(&mut self, event: FarmEvent) -> Vec<FarmAction> {
        match event {
            FarmEvent::Started => {
                self.is_started = true;
                vec![FarmAction::KeepPlace]
            }
            FarmEvent::PlaceKept if !self.is_over && !self.is_cancelled => {
                vec![FarmAction::Publish { attempt: self.attempt }]
            }
            FarmEvent::Resumed if !self.is_over => vec![FarmAction::LookForRecords],
            FarmEvent::Published { sequence } => {
                self.sequence = Some(sequence);
                self.on_queued()
            }
            FarmEvent::AlreadyQueued => self.on_queued(),
            FarmEvent::PublishUnconfirmed if !self.is_over && !self.is_cancelled => {
                vec![FarmAction::PublishAgain { attempt: self.attempt }]
            }
            // The server may have it nevertheless.
            FarmEvent::PublishUnconfirmed => vec![FarmAction::FindMessage],
            FarmEvent::PublishFailed(reason) | FarmEvent::PlaceNotKept(reason) if !self.is_over => {
                self.is_over = true;
                vec![FarmAction::Fail(reason)]
            }
            FarmEvent::Taken(record) => self.on_taken(record),
            FarmEvent::Ended(record) if !self.is_over => {
                self.is_over = true;
                let deletion = self.sequence.map(|sequence| FarmAction::DeleteMessage { sequence });
                [FarmAction::Finish(record)].into_iter().chain(deletion).collect()
            }
            FarmEvent::CancelRequested => self.on_cancel(),
            FarmEvent::ClientClosed => self.on_client_closed(),
            FarmEvent::MessageDeleted => {
                self.is_message_gone = true;
                Vec::new()
            }
            FarmEvent::MessageMissing => self.on_message_missing(),
            // One look at a time: the next one must be younger than what the last one found.
            FarmEvent::CheckDue
                if self.is_started && !self.is_over && !self.is_cancelled && self.n_requests == 0 =>
            {
                vec![FarmAction::LookForRecords]
            }
            FarmEvent::LookFailed if self.must_look && !self.is_over => vec![FarmAction::LookAgain],
            FarmEvent::NoEndFound if !self.is_over && !self.is_cancelled => self.on_no_end_found(),
            FarmEvent::PlaceKept
            | FarmEvent::PlaceNotKept(_)
            | FarmEvent::Resumed
            | FarmEvent::LookFailed
            | FarmEvent::PublishFailed(_)
            | FarmEvent::Ended(_)
            | FarmEvent::CheckDue
            | FarmEvent::NoEndFound => Vec::new(),
        }
    }

    fn on_client_closed(&mut self) -> Vec<FarmAction> {
        let mut actions = match self.is_over || !self.is_started {
            true => Vec::new(),
            false => self.on_cancel(),
        };
        self.is_over = true;
        self.is_closed = true;
        actions.push(FarmAction::Close);
        actions
    }

    /// Workers tell the end before they remove the message. So a task runs nowhere if its message is missing and then there
    /// is no end; in the other order it may have ended in between.
    fn on_no_end_found(&mut self) -> Vec<FarmAction> {
        self.must_look = false;
        if !self.is_message_gone {
            return vec![FarmAction::FindMessage];
        }
        // It may have run, and must not run again unasked.
        if self.is_old {
            self.is_over = true;
            return vec![FarmAction::Fail(TOO_OLD.to_owned())];
        }
        self.is_message_gone = false;
        self.attempt += 1;
        vec![FarmAction::Publish { attempt: self.attempt }]
    }

    fn on_message_missing(&mut self) -> Vec<FarmAction> {
        self.is_message_gone = true;
        if self.is_over || self.is_cancelled {
            return Vec::new();
        }
        self.must_look = true;
        vec![FarmAction::LookForRecords]
    }

    fn on_queued(&mut self) -> Vec<FarmAction> {
        self.is_message_gone = false;
        match self.is_over || self.is_cancelled {
            true => self.delete_message(),
            false => Vec::new(),
        }
    }

    fn on_taken(&mut self, record: TakenRecord) -> Vec<FarmAction> {
        let moment = |record: &TakenRecord| (record.sequence, record.delivery, record.is_given_back);
        if self.taken.as_ref().is_some_and(|known| moment(known) >= moment(&record)) {
            return Vec::new();
        }
        self.sequence = Some(record.sequence);
        self.is_message_gone = false;
        if self.is_over || self.is_cancelled {
            return self.delete_message();
        }
        let mut actions = Vec::new();
        if std::mem::replace(&mut self.has_worker, !record.is_given_back) {
            actions.push(FarmAction::Detach);
        }
        let earlier = self.taken.replace(record.clone());
        if record.is_given_back {
            return actions;
        }
        if let Some(earlier) = earlier {
            let course = if record.goes_on { "goes on with it" } else { "begins it again" };
            actions.push(FarmAction::ShowNotice(format!(
                "The worker {} no longer has the task; {} {course}.",
                earlier.worker, record.worker
            )));
        }
        actions.push(FarmAction::Attach(record));
        actions
    }

    fn on_cancel(&mut self) -> Vec<FarmAction> {
        if self.is_over || !self.is_started || std::mem::replace(&mut self.is_cancelled, true) {
            return Vec::new();
        }
        let mut actions = Vec::new();
        if self.has_worker {
            // Its end follows.
            actions.push(FarmAction::SendCancel);
        } else {
            self.is_over = true;
            actions.push(FarmAction::FinishCancelled);
        }
        actions.extend(self.delete_message());
        actions
    }

    fn delete_message(&self) -> Vec<FarmAction> {
        match self.sequence {
            Some(sequence) => vec![FarmAction::DeleteMessage { sequence }],
            None if self.is_resumed => vec![FarmAction::FindMessage],
            None => Vec::new(),
        }
    }
}
