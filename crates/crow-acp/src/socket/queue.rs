//! Lines queued on one side of a socket: bounded by number and by bytes, because one line may be as large as a
//! thousand others.

use std::{io, sync::Arc};

use futures_util::{StreamExt, sink, stream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::limits::MESSAGE_BYTES_MAX;
use crate::transport::LineTransport;

/// Enough to fill a write, few enough to push back.
pub(super) const QUEUED_LINES_MAX: usize = 64;

/// The bytes that may be queued: one line of the maximum size.
const QUEUED_BYTES_MAX: usize = MESSAGE_BYTES_MAX;

/// The receiver is gone.
#[derive(Debug)]
pub(super) struct QueueClosed;

/// A line, or the reason why no more come; its space is free again once it is taken.
struct QueuedLine {
    line: io::Result<String>,
    _permit: OwnedSemaphorePermit,
}

/// The sending end.
#[derive(Clone)]
pub(super) struct LineSender {
    lines: mpsc::Sender<QueuedLine>,
    byte_permits: Arc<Semaphore>,
}

/// The receiving end.
pub(super) struct LineReceiver(mpsc::Receiver<QueuedLine>);

/// The ends of a transport's queues that a socket fills and empties.
pub(super) struct SocketQueues {
    /// From the network to our side.
    pub(super) incoming: LineSender,
    /// From our side to the network.
    pub(super) outgoing: LineReceiver,
}

/// Creates a transport and the queues behind it.
pub(super) fn queued_transport() -> (LineTransport, SocketQueues) {
    let (incoming_sender, incoming_receiver) = line_queue(byte_budget());
    let (outgoing_sender, outgoing_receiver) = line_queue(byte_budget());
    let outgoing = sink::unfold(outgoing_sender, |outgoing_sender, line: String| async move {
        match outgoing_sender.send(Ok(line)).await {
            Ok(()) => Ok(outgoing_sender),
            Err(_) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    });
    let incoming = stream::unfold(incoming_receiver, |mut incoming_receiver| async move {
        incoming_receiver.recv().await.map(|line| (line, incoming_receiver))
    });
    let transport = LineTransport { outgoing: Box::pin(outgoing), incoming: incoming.boxed() };
    (transport, SocketQueues { incoming: incoming_sender, outgoing: outgoing_receiver })
}

/// Returns the space of queues that share it.
pub(super) fn byte_budget() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(QUEUED_BYTES_MAX))
}

/// Creates an empty queue.
pub(super) fn line_queue(byte_permits: Arc<Semaphore>) -> (LineSender, LineReceiver) {
    let (lines, receiver) = mpsc::channel(QUEUED_LINES_MAX);
    (LineSender { lines, byte_permits }, LineReceiver(receiver))
}

impl LineSender {
    /// Waits for space.
    pub(super) async fn send(&self, line: io::Result<String>) -> Result<(), QueueClosed> {
        let n_bytes = line.as_ref().map_or(1, String::len).clamp(1, QUEUED_BYTES_MAX);
        let n_bytes = u32::try_from(n_bytes).unwrap_or(u32::MAX);
        let permit = self.byte_permits.clone().acquire_many_owned(n_bytes).await.map_err(|_| QueueClosed)?;
        self.lines.send(QueuedLine { line, _permit: permit }).await.map_err(|_| QueueClosed)
    }

    /// Waits until the receiver is gone.
    pub(super) async fn wait_closed(&self) {
        self.lines.closed().await;
    }
}

impl LineReceiver {
    pub(super) async fn recv(&mut self) -> Option<io::Result<String>> {
        self.0.recv().await.map(|queued| queued.line)
    }

    /// Takes a line that is already queued.
    pub(super) fn try_recv(&mut self) -> Option<io::Result<String>> {
        self.0.try_recv().ok().map(|queued| queued.line)
    }
}
