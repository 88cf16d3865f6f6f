//! The replay of an open session: what its turn sends meanwhile waits, so that the client sees it after the replay.

use std::sync::Arc;

use crow_core::{SessionId, SessionUpdate};

use super::update_size::update_bytes;
use super::{Outbox, OutboxState, QUEUED_BYTES_MAX};

/// A replay of a session. When it is dropped, the updates of the session that waited are sent.
#[derive(Debug)]
pub struct ReplayHold {
    outbox: Arc<Outbox>,
    session: SessionId,
}

impl ReplayHold {
    /// Begins a replay, from which on the updates of the session wait. There is one at a time.
    pub(crate) fn begin(outbox: Arc<Outbox>, session: SessionId) -> Self {
        outbox.lock().held.entry(session.clone()).or_default();
        Self { outbox, session }
    }

    /// Sends an update of the replay.
    pub fn send_update(&self, update: SessionUpdate) {
        self.outbox.lock().push_update(&self.session, update);
        self.outbox.pushed.notify_one();
    }

    /// Waits until the client has caught up enough for more updates.
    pub async fn wait_for_capacity(&self) {
        self.outbox.wait_until(|state| state.n_bytes < QUEUED_BYTES_MAX).await;
    }

    /// Ends the replay, and sends what `unseen_part` leaves of the updates that waited.
    pub fn end(self, unseen_part: impl FnMut(SessionUpdate) -> Option<SessionUpdate>) {
        self.outbox.lock().end_hold(&self.session, unseen_part);
    }
}

impl Drop for ReplayHold {
    fn drop(&mut self) {
        self.outbox.lock().end_hold(&self.session, Some);
        self.outbox.pushed.notify_one();
        // Who waits for the end of the replay.
        self.outbox.sent.notify_waiters();
    }
}

impl OutboxState {
    fn end_hold(
        &mut self,
        session: &SessionId,
        unseen_part: impl FnMut(SessionUpdate) -> Option<SessionUpdate>,
    ) {
        let updates = self.held.remove(session).unwrap_or_default().into_iter().map(|(_, update)| update);
        let updates = updates.inspect(|update| {
            self.n_held_bytes = self.n_held_bytes.saturating_sub(update_bytes(update));
        });
        let unseen: Vec<SessionUpdate> = updates.filter_map(unseen_part).collect();
        unseen.into_iter().for_each(|update| self.push_update(session, update));
    }
}
