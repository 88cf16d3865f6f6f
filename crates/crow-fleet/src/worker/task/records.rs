//! The records of one task: those that this worker writes, and those of earlier ones.

use std::time::Duration;

use async_nats::jetstream::{AckKind, Context};
use crow_acp::RelayOutcome;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::accepted::AcceptedTask;
use super::licence_keeper::LicenceEnd;
use super::saver;
use super::{Leftovers, RunEnd, TaskRun};
use crate::code::EndCode;
use crate::record::{EndRecord, TakenRecord};
use crate::streams::{PublishOutcome, StoredRecord, publish};
use crate::subject::TaskAddress;
use crate::ticket::TaskTicket;

/// Time for which a task waits until its parent is told who has it: then updates go nowhere and questions wait.
const ANNOUNCE_TIME_MAX: Duration = Duration::from_secs(1);

/// Pause before something is sent again that was not confirmed.
const CONFIRM_PAUSE: Duration = Duration::from_secs(1);

impl TaskRun {
    /// Publishes that this worker has the task. While the stream has no leader the task begins, and this is tried again
    /// until the result is dropped.
    pub(super) async fn announce(&self, task: &AcceptedTask) -> AbortOnDropHandle<()> {
        let (jetstream, ticket) = (self.context.jetstream.clone(), task.message.ticket.clone());
        let (address, record) = (task.address.clone(), task.taken.clone());
        let mut announcing = AbortOnDropHandle::new(tokio::spawn(async move {
            while !publish_taken(&jetstream, &address, &ticket, &record).await {
                sleep(CONFIRM_PAUSE).await;
            }
        }));
        if timeout(ANNOUNCE_TIME_MAX, &mut announcing).await.is_err() {
            tracing::debug!(task = %task.address.task, "the parent is not told yet who has its task");
        }
        announcing
    }

    /// Does what the end of a run requires; returns it in words.
    pub(super) async fn conclude(
        &self,
        task: &AcceptedTask,
        end: RunEnd,
        mut leftovers: Leftovers,
    ) -> String {
        let kept_tasks = &self.context.kept_tasks;
        match end {
            RunEnd::Outcome(outcome) => {
                let (text, code) = (outcome.describe(), leftovers.code.clone());
                // The parent need not wait until the agent has exited.
                tokio::join!(self.tell_end(task, outcome, code), leftovers.remove());
                kept_tasks.forget(&task.address.task).await;
                text
            }
            RunEnd::Stopped(LicenceEnd::Revoked) => {
                leftovers.remove().await;
                kept_tasks.forget(&task.address.task).await;
                "taken back".to_owned()
            }
            RunEnd::Stopped(LicenceEnd::Expired) => {
                leftovers.end_processes().await;
                self.leave(task, leftovers).await;
                "lost the connection to the server; another worker may have it".to_owned()
            }
            RunEnd::Stopped(LicenceEnd::GivenBack) => {
                leftovers.end_processes().await;
                if let Some(saver) = &mut leftovers.saver {
                    saver.save_at_end().await;
                }
                self.leave(task, leftovers).await;
                self.give_back(task).await;
                "given back".to_owned()
            }
            RunEnd::NotResumed(reason) => {
                leftovers.remove().await;
                kept_tasks.forget(&task.address.task).await;
                if self.context.options.shares_sessions {
                    saver::withdraw(&self.context, task).await;
                }
                self.give_back(task).await;
                format!("could not go on: {reason}; given back, to begin again")
            }
        }
    }

    /// Leaves the directory if another worker can go on in it.
    async fn leave(&self, task: &AcceptedTask, mut leftovers: Leftovers) {
        let kept_tasks = &self.context.kept_tasks;
        // One on another machine needs what was saved.
        leftovers.saver = None;
        if kept_tasks.find(&task.address.task, &task.message.ticket).await.is_none() {
            leftovers.remove().await;
        }
    }

    /// Publishes that this worker gives the task back, and does so.
    async fn give_back(&self, task: &AcceptedTask) {
        let record = TakenRecord { is_given_back: true, ..task.taken.clone() };
        if !publish_taken(&self.context.jetstream, &task.address, &task.message.ticket, &record).await {
            tracing::warn!(task = %task.address.task, "the parent was not told that its task was given back");
        }
        self.acknowledge(AckKind::Nak(None)).await;
    }

    /// Publishes the end until the server has it, then removes the message.
    pub(super) async fn tell_end(&self, task: &AcceptedTask, outcome: RelayOutcome, code: Option<EndCode>) {
        let record = EndRecord {
            worker: task.taken.worker.clone(),
            response: outcome.response,
            missed_answer: (!outcome.is_complete).then_some(outcome.answer),
            code,
        };
        let payload = record.encode(&task.message.ticket);
        let subject = task.address.end_subject(&task.taken.worker);
        let message_id = format!("end.{}", task.address.task);
        let mut is_stored = false;
        // The whole attempt is bounded: the message comes again if it is in vain.
        let deadline = Instant::now() + self.context.ack_wait;
        while Instant::now() < deadline {
            if !is_stored {
                let jetstream = &self.context.jetstream;
                let outcome = publish(jetstream, subject.clone(), payload.clone(), &message_id).await;
                is_stored = matches!(outcome, PublishOutcome::Stored { .. } | PublishOutcome::AlreadyStored);
            }
            if is_stored && self.message.double_ack_with(AckKind::Ack).await.is_ok() {
                return;
            }
            sleep(CONFIRM_PAUSE).await;
        }
        tracing::warn!(task = %task.address.task, is_stored, "the server did not confirm the end of a task");
    }

    pub(super) async fn acknowledge(&self, kind: AckKind) {
        if let Err(error) = self.message.double_ack_with(kind).await {
            tracing::debug!(%error, "the server did not confirm; it delivers the task again");
        }
    }
}

/// Publishes that a worker has a task, or gave it back; returns whether the server has confirmed it.
async fn publish_taken(
    jetstream: &Context,
    address: &TaskAddress,
    ticket: &TaskTicket,
    record: &TakenRecord,
) -> bool {
    let TakenRecord { worker, sequence, delivery, is_given_back, goes_on: _ } = record;
    let message_id = format!("taken.{}.{sequence}.{delivery}.{is_given_back}", address.task);
    let subject = address.taken_subject(worker);
    let outcome = publish(jetstream, subject, record.encode(ticket), &message_id).await;
    matches!(outcome, PublishOutcome::Stored { .. })
}

/// Returns the workers that began the task and neither ended it nor gave it back.
pub(super) fn list_lost_workers(records: &[StoredRecord], ticket: &TaskTicket) -> Vec<String> {
    let taken: Vec<TakenRecord> =
        records.iter().filter_map(|record| TakenRecord::decode(&record.payload, ticket)).collect();
    let is_given_back = |lost: &TakenRecord| {
        let same =
            |record: &&TakenRecord| (record.sequence, record.delivery) == (lost.sequence, lost.delivery);
        taken.iter().filter(same).any(|record| record.is_given_back)
    };
    taken.iter().filter(|record| !is_given_back(record)).map(|record| record.worker.clone()).collect()
}
