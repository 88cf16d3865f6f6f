//! The one that touches an open database, and the rights it holds for this process.

use std::collections::HashSet;

use crow_core::SessionId;
use tokio::sync::mpsc;

use super::{Answer, GivenBack, Request};
use crate::{Holder, StoreError, TaskEnd, TaskRow, TaskState, Timestamp, database::Database, sql::Right};

/// An open database, and the rights that this process has.
pub(super) struct Open {
    pub(super) database: Database,
    held: HashSet<Right>,
}

impl Open {
    pub(super) fn claim(&mut self, right: &Right) -> Result<(), StoreError> {
        if self.held.contains(right) {
            return Err(right.busy(Holder::Ourselves));
        }
        self.database.claim(right)?;
        self.held.insert(right.clone());
        Ok(())
    }

    fn release(&mut self, right: &Right) {
        if self.held.remove(right) {
            self.database.release(right);
        }
    }

    /// Shows the database to who has a right, which may have been lost with a connection.
    pub(super) fn held_by_us(&mut self, right: &Right) -> Result<&mut Database, StoreError> {
        if !self.held.contains(right) {
            self.claim(right)?;
        }
        Ok(&mut self.database)
    }

    /// Ends what nobody attends; who finds it attended leaves it alone.
    pub(super) fn lose_tasks(
        &mut self,
        parent: &SessionId,
        now: Timestamp,
        text_of: impl Fn(&TaskRow) -> String,
    ) -> Result<Vec<SessionId>, StoreError> {
        let mut lost = Vec::new();
        let mut tasks = self.database.tasks_of(parent)?;
        tasks.retain(|task| task.state == TaskState::Running);
        for task in tasks {
            let right = Right::Attend(task.task.clone());
            match self.claim(&right) {
                Ok(()) => {}
                Err(StoreError::Busy { .. }) => continue,
                Err(error) => return Err(error),
            }
            let delivery = Some(text_of(&task));
            let end = TaskEnd { state: TaskState::Lost, n_tokens: 0, branch: None, delivery, now };
            // Somebody may have ended it since it was read.
            let ended = self.database.end_task(&task.task, &end);
            self.release(&right);
            if ended? {
                lost.push(task.task);
            }
        }
        Ok(lost)
    }

    /// Deletes sessions, when all rights to them and to those that go along can be had.
    pub(super) fn delete(&mut self, sessions: &[SessionId], rights: &[Right]) -> Result<u64, StoreError> {
        let mut claimed = Vec::new();
        let mut result = Ok(0);
        for right in rights {
            match self.claim(right) {
                Ok(()) => claimed.push(right),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        if result.is_ok() {
            result = self.database.delete(sessions);
        }
        claimed.into_iter().for_each(|right| self.release(right));
        result
    }
}

pub(super) struct Owner<F> {
    pub(super) open: F,
    pub(super) state: Option<Open>,
    pub(super) inbox: mpsc::Receiver<Request>,
    pub(super) given_back: GivenBack,
    /// Rights that went with a connection.
    pub(super) gone: HashSet<Right>,
}

impl<F: Fn() -> Result<Database, StoreError>> Owner<F> {
    pub(super) fn run(mut self) {
        // Whoever asks first is told what stands in the way.
        drop(self.state());
        while let Some(request) = self.inbox.blocking_recv() {
            let given_back = self.given_back.take();
            if let Some(open) = &mut self.state {
                given_back.iter().for_each(|right| open.release(right));
            }
            self.gone.retain(|right| !given_back.contains(right));
            // A connection may have broken while nobody used it.
            self.drop_lost();
            match request {
                Request::Work(work) => work(self.state()),
                Request::Close(answer) => {
                    return give(answer, self.state.map_or(Ok(()), |open| open.database.close()));
                }
            }
            self.drop_lost();
        }
    }

    fn state(&mut self) -> Result<&mut Open, StoreError> {
        let open = match self.state.take() {
            Some(open) => open,
            None => Open { database: (self.open)()?, held: HashSet::new() },
        };
        let open = self.state.insert(open);
        // Before anything else is done there: who has a right is at work, and nobody is to think otherwise.
        for right in std::mem::take(&mut self.gone) {
            if let Err(error) = open.claim(&right) {
                tracing::warn!(%error, "a right was lost with a connection; its next step claims it again");
            }
        }
        Ok(open)
    }

    fn drop_lost(&mut self) {
        if let Some(open) = self.state.take_if(|open| open.database.is_lost()) {
            self.gone.extend(open.held);
        }
    }
}

/// A caller that went away has no use for its answer; the work stands.
pub(super) fn give<T>(answer: Answer<T>, result: Result<T, StoreError>) {
    drop(answer.send(result));
}
