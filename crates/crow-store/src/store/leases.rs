//! Exclusive, cross-process leases that last as long as a value.

use std::sync::{Arc, Mutex, PoisonError};

use crow_core::SessionId;
use tokio::sync::mpsc;

use super::StoreRequest;
use crate::sql::LeaseKey;

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
