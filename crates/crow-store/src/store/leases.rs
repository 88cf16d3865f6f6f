//! Exclusive, cross-process leases that last as long as a value.

use std::{
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use crow_core::SessionId;
use tokio::sync::mpsc;

use super::StoreRequest;
use crate::{LeaseHolder, StoreError, sql::LeaseKey};

/// A second in all: a server that runs a statement for a killed client notices its end afterwards.
const RETRIES_MAX: usize = 50;
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// The exclusive, cross-process right to write in a session. Dropping it releases it.
#[derive(Debug)]
pub struct SessionLease(pub(super) LeaseGuard);

impl SessionLease {
    /// The session.
    pub fn session(&self) -> &SessionId {
        self.0.key.session()
    }
}

/// The exclusive, cross-process right to drive a task. Dropping it releases it.
#[derive(Debug)]
pub struct TaskLease(pub(super) LeaseGuard);

impl TaskLease {
    /// The task.
    pub fn task(&self) -> &SessionId {
        self.0.key.session()
    }
}

#[derive(Debug)]
pub(super) struct LeaseGuard {
    pub(super) key: LeaseKey,
    pub(super) released: ReleasedLeases,
    pub(super) requests: mpsc::WeakSender<StoreRequest>,
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        self.released.push(self.key.clone());
        if let Some(requests) = self.requests.upgrade() {
            // If the queue is full, the requests in it do as well: each checks for released leases.
            drop(requests.try_send(StoreRequest::Run(Box::new(|_| ()))));
        }
    }
}

/// Leases whose values were dropped; as many as there were values.
#[derive(Debug, Clone, Default)]
pub(super) struct ReleasedLeases(Arc<Mutex<Vec<LeaseKey>>>);

impl ReleasedLeases {
    fn push(&self, key: LeaseKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(key);
    }

    pub(super) fn take_all(&self) -> Vec<LeaseKey> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Waits for the leases of killed processes. They last a moment longer: until the server has noticed, or until a child
/// that was about to run a program has closed its copy of a lock.
#[derive(Debug, Default)]
pub(super) struct ReleaseWait {
    /// The last process that was waited for in vain. One of another container may seem to have ended.
    in_vain: Option<u32>,
}

impl ReleaseWait {
    /// Acquires a lease. `wait_for` waits a moment if a process has ended, and returns whether it has.
    pub(super) fn acquire(
        &mut self,
        wait_for: impl Fn(u32) -> bool,
        mut acquire: impl FnMut() -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut holder = None;
        for _ in 0..RETRIES_MAX {
            match acquire() {
                Err(StoreError::Busy {
                    holder: LeaseHolder::OtherProcess { pid: Some(pid), .. }, ..
                }) if self.in_vain != Some(pid) && wait_for(pid) => {
                    holder = Some(pid);
                }
                acquired => return acquired,
            }
        }
        acquire().inspect_err(|_| self.in_vain = holder)
    }
}

/// Waits a moment if a process has ended, because nothing tells when its locks are released; returns whether it has.
pub(super) fn wait_for_release(pid: u32) -> bool {
    let has_ended = crow_process::has_process_ended(pid);
    if has_ended {
        thread::sleep(RETRY_DELAY);
    }
    has_ended
}

#[cfg(test)]
mod tests;
