//! Rights that one at a time has among all processes, for as long as a value lives.

use std::sync::{Arc, Mutex, PoisonError};

use crow_core::SessionId;
use tokio::sync::mpsc;

use super::Request;
use crate::sql::Right;

/// The right to write in a session, which one turn at a time has, among all processes. Dropping it gives it back.
#[derive(Debug)]
pub struct Writer(pub(super) Held);

impl Writer {
    /// Names the session.
    pub fn session(&self) -> &SessionId {
        self.0.right.session()
    }
}

/// The right to drive a task, which one at a time has, among all processes. Dropping it gives it back.
#[derive(Debug)]
pub struct Attending(pub(super) Held);

impl Attending {
    /// Names the task.
    pub fn task(&self) -> &SessionId {
        self.0.right.session()
    }
}

#[derive(Debug)]
pub(super) struct Held {
    pub(super) right: Right,
    pub(super) given_back: GivenBack,
    pub(super) requests: mpsc::WeakSender<Request>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.given_back.add(self.right.clone());
        if let Some(requests) = self.requests.upgrade() {
            // Where no request fits, those that wait there do as well: each looks at what was given back.
            drop(requests.try_send(Request::Work(Box::new(|_| ()))));
        }
    }
}

/// Rights whose values were dropped; as many as there were values.
#[derive(Debug, Clone, Default)]
pub(super) struct GivenBack(Arc<Mutex<Vec<Right>>>);

impl GivenBack {
    fn add(&self, right: Right) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(right);
    }

    pub(super) fn take(&self) -> Vec<Right> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
