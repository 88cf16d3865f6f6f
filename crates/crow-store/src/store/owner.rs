//! The one that touches an open database, and the sessions it holds for the turns of this process.

use std::collections::HashSet;

use crow_core::SessionId;
use tokio::sync::mpsc;

use super::{Answer, GivenBack, Request};
use crate::{StoreError, database::Database};

/// An open database, and the sessions that this process writes in.
pub(super) struct Open {
    pub(super) database: Database,
    held: HashSet<SessionId>,
}

impl Open {
    pub(super) fn claim(&mut self, session: &SessionId) -> Result<(), StoreError> {
        if self.held.contains(session) {
            return Err(StoreError::Busy { session: session.clone(), holder: "this one".into() });
        }
        self.database.claim(session)?;
        self.held.insert(session.clone());
        Ok(())
    }

    fn release(&mut self, session: &SessionId) {
        if self.held.remove(session) {
            self.database.release(session);
        }
    }

    /// Shows the database to the writer of a session, who may have lost it with a connection.
    pub(super) fn held_by_us(&mut self, session: &SessionId) -> Result<&mut Database, StoreError> {
        if !self.held.contains(session) {
            self.claim(session)?;
        }
        Ok(&mut self.database)
    }

    /// Deletes sessions with those they started, when nobody writes in any of them.
    pub(super) fn delete(&mut self, sessions: &[SessionId], family: &[SessionId]) -> Result<u64, StoreError> {
        let mut claimed = Vec::new();
        let mut result = Ok(0);
        for session in sessions.iter().chain(family) {
            match self.claim(session) {
                Ok(()) => claimed.push(session),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        if result.is_ok() {
            result = self.database.delete(sessions);
        }
        claimed.into_iter().for_each(|session| self.release(session));
        result
    }
}

pub(super) struct Owner<F> {
    pub(super) open: F,
    pub(super) state: Option<Open>,
    pub(super) inbox: mpsc::Receiver<Request>,
    pub(super) given_back: GivenBack,
}

impl<F: Fn() -> Result<Database, StoreError>> Owner<F> {
    pub(super) fn run(mut self) {
        // Whoever asks first is told what stands in the way.
        drop(self.state());
        while let Some(request) = self.inbox.blocking_recv() {
            let given_back = self.given_back.take();
            if let Some(open) = &mut self.state {
                given_back.iter().for_each(|session| open.release(session));
            }
            // A connection may have broken while nobody used it.
            self.state.take_if(|open| open.database.is_lost());
            match request {
                Request::Work(work) => work(self.state()),
                Request::Close(answer) => {
                    return give(answer, self.state.map_or(Ok(()), |open| open.database.close()));
                }
            }
            // What is held there is claimed again by its writer's next step.
            self.state.take_if(|open| open.database.is_lost());
        }
    }

    fn state(&mut self) -> Result<&mut Open, StoreError> {
        let open = match self.state.take() {
            Some(open) => open,
            None => Open { database: (self.open)()?, held: HashSet::new() },
        };
        Ok(self.state.insert(open))
    }
}

/// A caller that went away has no use for its answer; the work stands.
pub(super) fn give<T>(answer: Answer<T>, result: Result<T, StoreError>) {
    drop(answer.send(result));
}
