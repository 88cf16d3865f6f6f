//! Keeps the licence of a task by heartbeats, whatever is done for the task meanwhile.

use std::time::Duration;

use async_nats::jetstream::{AckKind, Context, Message};
use futures_util::future::BoxFuture;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::connection::FleetClock;
use crate::licence::{LicenceState, TaskLicence};
use crate::streams;
use crate::subject::TaskAddress;

/// The reason why the run of a task must stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LicenceEnd {
    /// Its message is gone: the task is over for this worker.
    Revoked,
    /// Another worker may have it: nothing more is said.
    Expired,
    /// This worker stops: another one shall have it.
    GivenBack,
}

/// The parts of a keeper.
pub(super) struct LicenceKeeperInit {
    /// The message, which was just delivered.
    pub(super) message: Message,
    pub(super) jetstream: Context,
    pub(super) address: TaskAddress,
    /// Time after which the server gives the task to another worker.
    pub(super) ack_wait: Duration,
    /// Ends the task, which is given back.
    pub(super) kill: CancellationToken,
}

/// The licence of a task and its heartbeats.
pub(super) struct LicenceKeeper {
    message: Message,
    jetstream: Context,
    address: TaskAddress,
    kill: CancellationToken,
    clock: FleetClock,
    licence: TaskLicence,
    interval: Duration,
    next_heartbeat: Duration,
    heartbeats: JoinSet<HeartbeatAnswer>,
}

/// The result of one part of a heartbeat.
enum HeartbeatAnswer {
    Confirmed { sent: Duration },
    Message { is_there: bool },
    Missing,
}

impl LicenceKeeper {
    pub(super) fn start(init: LicenceKeeperInit) -> Self {
        let LicenceKeeperInit { message, jetstream, address, ack_wait, kill } = init;
        let (interval, clock) = (TaskLicence::heartbeat_interval(ack_wait), FleetClock::start());
        Self {
            message,
            jetstream,
            address,
            kill,
            clock,
            licence: TaskLicence::new(ack_wait, clock.now()),
            interval,
            next_heartbeat: interval,
            heartbeats: JoinSet::new(),
        }
    }

    /// The clock of the task.
    pub(super) fn clock(&self) -> FleetClock {
        self.clock
    }

    /// Returns the reason why the task must stop, if it must.
    pub(super) fn end(&self) -> Option<LicenceEnd> {
        match self.licence.state(self.clock.now()) {
            LicenceState::Valid => None,
            LicenceState::Revoked => Some(LicenceEnd::Revoked),
            LicenceState::Expired => Some(LicenceEnd::Expired),
        }
    }

    /// The time of the next heartbeat, or at which the licence expires.
    pub(super) fn next_time(&self) -> Duration {
        self.next_heartbeat.min(self.licence.expiry())
    }

    /// Waits for an answer of the server; forever if there is none to come.
    pub(super) async fn wait_for_answer(&mut self) {
        match self.heartbeats.join_next().await {
            Some(Ok(HeartbeatAnswer::Confirmed { sent })) => self.licence.confirm(sent),
            Some(Ok(HeartbeatAnswer::Message { is_there })) => self.licence.record_message(is_there),
            Some(Ok(HeartbeatAnswer::Missing) | Err(_)) => tracing::debug!("a heartbeat was not answered"),
            None => std::future::pending().await,
        }
    }

    /// Sends a heartbeat and looks whether the message is still there, if it is time.
    pub(super) fn send_when_due(&mut self) {
        let sent = self.clock.now();
        if sent < self.next_heartbeat {
            return;
        }
        self.next_heartbeat = sent + self.interval;
        // Both are answered in milliseconds; a server that does not answer must not pile them up.
        if !self.heartbeats.is_empty() {
            return;
        }
        let (message, jetstream, address) =
            (self.message.clone(), self.jetstream.clone(), self.address.clone());
        self.heartbeats.spawn(async move {
            match message.double_ack_with(AckKind::Progress).await {
                Ok(()) => HeartbeatAnswer::Confirmed { sent },
                Err(_) => HeartbeatAnswer::Missing,
            }
        });
        self.heartbeats.spawn(async move {
            match streams::has_task(&jetstream, &address).await {
                Ok(is_there) => HeartbeatAnswer::Message { is_there },
                Err(_) => HeartbeatAnswer::Missing,
            }
        });
    }

    /// Does something for the task, which is abandoned if the task must stop; the error is the reason.
    pub(super) async fn run_step<T>(&mut self, mut step: BoxFuture<'_, T>) -> Result<T, LicenceEnd> {
        let (kill, clock) = (self.kill.clone(), self.clock);
        loop {
            if let Some(end) = self.end() {
                return Err(end);
            }
            let wake = self.next_time();
            tokio::select! {
                biased;
                () = kill.cancelled() => return Err(LicenceEnd::GivenBack),
                result = &mut step => return Ok(result),
                () = self.wait_for_answer() => {}
                () = clock.sleep_until(wake) => self.send_when_due(),
            }
        }
    }
}
