//! The store as the commands of Spec Kit use it.

use crow_core::SessionId;

use super::{SessionLease, Store};
use crate::{SpeckitEvent, SpeckitRow, StoreError};

impl Store {
    /// Reads where a session stands in Spec Kit; `None` when no command of it ever ran there.
    pub async fn speckit_state(&self, session: &SessionId) -> Result<Option<SpeckitRow>, StoreError> {
        let session = session.clone();
        self.run_on_thread(move |open| open.database.speckit_state(&session)).await
    }

    /// Remembers where a session stands in Spec Kit, in the place of what was known before.
    pub async fn set_speckit_state(&self, writer: &SessionLease, row: SpeckitRow) -> Result<(), StoreError> {
        self.with_session_lease(writer, move |database, session| database.set_speckit_state(session, &row))
            .await
    }

    /// Takes down what a command came to; the oldest of many are forgotten.
    pub async fn log_speckit_event(
        &self,
        writer: &SessionLease,
        event: SpeckitEvent,
    ) -> Result<(), StoreError> {
        self.with_session_lease(writer, move |database, session| database.log_speckit_event(session, &event))
            .await
    }

    /// Lists what the commands of a session came to, newest first, a page at most.
    pub async fn speckit_events(
        &self,
        session: &SessionId,
        limit: u32,
    ) -> Result<Vec<SpeckitEvent>, StoreError> {
        let session = session.clone();
        self.run_on_thread(move |open| open.database.speckit_events(&session, limit)).await
    }
}
