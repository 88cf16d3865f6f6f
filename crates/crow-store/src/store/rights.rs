//! Rights that one at a time has among all processes, for as long as a value lives.

use std::sync::{Arc, Mutex, PoisonError};

use crow_core::SessionId;
use tokio::sync::mpsc;

use super::StoreRequest;
use crate::sql::LeaseKey;

/// The right to write in a session, which one turn at a time has, among all processes. Dropping it gives it back.
#[derive(Debug)]
pub struct SessionLease(pub(super) LeaseGuard);

impl SessionLease {
    /// Names the session.
    pub fn session(&self) -> &SessionId {
        self.0.right.session()
    }
}

/// The right to drive a task, which one at a time has, among all processes. Dropping it gives it back.
#[derive(Debug)]
pub struct TaskLease(pub(super) LeaseGuard);

impl TaskLease {
    /// Names the task.
    pub fn task(&self) -> &SessionId {
        self.0.right.session()
    }
}

#[derive(Debug)]
pub(super) struct LeaseGuard {
    pub(super) right: LeaseKey,
    pub(super) given_back: ReleasedLeases,
    pub(super) requests: mpsc::WeakSender<StoreRequest>,
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        self.given_back.push(self.right.clone());
        if let Some(requests) = self.requests.upgrade() {
            // Where no request fits, those that wait there do as well: each looks at what was given back.
            drop(requests.try_send(StoreRequest::Work(Box::new(|_| ()))));
        }
    }
}

/// Rights whose values were dropped; as many as there were values.
#[derive(Debug, Clone, Default)]
pub(super) struct ReleasedLeases(Arc<Mutex<Vec<LeaseKey>>>);

impl ReleasedLeases {
    fn push(&self, right: LeaseKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(right);
    }

    pub(super) fn take_all(&self) -> Vec<LeaseKey> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
