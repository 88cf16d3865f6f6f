//! The mailbox of a session, filled by its children and emptied by its turns.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

use crow_core::{CallId, SessionId};
use crow_store::{Delivery, DeliveryId, StoreError, TaskRow};

use crate::child_agents::ChildAgents;
use crate::handle::ChildHandle;

/// A full page means that there may be more.
const PAGE_LEN: usize = 500;

/// The outcome of waiting for mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailWaitOutcome {
    Mail,
    /// There is no mail, and no running task could send any.
    NoTasks,
}

/// The tasks of a session that was opened again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveredTasks {
    /// Deliveries that the model has not seen.
    pub n_deliveries: usize,
    /// Tasks that go on elsewhere.
    pub n_resumed: usize,
}

impl ChildAgents {
    /// Looks for tasks that ended or were lost while the session was closed, and takes up those that go on elsewhere.
    pub async fn recover_tasks(&self) -> RecoveredTasks {
        let (store, parent) = (&self.shared.store, &self.shared.parent);
        let config = self.shared.session.agents_config();
        let worktree_dirs = [config.worktrees_dir, config.legacy_worktrees_dir];
        let text = move |row: &TaskRow| lost_task_text(row, &worktree_dirs);
        let marked = store.mark_lost_tasks(parent, self.shared.session.now(), text).await;
        if let Err(error) = marked {
            tracing::warn!(%error, session = %parent, "could not look for lost tasks");
        }
        let far_tasks = match store.list_tasks(parent).await {
            Ok(tasks) => {
                self.shared.budget.restore_child_tokens(tasks.iter().map(|task| task.n_tokens).sum());
                self.find_far_tasks(tasks).await
            }
            Err(error) => {
                tracing::warn!(%error, session = %parent, "could not read the tasks of a session");
                Vec::new()
            }
        };
        let n_deliveries = match store.pending_deliveries(parent).await {
            Ok(deliveries) => {
                if !deliveries.is_empty() {
                    self.shared.has_mail.store(true, Ordering::Relaxed);
                }
                deliveries.len()
            }
            Err(error) => {
                tracing::warn!(%error, session = %parent, "could not read the mailbox");
                0
            }
        };
        RecoveredTasks { n_deliveries, n_resumed: self.resume_far_tasks(far_tasks).await }
    }

    /// Whether the mailbox has a message for which the model should be called without a prompt.
    pub fn has_pending_mail(&self) -> bool {
        self.shared.has_urgent_mail.load(Ordering::Relaxed)
    }

    /// Remembers that the result of a call contains these deliveries.
    pub(crate) fn register_deliveries(&self, call: CallId, deliveries: impl Iterator<Item = DeliveryId>) {
        self.lock_deliveries().entry(call).or_default().extend(deliveries);
    }

    /// Removes and returns the deliveries that the result of a call contains.
    pub fn deliveries_for_call(&self, call: CallId) -> Vec<DeliveryId> {
        self.lock_deliveries().remove(&call).unwrap_or_default()
    }

    /// Returns the pending deliveries of a task.
    pub(crate) async fn task_deliveries(&self, task: &SessionId) -> Result<Vec<Delivery>, StoreError> {
        self.shared.store.pending_task_deliveries(task).await
    }

    fn lock_deliveries(&self) -> MutexGuard<'_, HashMap<CallId, Vec<DeliveryId>>> {
        self.call_deliveries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the pending deliveries; they are claimed by the entry that contains them.
    pub async fn take_deliveries(&self) -> Result<Vec<Delivery>, StoreError> {
        if !self.shared.has_mail.swap(false, Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        let is_urgent = self.shared.has_urgent_mail.swap(false, Ordering::Relaxed);
        let deliveries = self.shared.store.pending_deliveries(&self.shared.parent).await;
        if deliveries.as_ref().map_or(true, |deliveries| deliveries.len() >= PAGE_LEN) {
            self.mark_mail_pending();
            self.shared.has_urgent_mail.fetch_or(is_urgent, Ordering::Relaxed);
        }
        deliveries
    }

    /// Marks the mailbox as not empty.
    pub fn mark_mail_pending(&self) {
        self.shared.has_mail.store(true, Ordering::Relaxed);
    }

    /// Whether a task is running.
    pub fn is_any_working(&self) -> bool {
        self.lock_children().values().any(ChildHandle::is_working)
    }

    /// Waits for mail as long as a task is running.
    pub async fn wait_for_mail(&self) -> MailWaitOutcome {
        loop {
            let turn_ended = self.shared.turn_ended.notified();
            tokio::pin!(turn_ended);
            turn_ended.as_mut().enable();
            if self.has_pending_mail() {
                return MailWaitOutcome::Mail;
            }
            if !self.is_any_working() {
                return MailWaitOutcome::NoTasks;
            }
            turn_ended.await;
        }
    }
}

/// Describes a lost task; its worktree, if it has one, is in one of the directories. The store calls this on its thread.
fn lost_task_text(row: &TaskRow, worktree_dirs: &[PathBuf]) -> String {
    let TaskRow { task, title, .. } = row;
    let worktree = worktree_dirs.iter().map(|dir| dir.join(task.as_str())).find(|path| path.is_dir());
    let worktree = worktree.map(|path| {
        format!("Its git worktree has what it changed, also what is not committed: {}\n\n", path.display())
    });
    format!(
        "Task {task} ({title}) was lost: Crow exited while it was running.\n\n{}Its messages until then: query_session \
         with session_id {task}. To go on with it: task_send.\n",
        worktree.unwrap_or_default()
    )
}
