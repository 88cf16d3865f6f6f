//! The flow of the answers: a test can stop them, and can be told when they have reached a point.

use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;

/// The flow of the answers of one server.
#[derive(Debug)]
pub(crate) struct AnswerFlow {
    /// Each permit continues one `hold`.
    pub(crate) releases: Semaphore,
    progress: Mutex<SendProgress>,
}

#[derive(Debug, Default)]
struct SendProgress {
    n_bytes_sent: u64,
    /// The number of bytes that a test waits for.
    awaited: Option<(u64, SyncSender<()>)>,
}

impl Default for AnswerFlow {
    fn default() -> Self {
        Self { releases: Semaphore::new(0), progress: Mutex::default() }
    }
}

impl AnswerFlow {
    pub(crate) fn notify_after(&self, n_bytes: u64, sender: SyncSender<()>) {
        self.lock().awaited = Some((n_bytes, sender));
        self.add_sent(0);
    }

    /// Counts sent bytes, and notifies the test that waits for them.
    pub(crate) fn add_sent(&self, n_bytes: usize) {
        let mut progress = self.lock();
        progress.n_bytes_sent += n_bytes as u64;
        let n_bytes_sent = progress.n_bytes_sent;
        if let Some((_, sender)) = progress.awaited.take_if(|(n_awaited, _)| *n_awaited <= n_bytes_sent) {
            // Fails only if the test has stopped waiting.
            let _ = sender.try_send(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, SendProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
