//! The status of a child, for its driver and for the calls that wait for the end of its turn.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crow_store::TaskState;
use tokio::sync::Notify;

/// The state of a child.
#[derive(Debug, Clone)]
pub(crate) struct ChildStatus {
    /// Number of turns that have ended.
    pub(crate) n_ended: u32,
    pub(crate) state: TaskState,
    /// The report on the last turn.
    pub(crate) report: String,
    /// The changes of that turn in its own worktree, for a client.
    pub(crate) diff: Option<String>,
}

/// The state of a child, and the tasks that wait for the end of its turn. They go on in the order in which they came, which a
/// `watch` does not promise.
#[derive(Debug)]
pub(crate) struct SharedChildStatus {
    status: Mutex<ChildStatus>,
    turn_ended: Notify,
}

impl SharedChildStatus {
    /// Creates the status of a child during its first turn.
    pub(crate) fn new_working() -> Self {
        let status = ChildStatus { n_ended: 0, state: TaskState::Running, report: String::new(), diff: None };
        Self { status: Mutex::new(status), turn_ended: Notify::new() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, ChildStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self) -> TaskState {
        self.lock().state
    }

    /// Sets the state, and returns the one before.
    pub(crate) fn replace_state(&self, state: TaskState) -> TaskState {
        std::mem::replace(&mut self.lock().state, state)
    }

    /// Records the end of a turn.
    pub(crate) fn end_turn(&self, state: TaskState, report: String, diff: Option<String>) {
        let mut status = self.lock();
        *status = ChildStatus { n_ended: status.n_ended + 1, state, report, diff };
        drop(status);
        self.turn_ended.notify_waiters();
    }

    /// Waits until more turns than this number have ended.
    pub(crate) async fn wait_for_end(&self, n_ended: u32) {
        loop {
            let turn_ended = self.turn_ended.notified();
            if self.lock().n_ended > n_ended {
                return;
            }
            turn_ended.await;
        }
    }
}
