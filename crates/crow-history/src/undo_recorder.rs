//! Stores the state of files before a call changes them. Must not know which tool changes what.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crow_core::undo::UndoSnapshot;
use crow_core::{CallId, ContentHash};
use crow_store::{ChangeId, NewFileChange, SessionLease, Store, Timestamp};
use crow_tools::{UndoFuture, UndoRecorder};

/// Records the changes of one call.
pub struct CallUndoRecorder<'a> {
    store: &'a Store,
    lease: &'a SessionLease,
    /// Sequence number of the turn's prompt.
    turn: u64,
    call: CallId,
    clock: fn() -> Timestamp,
    last_change: Mutex<Option<ChangeId>>,
}

impl<'a> CallUndoRecorder<'a> {
    /// Creates the recorder of a call; `turn` is the sequence number of its turn's prompt, `clock` reads the time.
    pub fn new(
        store: &'a Store,
        lease: &'a SessionLease,
        turn: u64,
        call: CallId,
        clock: fn() -> Timestamp,
    ) -> Self {
        Self { store, lease, turn, call, clock, last_change: Mutex::default() }
    }

    fn lock_last(&self) -> std::sync::MutexGuard<'_, Option<ChangeId>> {
        self.last_change.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UndoRecorder for CallUndoRecorder<'_> {
    fn record_change<'a>(
        &'a self,
        path: &'a Path,
        before: UndoSnapshot,
        after: ContentHash,
    ) -> UndoFuture<'a, Result<(), String>> {
        Box::pin(async move {
            // The database stores paths as UTF-8.
            let path = path.to_str().ok_or("its path is not UTF-8")?.to_owned();
            let change = NewFileChange { turn: self.turn, call: self.call, path, before, after: Some(after) };
            let change_id = self.store.record_change(self.lease, change, (self.clock)()).await;
            *self.lock_last() = Some(change_id.map_err(|error| error.to_string())?);
            Ok(())
        })
    }

    fn correct_after(&self, after: Option<ContentHash>) -> UndoFuture<'_, ()> {
        Box::pin(async move {
            let last_change = *self.lock_last();
            let Some(last_change) = last_change else { return };
            if let Err(error) = self.store.set_change_after(self.lease, last_change, after).await {
                tracing::warn!(%error, "the state after a change could not be stored; undoing it may be rejected");
            }
        })
    }
}
