//! The replays of an open session, as its running turn must know them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use crow_acp::{Client, ReplayHold};
use crow_core::{MessageId, ReplyDelta, SessionId, StreamPosition};
use tokio::sync::{Mutex, MutexGuard};

/// The replays of one open session, and how much of a reply its turn has sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct LiveReplays(Arc<ReplayState>);

#[derive(Debug, Default)]
struct ReplayState {
    /// The client lacks the output of calls that were running at a replay.
    n_replays: AtomicU64,
    stream_position: std::sync::Mutex<StreamPosition>,
    /// One replay at a time.
    turn: Mutex<()>,
}

/// A replay of an open session.
pub(crate) struct LiveReplay<'a> {
    pub(crate) hold: ReplayHold,
    /// The end of what was sent of a reply before.
    pub(crate) position: StreamPosition,
    _turn: MutexGuard<'a, ()>,
}

impl LiveReplays {
    /// Begins a replay. To be called before the store is read: what the turn sends after this call reaches the client
    /// after the replay.
    pub(crate) async fn begin_replay(&self, client: &Client, session: &SessionId) -> LiveReplay<'_> {
        let turn = self.0.turn.lock().await;
        self.0.n_replays.fetch_add(1, Ordering::Relaxed);
        // All of this runs on one thread, so nothing is sent between these two.
        let hold = client.begin_replay(session);
        let position = self.lock_position().clone();
        LiveReplay { hold, position, _turn: turn }
    }

    /// Counts a piece of a reply that is sent.
    pub(crate) fn count_delta(&self, message: &MessageId, delta: ReplyDelta<'_>) {
        self.lock_position().count_delta(message, delta);
    }

    /// Returns the number of replays so far.
    pub(crate) fn n_replays(&self) -> u64 {
        self.0.n_replays.load(Ordering::Relaxed)
    }

    fn lock_position(&self) -> std::sync::MutexGuard<'_, StreamPosition> {
        self.0.stream_position.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
