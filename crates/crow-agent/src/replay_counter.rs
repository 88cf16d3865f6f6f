//! The number of replays of an open session, which its running calls must know.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts how often an open session was replayed: its client then lacks the output of the running calls.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReplayCounter(Arc<AtomicU64>);

impl ReplayCounter {
    /// Counts a replay, before it reads the store.
    pub(crate) fn begin_replay(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of replays so far.
    pub(crate) fn n_replays(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
