//! The store as those who give tasks use it.

use crow_core::{SessionId, TranscriptEntry};

use super::{SessionLease, Store, TaskLease, bad_row_error};
use crate::{Delivery, DeliveryId, StoreError, TaskEnd, TaskRow, Timestamp, row, sql::LeaseKey};

impl Store {
    /// Takes the right to drive a task, which another process may have at the moment.
    pub async fn acquire_task_lease(&self, task: &SessionId) -> Result<TaskLease, StoreError> {
        self.acquire_lease(LeaseKey::Attend(task.clone())).await.map(TaskLease)
    }

    /// Gives the right to drive a task back, and waits until others can have it.
    pub async fn release_task_lease(&self, attending: TaskLease) {
        drop(attending);
        // A database that cannot answer has nobody waiting for it.
        drop(self.run_on_thread(|_| Ok(())).await);
    }

    /// Begins a round of a task, the first or a further one. Its session is there, with the one that gave the task as
    /// its parent.
    pub async fn begin_task(
        &self,
        attending: &TaskLease,
        title: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let title = title.to_owned();
        self.with_lease(&attending.0, move |database, task| database.begin_task(task, &title, now)).await
    }

    /// Ends the round of a task that runs and puts what the parent is told into its mailbox; tells whether one ran.
    pub async fn end_task(&self, attending: &TaskLease, end: TaskEnd) -> Result<bool, StoreError> {
        self.with_lease(&attending.0, move |database, task| database.end_task(task, &end)).await
    }

    /// Ends the rounds of a session's tasks that nobody attends any more as lost, and puts into its mailbox what the
    /// caller says of each; tells which they were.
    pub async fn mark_lost_tasks(
        &self,
        parent: &SessionId,
        now: Timestamp,
        text_of: impl Fn(&TaskRow) -> String + Send + 'static,
    ) -> Result<Vec<SessionId>, StoreError> {
        let parent = parent.clone();
        self.run_on_thread(move |open| open.mark_lost_tasks(&parent, now, text_of)).await
    }

    /// Reads a task; `None` when no session was given one under this name.
    pub async fn find_task(&self, task: &SessionId) -> Result<Option<TaskRow>, StoreError> {
        let task = task.clone();
        self.run_on_thread(move |open| open.database.find_task(&task)).await
    }

    /// Lists the tasks that a session gave, in the order they began.
    pub async fn list_tasks(&self, parent: &SessionId) -> Result<Vec<TaskRow>, StoreError> {
        let parent = parent.clone();
        self.run_on_thread(move |open| open.database.list_tasks(&parent)).await
    }

    /// Lists what waits in the mailbox of a session, oldest first; what is beyond a page comes once that is delivered.
    pub async fn pending_deliveries(&self, parent: &SessionId) -> Result<Vec<Delivery>, StoreError> {
        let parent = parent.clone();
        self.run_on_thread(move |open| open.database.pending_deliveries(&parent)).await
    }

    /// Lists what waits of one task in the mailbox of the session that gave it, oldest first.
    pub async fn pending_task_deliveries(&self, task: &SessionId) -> Result<Vec<Delivery>, StoreError> {
        let task = task.clone();
        self.run_on_thread(move |open| open.database.pending_task_deliveries(&task)).await
    }

    /// Stores an entry as [`Store::append_entry`] does, with the deliveries that stand in it. When one of them does not wait
    /// any longer, nothing is stored.
    pub async fn append_with_deliveries(
        &self,
        writer: &SessionLease,
        seq: u64,
        (entry, deliveries): (&TranscriptEntry, &[DeliveryId]),
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let row = row::encode_entry(entry).map_err(|error| bad_row_error(writer.session(), seq, &error))?;
        let deliveries = deliveries.to_vec();
        self.with_session_lease(writer, move |database, session| {
            database.append_with_deliveries(session, seq, (&row, &deliveries), now)
        })
        .await
    }
}
