//! Lines that wait on one side of a socket: bounded by their number and by their bytes, since one of them may be as
//! large as a thousand others.

use std::{io, sync::Arc};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::MESSAGE_BYTES_MAX;

/// Enough to fill a write, few enough to push back.
pub(super) const LINES_WAITING: usize = 64;

/// Bytes that may wait: one line of the largest size.
const BYTES_WAITING: usize = MESSAGE_BYTES_MAX;

/// Nobody takes lines any longer.
#[derive(Debug)]
pub(super) struct QueueClosed;

/// A line, or why no more come; its room is free again when it is taken.
struct QueuedLine {
    line: io::Result<String>,
    _room: OwnedSemaphorePermit,
}

/// Where lines go in.
#[derive(Clone)]
pub(super) struct LineSender {
    lines: mpsc::Sender<QueuedLine>,
    room: Arc<Semaphore>,
}

/// Where they come out.
pub(super) struct LineReceiver(mpsc::Receiver<QueuedLine>);

/// Makes an empty queue.
pub(super) fn line_queue() -> (LineSender, LineReceiver) {
    let (lines, waiting) = mpsc::channel(LINES_WAITING);
    (LineSender { lines, room: Arc::new(Semaphore::new(BYTES_WAITING)) }, LineReceiver(waiting))
}

impl LineSender {
    /// Waits for room.
    pub(super) async fn send(&self, line: io::Result<String>) -> Result<(), QueueClosed> {
        let n_bytes = line.as_ref().map_or(1, String::len).clamp(1, BYTES_WAITING);
        let n_bytes = u32::try_from(n_bytes).unwrap_or(u32::MAX);
        let room = self.room.clone().acquire_many_owned(n_bytes).await.map_err(|_| QueueClosed)?;
        self.lines.send(QueuedLine { line, _room: room }).await.map_err(|_| QueueClosed)
    }

    /// Waits until nobody takes lines any longer.
    pub(super) async fn wait_closed(&self) {
        self.lines.closed().await;
    }
}

impl LineReceiver {
    pub(super) async fn recv(&mut self) -> Option<io::Result<String>> {
        self.0.recv().await.map(|waiting| waiting.line)
    }

    /// Takes a line that is there already.
    pub(super) fn try_recv(&mut self) -> Option<io::Result<String>> {
        self.0.try_recv().ok().map(|waiting| waiting.line)
    }
}
