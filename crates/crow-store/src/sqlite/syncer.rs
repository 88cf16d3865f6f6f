//! Flushes the system's buffers to the disk, on a thread of its own: a disk takes milliseconds, and streaming does
//! not wait for it.
//!
//! A commit is in the log as soon as it is made, so flushing the log is enough. The death of the program loses
//! nothing either way; this is about power failures.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    thread,
};

use super::errors::from_io;
use crate::{StoreError, sql::SyncCallback};

/// Each running turn waits for at most one, and requests that arrive together are flushed together.
const REQUESTS_MAX: usize = 64;

pub(super) struct WalSyncer {
    requests: SyncSender<SyncCallback>,
}

impl WalSyncer {
    pub(super) fn start(database: &Path) -> io::Result<Self> {
        let (requests, inbox) = sync_channel(REQUESTS_MAX);
        let database = database.to_path_buf();
        thread::Builder::new().name("crow-sync".into()).spawn(move || run_syncer(&database, &inbox))?;
        Ok(Self { requests })
    }

    /// Flushes everything committed until now.
    pub(super) fn sync(&self, on_synced: SyncCallback) {
        let unsent = match self.requests.try_send(on_synced) {
            Ok(()) => return,
            // The request waiting there is flushed after this moment, and so is what was committed before it.
            Err(TrySendError::Full(None)) => return,
            Err(TrySendError::Full(Some(on_synced))) => match self.requests.send(Some(on_synced)) {
                Ok(()) => return,
                Err(unsent) => unsent.0,
            },
            Err(TrySendError::Disconnected(on_synced)) => on_synced,
        };
        if let Some(on_synced) = unsent {
            on_synced(Err(StoreError::Closed));
        }
    }
}

fn run_syncer(database: &Path, inbox: &Receiver<SyncCallback>) {
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    let log = PathBuf::from(log);
    while let Ok(first) = inbox.recv() {
        let callbacks: Vec<SyncCallback> = std::iter::once(first).chain(inbox.try_iter()).collect();
        let flushed = flush_wal(database, &log);
        if let Err(error) = &flushed {
            tracing::warn!(%error, "stored data may not survive a power failure");
        }
        for on_synced in callbacks.into_iter().flatten() {
            on_synced(flushed.as_ref().copied().map_err(|error| from_io(database, error)));
        }
    }
}

/// The log may be gone: closing the database elsewhere moves it into the file, flushed.
fn flush_wal(database: &Path, log: &Path) -> io::Result<()> {
    match File::open(log) {
        Ok(log) => log.sync_data()?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    // The name of a new log is in its directory.
    match database.parent() {
        Some(directory) => File::open(directory)?.sync_data(),
        None => Ok(()),
    }
}
