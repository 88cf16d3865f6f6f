//! The order of the calls of all clients: a call waits for the earlier ones whose accesses conflict with its own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crow_core::{ToolCallInfo, conflicting_earlier_calls};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Calls at a time, of all clients; further ones wait. Far more than clients make, and few enough to compare each with
/// all others.
const CALLS_MAX: usize = 256;

/// The calls that run or wait for others. Clones share them.
#[derive(Clone)]
pub(super) struct ServedCallSchedule {
    calls: Arc<Mutex<AdmittedCalls>>,
    capacity: Arc<Semaphore>,
}

/// The calls in the order of their admission. Both lists have the same length.
#[derive(Default)]
struct AdmittedCalls {
    infos: Vec<ToolCallInfo>,
    handles: Vec<AdmittedCallHandle>,
    n_admitted: u64,
}

struct AdmittedCallHandle {
    number: u64,
    ended: CancellationToken,
}

/// The right of a call to run. Dropping it ends the call for those that wait for it.
pub(super) struct ServedCallPermit {
    calls: Arc<Mutex<AdmittedCalls>>,
    number: u64,
    _capacity: Option<OwnedSemaphorePermit>,
}

impl ServedCallSchedule {
    pub(super) fn new() -> Self {
        Self { calls: Arc::default(), capacity: Arc::new(Semaphore::new(CALLS_MAX)) }
    }

    /// Waits for the earlier calls that conflict with a call, and returns its right to run. Cancel safe.
    pub(super) async fn admit_call(&self, info: &ToolCallInfo) -> ServedCallPermit {
        // The semaphore is never closed.
        let capacity = self.capacity.clone().acquire_owned().await.ok();
        let (number, conflicting) = lock_calls(&self.calls).add_call(info);
        let permit = ServedCallPermit { calls: self.calls.clone(), number, _capacity: capacity };
        for earlier in conflicting {
            earlier.cancelled().await;
        }
        permit
    }
}

impl AdmittedCalls {
    /// Adds a call and returns its number and the ends of those that it has to wait for.
    fn add_call(&mut self, info: &ToolCallInfo) -> (u64, Vec<CancellationToken>) {
        self.n_admitted += 1;
        let number = self.n_admitted;
        self.infos.push(info.clone());
        let conflicting = conflicting_earlier_calls(&self.infos, self.handles.len());
        let conflicting = conflicting.into_iter().map(|index| self.handles[index].ended.clone()).collect();
        self.handles.push(AdmittedCallHandle { number, ended: CancellationToken::new() });
        (number, conflicting)
    }

    fn end_call(&mut self, number: u64) {
        if let Some(index) = self.handles.iter().position(|handle| handle.number == number) {
            self.infos.remove(index);
            self.handles.remove(index).ended.cancel();
        }
    }
}

impl Drop for ServedCallPermit {
    fn drop(&mut self) {
        lock_calls(&self.calls).end_call(self.number);
    }
}

fn lock_calls(calls: &Mutex<AdmittedCalls>) -> MutexGuard<'_, AdmittedCalls> {
    calls.lock().unwrap_or_else(PoisonError::into_inner)
}
