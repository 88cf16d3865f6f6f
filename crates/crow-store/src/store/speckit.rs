//! The store as the commands of Spec Kit use it.

use crow_core::SessionId;

use super::{Store, Writer};
use crate::{SpeckitEvent, SpeckitRow, StoreError};

impl Store {
    /// Reads where a session stands in Spec Kit; `None` when no command of it ever ran there.
    pub async fn speckit(&self, session: &SessionId) -> Result<Option<SpeckitRow>, StoreError> {
        let session = session.clone();
        self.ask(move |open| open.database.speckit(&session)).await
    }

    /// Remembers where a session stands in Spec Kit, in the place of what was known before.
    pub async fn bind_speckit(&self, writer: &Writer, row: SpeckitRow) -> Result<(), StoreError> {
        self.write(writer, move |database, session| database.bind_speckit(session, &row)).await
    }

    /// Takes down what a command came to; the oldest of many are forgotten.
    pub async fn log_speckit(&self, writer: &Writer, event: SpeckitEvent) -> Result<(), StoreError> {
        self.write(writer, move |database, session| database.log_speckit(session, &event)).await
    }

    /// Lists what the commands of a session came to, newest first, a page at most.
    pub async fn speckit_events(
        &self,
        session: &SessionId,
        limit: u32,
    ) -> Result<Vec<SpeckitEvent>, StoreError> {
        let session = session.clone();
        self.ask(move |open| open.database.speckit_events(&session, limit)).await
    }
}
