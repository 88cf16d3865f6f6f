//! The queue of directories that the threads of a walk have to list.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::lister::WalkDirectory;

/// Pending directories: each takes a few hundred bytes.
const PENDING_MAX: usize = 200_000;

/// A queue that ends once nothing is pending and no thread could add more.
pub(super) struct WalkQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

struct QueueState {
    pending: Vec<WalkDirectory>,
    n_claimed: usize,
    is_truncated: bool,
}

/// A directory that a thread is listing. Dropping it marks it as done.
pub(super) struct ClaimedDirectory<'a> {
    dir: WalkDirectory,
    queue: &'a WalkQueue,
}

impl WalkQueue {
    pub(super) fn new(start: WalkDirectory) -> Self {
        let state = QueueState { pending: vec![start], n_claimed: 0, is_truncated: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Adds a directory; the last one is taken first, so that few are pending.
    pub(super) fn push(&self, dir: WalkDirectory) {
        let mut state = self.lock();
        if state.pending.len() >= PENDING_MAX {
            state.is_truncated = true;
            return;
        }
        state.pending.push(dir);
        drop(state);
        self.changed.notify_one();
    }

    /// Takes a directory, or waits for one; `None` at the end.
    pub(super) fn claim_next(&self) -> Option<ClaimedDirectory<'_>> {
        let mut state = self.lock();
        loop {
            if let Some(dir) = state.pending.pop() {
                state.n_claimed += 1;
                return Some(ClaimedDirectory { dir, queue: self });
            }
            if state.n_claimed == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether too many directories were pending.
    pub(super) fn is_truncated(&self) -> bool {
        self.lock().is_truncated
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClaimedDirectory<'_> {
    pub(super) fn directory(&self) -> &WalkDirectory {
        &self.dir
    }
}

impl Drop for ClaimedDirectory<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.n_claimed -= 1;
        let is_done = state.n_claimed == 0 && state.pending.is_empty();
        drop(state);
        if is_done {
            self.queue.changed.notify_all();
        }
    }
}
