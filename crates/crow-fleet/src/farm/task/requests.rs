//! Requests of the driver of a task to the server, and to the keeper of its place. Each is a task of its own, whose result
//! comes back to the driver.

use std::future::ready;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::FarmTaskDriver;
use crate::farm::machine::FarmEvent;
use crate::place::FarmPlace;
use crate::streams::{self, PublishOutcome, RECORDS, StoredRecord, TASKS, publish};

/// Pause before a look is repeated that found out nothing.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// Time for a deletion, which takes milliseconds: a stream that elects its leader does not answer.
const DELETE_TIMEOUT: Duration = Duration::from_secs(1);

/// Pause before a message is deleted again whose deletion was not confirmed.
const DELETE_PAUSE: Duration = Duration::from_secs(1);

/// The result of a request.
pub(super) enum RequestResult {
    Nothing,
    Event(FarmEvent),
    /// The records of the task that are stored.
    Records(Vec<StoredRecord>),
}

impl FarmTaskDriver {
    /// Makes the message and the place of a new task.
    pub(super) async fn start_task(&mut self, prompt: String, model: Option<String>) {
        let Some(task) = &self.new_task else { return };
        let message = task.make_message(self.address.task.clone(), self.ticket.clone(), prompt, model);
        match message.encode() {
            Ok(encoded) => {
                self.message = Some(encoded);
                self.place = Some(FarmPlace::new(self.connection.servers.clone(), &self.address, message));
                Box::pin(self.handle_event(FarmEvent::Started)).await;
            }
            Err(reason) => {
                let actions = self.relay.fail(&reason);
                self.send_to_client(actions);
            }
        }
    }

    /// Keeps the place of the task, if anyone wants to know it.
    pub(super) fn keep_place(&mut self) {
        let keeper = self.keeper.clone();
        let place = self.place.as_ref().map(FarmPlace::encode);
        self.requests.spawn(async move {
            let kept = match (keeper, place) {
                (Some(keeper), Some(Ok(place))) => keeper.keep_place(place).await,
                (Some(_), Some(Err(reason))) => Err(reason),
                (None, _) | (_, None) => Ok(()),
            };
            RequestResult::Event(match kept {
                Ok(()) => FarmEvent::PlaceKept,
                Err(reason) => FarmEvent::PlaceNotKept(format!("its place could not be stored: {reason}")),
            })
        });
    }

    pub(super) fn publish(&mut self, attempt: u32, pause: Duration) {
        let Some(message) = self.message.clone() else {
            let failure = FarmEvent::PublishFailed("it has no message".to_owned());
            self.requests.spawn(ready(RequestResult::Event(failure)));
            return;
        };
        let (jetstream, subject) = (self.connection.jetstream.clone(), self.address.task_subject());
        let message_id = format!("{}.{attempt}", self.message_id);
        let queue = self.address.queue.clone();
        self.requests.spawn(async move {
            sleep(pause).await;
            RequestResult::Event(match publish(&jetstream, subject, message, &message_id).await {
                PublishOutcome::Stored { sequence } => FarmEvent::Published { sequence },
                PublishOutcome::AlreadyStored => FarmEvent::AlreadyQueued,
                PublishOutcome::NoStream => FarmEvent::PublishFailed(streams::no_queue_reason(&queue)),
                PublishOutcome::Unknown(reason) => {
                    tracing::debug!(%reason, "a task was not confirmed; it is published again");
                    FarmEvent::PublishUnconfirmed
                }
            })
        });
    }

    pub(super) fn look_for_records(&mut self, pause: Duration) {
        let (jetstream, address) = (self.connection.jetstream.clone(), self.address.clone());
        self.requests.spawn(async move {
            sleep(pause).await;
            match streams::read_records(&jetstream, &address).await {
                Ok(records) => RequestResult::Records(records),
                Err(reason) => {
                    tracing::debug!(%reason, "no look for the records of a task");
                    RequestResult::Event(FarmEvent::LookFailed)
                }
            }
        });
    }

    pub(super) fn look_again(&mut self) {
        self.look_for_records(LOOK_PAUSE);
    }

    /// Looks for the message until the server answers.
    pub(super) fn find_message(&mut self) {
        let (jetstream, address) = (self.connection.jetstream.clone(), self.address.clone());
        self.requests.spawn(async move {
            loop {
                match streams::find_task(&jetstream, &address).await {
                    Ok(Some(sequence)) => return RequestResult::Event(FarmEvent::Published { sequence }),
                    Ok(None) => return RequestResult::Event(FarmEvent::MessageMissing),
                    Err(reason) => tracing::debug!(%reason, "the message of a task was not looked for"),
                }
                sleep(LOOK_PAUSE).await;
            }
        });
    }

    /// Deletes a message until the server confirms it; a record not before it is needed no more.
    pub(super) fn delete(&mut self, stream: &'static str, sequence: u64) {
        let jetstream = self.connection.jetstream.clone();
        let keeper = self.keeper.clone().filter(|_| stream == RECORDS);
        self.requests.spawn(async move {
            if let Some(keeper) = keeper {
                keeper.wait_until_stored().await;
            }
            loop {
                let deletion = streams::delete_message(&jetstream, stream, sequence);
                match timeout(DELETE_TIMEOUT, deletion).await {
                    Ok(Ok(())) if stream == TASKS => return RequestResult::Event(FarmEvent::MessageDeleted),
                    Ok(Ok(())) => return RequestResult::Nothing,
                    Ok(Err(reason)) => {
                        tracing::debug!(%reason, stream, sequence, "a message was not deleted");
                    }
                    Err(_) => tracing::debug!(stream, sequence, "a deletion was not confirmed"),
                }
                sleep(DELETE_PAUSE).await;
            }
        });
    }
}
