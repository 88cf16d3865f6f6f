//! The port of a simulation to the store: waits, errors and the names of sessions.

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crow_core::SessionId;

use crate::StoreError;

/// A wait of a simulated disk.
pub type DiskWait<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A disk for a simulation.
pub trait SimulatedDisk: Send + Sync {
    /// Waits before a request runs, and again before its answer arrives.
    fn wait(&self) -> DiskWait<'_>;

    /// Returns the error of the next transaction, if it fails.
    fn next_fault(&self, is_write: bool) -> Option<DiskFault>;
}

/// The reason why a transaction fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskFault {
    /// Another process holds the lock for too long; nothing was done.
    Locked,
    /// The disk is full; everything that the transaction wrote is undone.
    Full,
    /// The disk refused a read or a write.
    Broken,
}

impl DiskFault {
    pub(crate) fn into_error(self, database: &str) -> StoreError {
        let database = database.to_owned();
        match self {
            Self::Locked => StoreError::Locked { database },
            Self::Full => StoreError::Full { database },
            Self::Broken => StoreError::Disk { database, reason: "disk I/O error".into() },
        }
    }
}

/// The disk and the names of a simulated store.
#[derive(Clone)]
pub(crate) struct StoreSimulation {
    pub(crate) disk: Arc<dyn SimulatedDisk>,
    pub(crate) names: Arc<AtomicU64>,
}

impl fmt::Debug for StoreSimulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreSimulation").finish_non_exhaustive()
    }
}

/// Returns the name of the next session: simulations are repeatable.
pub(crate) fn next_session_name(names: &AtomicU64) -> SessionId {
    session_name(names.fetch_add(1, Ordering::Relaxed) + 1)
}

/// Returns the name of a session by its number.
pub(crate) fn session_name(number: u64) -> SessionId {
    SessionId::new(format!("session-{number}"))
}
