//! Makes the disk keep what the system holds for it, on a thread of its own: a disk takes milliseconds, and nothing
//! that is said waits for them.
//!
//! A commit is in the log as soon as it is made, so flushing the log is enough. A program's death loses nothing either
//! way; this is about the loss of power.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    thread,
};

use crate::{StoreError, sql::SyncCallback};

/// Each turn that runs waits for one at most, and what comes together is flushed together.
const WAITING_MAX: usize = 64;

pub(super) struct WalSyncer {
    wanted: SyncSender<SyncCallback>,
}

impl WalSyncer {
    pub(super) fn start(database: &Path) -> io::Result<Self> {
        let (wanted, inbox) = sync_channel(WAITING_MAX);
        let database = database.to_path_buf();
        thread::Builder::new().name("crow-sync".into()).spawn(move || run_syncer(&database, &inbox))?;
        Ok(Self { wanted })
    }

    /// Flushes all that was committed until now.
    pub(super) fn sync(&self, done: SyncCallback) {
        let refused = match self.wanted.try_send(done) {
            Ok(()) => return,
            // What waits there is flushed after this moment, and so is what was committed before it.
            Err(TrySendError::Full(None)) => return,
            Err(TrySendError::Full(Some(done))) => match self.wanted.send(Some(done)) {
                Ok(()) => return,
                Err(refused) => refused.0,
            },
            Err(TrySendError::Disconnected(done)) => done,
        };
        if let Some(done) = refused {
            done(Err(StoreError::Closed));
        }
    }
}

fn run_syncer(database: &Path, inbox: &Receiver<SyncCallback>) {
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    let log = PathBuf::from(log);
    while let Ok(first) = inbox.recv() {
        let waiting: Vec<SyncCallback> = std::iter::once(first).chain(inbox.try_iter()).collect();
        let flushed = flush_wal(database, &log);
        if let Err(error) = &flushed {
            tracing::warn!(%error, "what was stored may not survive a loss of power");
        }
        for done in waiting.into_iter().flatten() {
            done(flushed.as_ref().copied().map_err(|error| super::from_io(database, error)));
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
    // The name of a new log is in its folder.
    match database.parent() {
        Some(folder) => File::open(folder)?.sync_data(),
        None => Ok(()),
    }
}
