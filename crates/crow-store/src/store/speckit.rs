//! The part of the store for Spec Kit commands.

use crow_core::SessionId;

use super::{SessionLease, Store};
use crate::{SpeckitEvent, SpeckitRow, StoreError};

impl Store {
    /// Reads the Spec Kit state of a session; `None` if no command ever ran there.
    pub async fn speckit_state(&self, session: &SessionId) -> Result<Option<SpeckitRow>, StoreError> {
        let session = session.clone();
        self.run_on_thread(move |open| open.database.speckit_state(&session)).await
    }

    /// Replaces the Spec Kit state of a session.
    pub async fn set_speckit_state(&self, lease: &SessionLease, row: SpeckitRow) -> Result<(), StoreError> {
        self.with_session_lease(lease, move |database, session| database.set_speckit_state(session, &row))
            .await
    }

    /// Stores the outcome of a command; the oldest of many are deleted.
    pub async fn log_speckit_event(
        &self,
        lease: &SessionLease,
        event: SpeckitEvent,
    ) -> Result<(), StoreError> {
        self.with_session_lease(lease, move |database, session| database.log_speckit_event(session, &event))
            .await
    }

    /// Lists the outcomes of a session's commands, newest first, at most a page.
    pub async fn speckit_events(
        &self,
        session: &SessionId,
        limit: u32,
    ) -> Result<Vec<SpeckitEvent>, StoreError> {
        let session = session.clone();
        self.run_on_thread(move |open| open.database.speckit_events(&session, limit)).await
    }
}
