//! The part of the store for tasks.

use crow_core::{SessionId, TranscriptEntry};

use super::{SessionLease, Store, TaskLease, bad_row_error};
use crate::{
    DeliveredEntry, Delivery, StoreError, TaskEnd, TaskPlace, TaskRow, Timestamp, row, sql::LeaseKey,
};

impl Store {
    /// Acquires the right to drive a task, which another process may hold.
    pub async fn acquire_task_lease(&self, task: &SessionId) -> Result<TaskLease, StoreError> {
        self.acquire_lease(LeaseKey::Task(task.clone())).await.map(TaskLease)
    }

    /// Releases the right to drive a task, and waits until others can acquire it.
    pub async fn release_task_lease(&self, lease: TaskLease) {
        drop(lease);
        // If the database does not answer, no process is waiting for it.
        drop(self.run_on_thread(|_| Ok(())).await);
    }

    /// Begins a turn of a task, the first or a further one. Its session exists, with the session that gave the task
    /// as its parent.
    pub async fn begin_task(&self, lease: &TaskLease, title: &str, now: Timestamp) -> Result<(), StoreError> {
        let title = title.to_owned();
        self.with_lease(&lease.0, move |database, task| database.begin_task(task, &title, now)).await
    }

    /// Ends the running turn of a task and puts the text for the parent into its mailbox; returns whether one was
    /// running.
    pub async fn end_task(&self, lease: &TaskLease, end: TaskEnd) -> Result<bool, StoreError> {
        self.with_lease(&lease.0, move |database, task| database.end_task(task, &end)).await
    }

    /// Keeps the place of a task until its running turn ends; returns whether one is running. Its driver calls this once
    /// in a turn, before anything happens at that place.
    pub async fn keep_task_place(&self, task: &SessionId, place: TaskPlace) -> Result<bool, StoreError> {
        let task = task.clone();
        self.run_on_thread(move |open| open.database.keep_task_place(&task, &place)).await
    }

    /// Deletes the place of a task, which is no longer taken up again.
    pub async fn forget_task_place(&self, task: &SessionId) -> Result<(), StoreError> {
        let task = task.clone();
        self.run_on_thread(move |open| open.database.forget_task_place(&task)).await
    }

    /// Reads the place of a running turn; `None` if it has none.
    pub async fn task_place(&self, task: &SessionId) -> Result<Option<TaskPlace>, StoreError> {
        let task = task.clone();
        self.run_on_thread(move |open| open.database.task_place(&task)).await
    }

    /// Ends the turns of a session's tasks that no process drives any more as lost, except those with a place, and puts the caller's text for
    /// each into its mailbox; returns the tasks.
    pub async fn mark_lost_tasks(
        &self,
        parent: &SessionId,
        now: Timestamp,
        delivery_text: impl Fn(&TaskRow) -> String + Send + 'static,
    ) -> Result<Vec<SessionId>, StoreError> {
        let parent = parent.clone();
        self.run_on_thread(move |open| open.mark_lost_tasks(&parent, now, delivery_text)).await
    }

    /// Reads a task; `None` if no session gave one under this ID.
    pub async fn find_task(&self, task: &SessionId) -> Result<Option<TaskRow>, StoreError> {
        let task = task.clone();
        self.run_on_thread(move |open| open.database.find_task(&task)).await
    }

    /// Lists the tasks of a session in the order they began.
    pub async fn list_tasks(&self, parent: &SessionId) -> Result<Vec<TaskRow>, StoreError> {
        let parent = parent.clone();
        self.run_on_thread(move |open| open.database.list_tasks(&parent)).await
    }

    /// Lists the deliveries in the mailbox of a session, oldest first, at most a page; the rest follows once those
    /// are delivered.
    pub async fn pending_deliveries(&self, parent: &SessionId) -> Result<Vec<Delivery>, StoreError> {
        let parent = parent.clone();
        self.run_on_thread(move |open| open.database.pending_deliveries(&parent)).await
    }

    /// Lists the deliveries of one task in the mailbox of its parent, oldest first.
    pub async fn pending_task_deliveries(&self, task: &SessionId) -> Result<Vec<Delivery>, StoreError> {
        let task = task.clone();
        self.run_on_thread(move |open| open.database.pending_task_deliveries(&task)).await
    }

    /// Stores an entry as [`Store::append_entry`] does, with the deliveries in it. If one of them no longer waits,
    /// nothing is stored.
    pub async fn append_with_deliveries(
        &self,
        lease: &SessionLease,
        seq: u64,
        delivered: &DeliveredEntry<'_, TranscriptEntry>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let row = row::encode_entry(delivered.entry)
            .map_err(|error| bad_row_error(lease.session(), seq, &error))?;
        let deliveries = delivered.deliveries.to_vec();
        self.with_session_lease(lease, move |database, session| {
            let delivered = DeliveredEntry { entry: &row, deliveries: &deliveries };
            database.append_with_deliveries(session, seq, &delivered, now)
        })
        .await
    }
}
