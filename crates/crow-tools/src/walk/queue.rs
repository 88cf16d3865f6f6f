//! The folders that the threads of a walk have not listed yet.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::lister::WalkDirectory;

/// Folders that wait at most: each takes some hundred bytes.
const WAITING_MAX: usize = 200_000;

/// A queue that ends when nothing waits and nobody could add more.
pub(super) struct WalkQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

struct QueueState {
    waiting: Vec<WalkDirectory>,
    n_taken: usize,
    is_cut: bool,
}

/// A folder at work. Dropping it says that no more comes of it.
pub(super) struct ClaimedDirectory<'a> {
    folder: WalkDirectory,
    queue: &'a WalkQueue,
}

impl WalkQueue {
    pub(super) fn new(start: WalkDirectory) -> Self {
        let state = QueueState { waiting: vec![start], n_taken: 0, is_cut: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Adds a folder; the one that was added last is taken first, so that few wait.
    pub(super) fn push(&self, folder: WalkDirectory) {
        let mut state = self.lock();
        if state.waiting.len() >= WAITING_MAX {
            state.is_cut = true;
            return;
        }
        state.waiting.push(folder);
        drop(state);
        self.changed.notify_one();
    }

    /// Takes a folder, or waits for one; `None` at the end.
    pub(super) fn claim_next(&self) -> Option<ClaimedDirectory<'_>> {
        let mut state = self.lock();
        loop {
            if let Some(folder) = state.waiting.pop() {
                state.n_taken += 1;
                return Some(ClaimedDirectory { folder, queue: self });
            }
            if state.n_taken == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether there were too many folders at once.
    pub(super) fn is_truncated(&self) -> bool {
        self.lock().is_cut
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClaimedDirectory<'_> {
    pub(super) fn directory(&self) -> &WalkDirectory {
        &self.folder
    }
}

impl Drop for ClaimedDirectory<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.n_taken -= 1;
        let is_end = state.n_taken == 0 && state.waiting.is_empty();
        drop(state);
        if is_end {
            self.queue.changed.notify_all();
        }
    }
}
