//! The one that touches an open database, and the rights it holds for this process.

use std::collections::HashSet;

use crow_core::SessionId;
use tokio::sync::mpsc;

use super::{AnswerSender, ReleasedLeases, StoreRequest};
use crate::{
    LeaseHolder, StoreError, TaskEnd, TaskRow, TaskState, Timestamp, database::Database, sql::LeaseKey,
};

/// An open database, and the rights that this process has.
pub(super) struct OpenDatabase {
    pub(super) database: Database,
    held: HashSet<LeaseKey>,
}

impl OpenDatabase {
    pub(super) fn acquire_lease(&mut self, right: &LeaseKey) -> Result<(), StoreError> {
        if self.held.contains(right) {
            return Err(right.busy_error(LeaseHolder::Ourselves));
        }
        self.database.acquire_lease(right)?;
        self.held.insert(right.clone());
        Ok(())
    }

    fn release_lease(&mut self, right: &LeaseKey) {
        if self.held.remove(right) {
            self.database.release_lease(right);
        }
    }

    /// Shows the database to who has a right, which may have been lost with a connection.
    pub(super) fn database_with_lease(&mut self, right: &LeaseKey) -> Result<&mut Database, StoreError> {
        if !self.held.contains(right) {
            self.acquire_lease(right)?;
        }
        Ok(&mut self.database)
    }

    /// Ends what nobody attends; who finds it attended leaves it alone.
    pub(super) fn mark_lost_tasks(
        &mut self,
        parent: &SessionId,
        now: Timestamp,
        text_of: impl Fn(&TaskRow) -> String,
    ) -> Result<Vec<SessionId>, StoreError> {
        let mut lost = Vec::new();
        let mut tasks = self.database.list_tasks(parent)?;
        tasks.retain(|task| task.state == TaskState::Running);
        for task in tasks {
            let right = LeaseKey::Attend(task.task.clone());
            match self.acquire_lease(&right) {
                Ok(()) => {}
                Err(StoreError::Busy { .. }) => continue,
                Err(error) => return Err(error),
            }
            let delivery = Some(text_of(&task));
            let end = TaskEnd { state: TaskState::Lost, n_tokens: 0, branch: None, delivery, now };
            // Somebody may have ended it since it was read.
            let ended = self.database.end_task(&task.task, &end);
            self.release_lease(&right);
            if ended? {
                lost.push(task.task);
            }
        }
        Ok(lost)
    }

    /// Deletes sessions, when all rights to them and to those that go along can be had.
    pub(super) fn delete_sessions(
        &mut self,
        sessions: &[SessionId],
        rights: &[LeaseKey],
    ) -> Result<u64, StoreError> {
        let mut claimed = Vec::new();
        let mut result = Ok(0);
        for right in rights {
            match self.acquire_lease(right) {
                Ok(()) => claimed.push(right),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        if result.is_ok() {
            result = self.database.delete_sessions(sessions);
        }
        claimed.into_iter().for_each(|right| self.release_lease(right));
        result
    }
}

pub(super) struct StoreActor<F> {
    pub(super) open: F,
    pub(super) state: Option<OpenDatabase>,
    pub(super) inbox: mpsc::Receiver<StoreRequest>,
    pub(super) given_back: ReleasedLeases,
    /// Rights that went with a connection.
    pub(super) gone: HashSet<LeaseKey>,
}

impl<F: Fn() -> Result<Database, StoreError>> StoreActor<F> {
    pub(super) fn run(mut self) {
        // Whoever asks first is told what stands in the way.
        drop(self.ensure_open());
        while let Some(request) = self.inbox.blocking_recv() {
            let given_back = self.given_back.take_all();
            if let Some(open) = &mut self.state {
                given_back.iter().for_each(|right| open.release_lease(right));
            }
            self.gone.retain(|right| !given_back.contains(right));
            // A connection may have broken while nobody used it.
            self.drop_lost_connection();
            match request {
                StoreRequest::Work(work) => work(self.ensure_open()),
                StoreRequest::Close(answer) => {
                    return send_answer(answer, self.state.map_or(Ok(()), |open| open.database.close()));
                }
            }
            self.drop_lost_connection();
        }
    }

    fn ensure_open(&mut self) -> Result<&mut OpenDatabase, StoreError> {
        let open = match self.state.take() {
            Some(open) => open,
            None => OpenDatabase { database: (self.open)()?, held: HashSet::new() },
        };
        let open = self.state.insert(open);
        // Before anything else is done there: who has a right is at work, and nobody is to think otherwise.
        for right in std::mem::take(&mut self.gone) {
            if let Err(error) = open.acquire_lease(&right) {
                tracing::warn!(%error, "a right was lost with a connection; its next step claims it again");
            }
        }
        Ok(open)
    }

    fn drop_lost_connection(&mut self) {
        if let Some(open) = self.state.take_if(|open| open.database.is_lost()) {
            self.gone.extend(open.held);
        }
    }
}

/// A caller that went away has no use for its answer; the work stands.
pub(super) fn send_answer<T>(answer: AnswerSender<T>, result: Result<T, StoreError>) {
    drop(answer.send(result));
}
