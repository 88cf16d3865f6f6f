//! The owner of an open database, and of the leases of this process.

use std::{collections::HashSet, ops::ControlFlow};

use crow_core::SessionId;
use tokio::sync::mpsc;

use super::{
    AnswerSender, ReleasedLeases, StoreRequest,
    leases::{ReleaseWait, wait_for_release},
};
use crate::{
    LeaseHolder, StoreError, TaskEnd, TaskRow, TaskState, Timestamp, database::Database, sql::LeaseKey,
};

/// An open database, and the leases of this process.
pub(super) struct OpenDatabase {
    pub(super) database: Database,
    held_leases: HashSet<LeaseKey>,
    release_wait: ReleaseWait,
}

impl OpenDatabase {
    pub(super) fn acquire_lease(&mut self, key: &LeaseKey) -> Result<(), StoreError> {
        if self.held_leases.contains(key) {
            return Err(key.busy_error(LeaseHolder::ThisProcess));
        }
        let Self { database, release_wait, .. } = self;
        release_wait.acquire(wait_for_release, || database.acquire_lease(key))?;
        self.held_leases.insert(key.clone());
        Ok(())
    }

    fn release_lease(&mut self, key: &LeaseKey) {
        if self.held_leases.remove(key) {
            self.database.release_lease(key);
        }
    }

    /// Returns the database to the holder of a lease, which may have been lost with a connection.
    pub(super) fn database_with_lease(&mut self, key: &LeaseKey) -> Result<&mut Database, StoreError> {
        if !self.held_leases.contains(key) {
            self.acquire_lease(key)?;
        }
        Ok(&mut self.database)
    }

    /// Ends the tasks that no process drives; those with a lease are left alone, and those with a place go on.
    pub(super) fn mark_lost_tasks(
        &mut self,
        parent: &SessionId,
        now: Timestamp,
        delivery_text: impl Fn(&TaskRow) -> String,
    ) -> Result<Vec<SessionId>, StoreError> {
        let mut lost_tasks = Vec::new();
        let mut tasks = self.database.list_tasks(parent)?;
        tasks.retain(|task| task.state == TaskState::Running && !task.has_place);
        for task in tasks {
            let key = LeaseKey::Task(task.task.clone());
            match self.acquire_lease(&key) {
                Ok(()) => {}
                Err(StoreError::Busy { .. }) => continue,
                Err(error) => return Err(error),
            }
            let delivery = Some(delivery_text(&task));
            let end = TaskEnd { state: TaskState::Lost, n_tokens: 0, branch: None, delivery, now };
            // Another process may have ended it since it was read.
            let ended = self.database.end_task(&task.task, &end);
            self.release_lease(&key);
            if ended? {
                lost_tasks.push(task.task);
            }
        }
        Ok(lost_tasks)
    }

    /// Deletes sessions, if all leases on them and their descendants can be acquired.
    pub(super) fn delete_sessions(
        &mut self,
        sessions: &[SessionId],
        keys: &[LeaseKey],
    ) -> Result<u64, StoreError> {
        let mut acquired = Vec::new();
        let mut result = Ok(0);
        for key in keys {
            match self.acquire_lease(key) {
                Ok(()) => acquired.push(key),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        if result.is_ok() {
            result = self.database.delete_sessions(sessions);
        }
        acquired.into_iter().for_each(|key| self.release_lease(key));
        result
    }
}

/// An opening that failed, for the requests that have waited for it: each would wait as long again, one after another.
pub(super) struct OpeningFailure {
    error: StoreError,
    n_waiting: usize,
}

pub(super) struct StoreActor<F> {
    pub(super) open: F,
    pub(super) state: Option<OpenDatabase>,
    /// The last opening, if it failed and requests waited for it.
    pub(super) opening_failure: Option<OpeningFailure>,
    pub(super) inbox: mpsc::Receiver<StoreRequest>,
    pub(super) released: ReleasedLeases,
    /// Leases that were lost with a connection.
    pub(super) lost_leases: HashSet<LeaseKey>,
}

impl<F: Fn() -> Result<Database, StoreError>> StoreActor<F> {
    pub(super) fn run(mut self) {
        if let Err(error) = self.ensure_open() {
            tracing::debug!(%error, "the database could not be opened yet");
        }
        while let Some(request) = self.inbox.blocking_recv() {
            if self.handle_request(request).is_break() {
                return;
            }
        }
    }

    /// Handles one request; breaks after the last.
    pub(super) fn handle_request(&mut self, request: StoreRequest) -> ControlFlow<()> {
        let released = self.released.take_all();
        if let Some(open) = &mut self.state {
            released.iter().for_each(|key| open.release_lease(key));
        }
        self.lost_leases.retain(|key| !released.contains(key));
        // A connection may have broken while it was idle.
        self.drop_lost_connection();
        match request {
            StoreRequest::Run(work) => match self.take_opening_error() {
                Some(error) => work(Err(error)),
                None => work(self.ensure_open()),
            },
            StoreRequest::Close(answer) => {
                send_answer(answer, self.state.take().map_or(Ok(()), |open| open.database.close()));
                return ControlFlow::Break(());
            }
        }
        self.drop_lost_connection();
        ControlFlow::Continue(())
    }

    fn ensure_open(&mut self) -> Result<&mut OpenDatabase, StoreError> {
        let open = match self.state.take() {
            Some(open) => open,
            None => OpenDatabase {
                database: self.open_database()?,
                held_leases: HashSet::new(),
                release_wait: ReleaseWait::default(),
            },
        };
        let open = self.state.insert(open);
        // First of all: a holder of a lease is working, and no other process may acquire it.
        for key in std::mem::take(&mut self.lost_leases) {
            if let Err(error) = open.acquire_lease(&key) {
                tracing::warn!(%error, "a lease was lost with its connection; the next step acquires it again");
            }
        }
        Ok(open)
    }

    fn open_database(&mut self) -> Result<Database, StoreError> {
        let opened = (self.open)();
        if let Err(error) = &opened {
            let n_waiting = self.inbox.len();
            self.opening_failure = Some(OpeningFailure { error: error.clone(), n_waiting });
        }
        opened
    }

    /// Returns the error of the opening that a request has waited for; later ones try again.
    fn take_opening_error(&mut self) -> Option<StoreError> {
        let OpeningFailure { error, n_waiting } = self.opening_failure.take()?;
        let n_waiting = n_waiting.checked_sub(1)?;
        self.opening_failure = Some(OpeningFailure { error: error.clone(), n_waiting });
        Some(error)
    }

    fn drop_lost_connection(&mut self) {
        if let Some(open) = self.state.take_if(|open| open.database.is_lost()) {
            self.lost_leases.extend(open.held_leases);
            open.database.abandon();
        }
    }
}

/// A caller that went away does not need its answer; the work stays done.
pub(super) fn send_answer<T>(answer: AnswerSender<T>, result: Result<T, StoreError>) {
    drop(answer.send(result));
}
