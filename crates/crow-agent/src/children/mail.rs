//! The mailbox of a session as its children fill it and its turns empty it.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

use crow_core::{CallId, SessionId};
use crow_store::{Delivery, DeliveryId, StoreError, TaskRow};

use crate::children::ChildAgents;
use crate::children::living::ChildHandle;
use crate::clock;

/// When so much comes at once there may be more.
const PAGE_LEN: usize = 500;

/// What somebody who waited for mail got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MailWaitOutcome {
    /// Some.
    Mail,
    /// None, and nobody is at work who could send any.
    Nothing,
}

impl ChildAgents {
    /// Looks for tasks that ended, or were lost, while nobody had the session open; tells how many the model has not
    /// heard of.
    pub(crate) async fn recover_tasks(&self) -> usize {
        let (store, parent) = (&self.family.kit.store, &self.family.parent);
        let lost = store.mark_lost_tasks(parent, clock::now(), lost_task_text).await;
        if let Err(error) = lost {
            tracing::warn!(%error, session = %parent, "could not look for tasks that were lost");
        }
        match store.list_tasks(parent).await {
            Ok(tasks) => self.family.book.restore_child_tokens(tasks.iter().map(|task| task.n_tokens).sum()),
            Err(error) => tracing::warn!(%error, session = %parent, "could not count what tasks have cost"),
        }
        match store.pending_deliveries(parent).await {
            Ok(mail) => {
                if !mail.is_empty() {
                    self.family.has_mail.store(true, Ordering::Relaxed);
                }
                mail.len()
            }
            Err(error) => {
                tracing::warn!(%error, session = %parent, "could not look into the mailbox");
                0
            }
        }
    }

    /// Tells whether something waits in the mailbox that the model should hear of without being asked.
    pub(crate) fn has_pending_mail(&self) -> bool {
        self.family.wakes.load(Ordering::Relaxed)
    }

    /// Remembers that the outcome of a call tells these deliveries.
    pub(crate) fn register_deliveries(&self, call: CallId, deliveries: impl Iterator<Item = DeliveryId>) {
        self.lock_deliveries().entry(call).or_default().extend(deliveries);
    }

    /// What waits in the mailbox and is told by the outcome of a call.
    pub(crate) fn deliveries_for_call(&self, call: CallId) -> Vec<DeliveryId> {
        self.lock_deliveries().remove(&call).unwrap_or_default()
    }

    /// What waits in the mailbox of a task.
    pub(crate) async fn task_deliveries(&self, task: &SessionId) -> Vec<Delivery> {
        match self.family.kit.store.pending_task_deliveries(task).await {
            Ok(mail) => mail,
            Err(error) => {
                tracing::warn!(%error, "could not look into the mailbox; the model may hear of a task twice");
                Vec::new()
            }
        }
    }

    fn lock_deliveries(&self) -> MutexGuard<'_, HashMap<CallId, Vec<DeliveryId>>> {
        self.telling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what waits in the mailbox; whoever puts it into the history claims it.
    pub(crate) async fn take_deliveries(&self) -> Result<Vec<Delivery>, StoreError> {
        if !self.family.has_mail.swap(false, Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        let wakes = self.family.wakes.swap(false, Ordering::Relaxed);
        let mail = self.family.kit.store.pending_deliveries(&self.family.parent).await;
        if mail.as_ref().map_or(true, |mail| mail.len() >= PAGE_LEN) {
            self.mark_mail_pending();
            self.family.wakes.fetch_or(wakes, Ordering::Relaxed);
        }
        mail
    }

    /// Remembers that something waits still.
    pub(crate) fn mark_mail_pending(&self) {
        self.family.has_mail.store(true, Ordering::Relaxed);
    }

    /// Whether a task is at work.
    pub(crate) fn is_any_working(&self) -> bool {
        self.lock_children().values().any(ChildHandle::is_working)
    }

    /// Waits for mail for as long as a task is at work.
    pub(crate) async fn wait_for_mail(&self) -> MailWaitOutcome {
        loop {
            let ended = self.family.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if self.has_pending_mail() {
                return MailWaitOutcome::Mail;
            }
            if !self.is_any_working() {
                return MailWaitOutcome::Nothing;
            }
            ended.await;
        }
    }
}

fn lost_task_text(row: &TaskRow) -> String {
    let TaskRow { task, title, .. } = row;
    format!(
        "Task {task} ({title}) was lost: Crow ended while it was at work.\n\nWhat it said until then: query_session with \
         session_id {task}. To go on with it: task_send.\n"
    )
}
