//! The interface of the store of undo records. Must not know where they are stored.

use std::{path::Path, pin::Pin};

use crow_core::{ContentHash, undo::UndoSnapshot};

/// A pending operation of an undo recorder.
pub type UndoFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Records what a call is about to change, so that it can be undone.
pub trait UndoRecorder: Send + Sync {
    /// Records the content at a resolved path before `after` is written there; `Err` is the reason why it could not be
    /// recorded.
    fn record_change<'a>(
        &'a self,
        path: &'a Path,
        before: UndoSnapshot,
        after: ContentHash,
    ) -> UndoFuture<'a, Result<(), String>>;

    /// Corrects the content that the last recorded change left; `None` if the file does not exist.
    fn correct_after(&self, after: Option<ContentHash>) -> UndoFuture<'_, ()>;
}
