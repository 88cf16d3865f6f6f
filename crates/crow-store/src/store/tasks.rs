//! The store as those who give tasks use it.

use crow_core::{Entry, SessionId};

use super::{Attending, Store, Writer, bad_row};
use crate::{Delivery, DeliveryId, StoreError, TaskEnd, TaskRow, Timestamp, row, sql::Right};

impl Store {
    /// Takes the right to drive a task, which another process may have at the moment.
    pub async fn attend(&self, task: &SessionId) -> Result<Attending, StoreError> {
        self.take(Right::Attend(task.clone())).await.map(Attending)
    }

    /// Gives the right to drive a task back, and waits until others can have it.
    pub async fn end_attending(&self, attending: Attending) {
        drop(attending);
        // A database that cannot answer has nobody waiting for it.
        drop(self.ask(|_| Ok(())).await);
    }

    /// Begins a round of a task, the first or a further one. Its session is there, with the one that gave the task as
    /// its parent.
    pub async fn begin_task(
        &self,
        attending: &Attending,
        title: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let title = title.to_owned();
        self.with(&attending.0, move |database, task| database.begin_task(task, &title, now)).await
    }

    /// Ends the round of a task that runs and puts what the parent is told into its mailbox; tells whether one ran.
    pub async fn end_task(&self, attending: &Attending, end: TaskEnd) -> Result<bool, StoreError> {
        self.with(&attending.0, move |database, task| database.end_task(task, &end)).await
    }

    /// Ends the rounds of a session's tasks that nobody attends any more as lost, and puts into its mailbox what the
    /// caller says of each; tells which they were.
    pub async fn lose_tasks(
        &self,
        parent: &SessionId,
        now: Timestamp,
        text_of: impl Fn(&TaskRow) -> String + Send + 'static,
    ) -> Result<Vec<SessionId>, StoreError> {
        let parent = parent.clone();
        self.ask(move |open| open.lose_tasks(&parent, now, text_of)).await
    }

    /// Reads a task; `None` when no session was given one under this name.
    pub async fn task(&self, task: &SessionId) -> Result<Option<TaskRow>, StoreError> {
        let task = task.clone();
        self.ask(move |open| open.database.task(&task)).await
    }

    /// Lists the tasks that a session gave, in the order they began.
    pub async fn tasks_of(&self, parent: &SessionId) -> Result<Vec<TaskRow>, StoreError> {
        let parent = parent.clone();
        self.ask(move |open| open.database.tasks_of(&parent)).await
    }

    /// Lists what waits in the mailbox of a session, oldest first; what is beyond a page comes once that is delivered.
    pub async fn mail(&self, parent: &SessionId) -> Result<Vec<Delivery>, StoreError> {
        let parent = parent.clone();
        self.ask(move |open| open.database.mail(&parent)).await
    }

    /// Lists what waits of one task in the mailbox of the session that gave it, oldest first.
    pub async fn mail_of(&self, task: &SessionId) -> Result<Vec<Delivery>, StoreError> {
        let task = task.clone();
        self.ask(move |open| open.database.mail_of(&task)).await
    }

    /// Stores an entry as [`Store::append`] does, with the deliveries that stand in it. When one of them does not wait
    /// any longer, nothing is stored.
    pub async fn append_delivered(
        &self,
        writer: &Writer,
        seq: u64,
        (entry, deliveries): (&Entry, &[DeliveryId]),
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let row = row::write(entry).map_err(|error| bad_row(writer.session(), seq, &error))?;
        let deliveries = deliveries.to_vec();
        self.write(writer, move |database, session| {
            database.append_delivered(session, seq, (&row, &deliveries), now)
        })
        .await
    }
}
