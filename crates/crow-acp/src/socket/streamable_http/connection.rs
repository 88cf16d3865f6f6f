//! A client's connection over many requests: one agent, from `initialize` until the client leaves or the agent ends.

use std::{
    fmt, io,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, oneshot, watch},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    super::{
        close_reason::CloseReason,
        message_pump::{FLUSH_TIMEOUT, SHUTDOWN_FLUSH_TIMEOUT, SILENT_PINGS_MAX, wait_for_abandoned_queue},
        queue::{LineReceiver, LineSender, SocketQueues},
    },
    message_head::MessageHead,
    outgoing_streams::{LineTarget, OutgoingStreams},
};

/// The times of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct HttpTiming {
    /// Between two signs of life on a silent stream.
    pub(super) ping_interval: Duration,
    /// A client without any request for this long is gone. A stream that a proxy ended is opened again sooner.
    pub(super) absence_max: Duration,
}

/// A client's connection.
pub(super) struct HttpConnection {
    /// `None` once it has ended.
    incoming: Mutex<Option<LineSender>>,
    /// Bodies are read one at a time, in the order of the requests.
    pub(super) body_turn: tokio::sync::Mutex<()>,
    streams: Mutex<OutgoingStreams>,
    /// The number of requests.
    presence: watch::Sender<usize>,
    /// Pieces that the network took.
    n_pieces: AtomicU64,
    close_reason: OnceLock<CloseReason>,
    /// The client ends it.
    pub(super) closed: CancellationToken,
}

/// The other ends of a connection.
pub(super) struct AgentSide<F> {
    pub(super) outgoing: LineReceiver,
    pub(super) serving: F,
    /// Its place among the clients.
    pub(super) _slot: OwnedSemaphorePermit,
}

/// Counts a request of the client while it lives.
pub(super) struct PresenceGuard(Arc<HttpConnection>);

impl Drop for PresenceGuard {
    fn drop(&mut self) {
        self.0.presence.send_modify(|n_requests| *n_requests -= 1);
    }
}

/// The reason for the end of a connection.
enum HttpConnectionEnd {
    AgentEnded,
    ClientLeft,
    ClientLost(&'static str),
}

impl fmt::Display for HttpConnectionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AgentEnded => "finished",
            Self::ClientLeft => "the client closed it",
            Self::ClientLost(reason) => reason,
        })
    }
}

impl HttpConnection {
    /// Creates a connection, and the queue of what the agent sends.
    pub(super) fn new(
        queues: SocketQueues,
        initialize_id: String,
        answer: oneshot::Sender<String>,
    ) -> (Arc<Self>, LineReceiver) {
        let SocketQueues { incoming, outgoing } = queues;
        let connection = Self {
            incoming: Mutex::new(Some(incoming)),
            body_turn: tokio::sync::Mutex::default(),
            streams: Mutex::new(OutgoingStreams::new(initialize_id, answer)),
            presence: watch::Sender::new(0),
            n_pieces: AtomicU64::new(0),
            close_reason: OnceLock::new(),
            closed: CancellationToken::new(),
        };
        (Arc::new(connection), outgoing)
    }

    pub(super) fn streams(&self) -> MutexGuard<'_, OutgoingStreams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn incoming(&self) -> MutexGuard<'_, Option<LineSender>> {
        self.incoming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn close_reason(&self) -> Option<&CloseReason> {
        self.close_reason.get()
    }

    pub(super) fn count_progress(&self) {
        self.n_pieces.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn register_request(self: &Arc<Self>) -> PresenceGuard {
        self.presence.send_modify(|n_requests| *n_requests += 1);
        PresenceGuard(self.clone())
    }

    /// Passes a message to the agent, once there is space; false if the connection has ended.
    pub(super) async fn deliver(&self, line: String, head: &MessageHead) -> bool {
        let Some(incoming) = self.incoming().clone() else { return false };
        self.streams().record_request(head);
        tokio::select! {
            sent = incoming.send(Ok(line)) => sent.is_ok(),
            () = self.closed.cancelled() => false,
        }
    }

    /// Carries the agent's lines until either side ends, then lets the streams end with the reason.
    pub(super) async fn run<F>(&self, agent: AgentSide<F>, timing: HttpTiming, cancel: &CancellationToken)
    where
        F: Future<Output = CloseReason> + Send + 'static,
    {
        let AgentSide { mut outgoing, serving, _slot } = agent;
        let serving = AbortOnDropHandle::new(tokio::spawn(serving));
        let incoming = self.incoming().clone();
        let abandoned = async {
            match &incoming {
                Some(incoming) => wait_for_abandoned_queue(incoming, cancel).await,
                None => std::future::pending().await,
            }
        };
        let end = tokio::select! {
            end = self.route_lines(&mut outgoing, timing.ping_interval) => end,
            () = self.closed.cancelled() => HttpConnectionEnd::ClientLeft,
            () = self.wait_for_absence(timing.absence_max) => {
                HttpConnectionEnd::ClientLost("the client has no open request")
            }
            () = abandoned => HttpConnectionEnd::AgentEnded,
        };
        tracing::info!(%end, "a connection ends");
        self.closed.cancel();
        drop((outgoing, incoming));
        let reason = self.end_agent(&end, serving).await;
        // Set once, here.
        let _ = self.close_reason.set(reason);
        self.streams().finish();
        tokio::select! {
            () = self.wait_until_unused() => {}
            () = sleep(FLUSH_TIMEOUT) => {}
            () = async { cancel.cancelled().await; sleep(SHUTDOWN_FLUSH_TIMEOUT).await } => {}
        }
        self.streams().drop_readers();
    }

    /// Ends the agent's input, and waits for the agent.
    async fn end_agent(
        &self,
        end: &HttpConnectionEnd,
        mut serving: AbortOnDropHandle<CloseReason>,
    ) -> CloseReason {
        let incoming = self.incoming().take();
        if let (Some(incoming), HttpConnectionEnd::ClientLost(reason)) = (&incoming, end) {
            tokio::select! {
                // Our side is gone as well, or receives it.
                _ = incoming.send(Err(io::Error::other(*reason))) => {}
                served = &mut serving => return served.unwrap_or(CloseReason::Normal),
            }
        }
        drop(incoming);
        match serving.await {
            Ok(reason) => reason,
            Err(error) => {
                tracing::error!(%error, "a connection ended with an internal error");
                CloseReason::Normal
            }
        }
    }

    /// Moves the agent's lines to their streams. A stream that is full stops all of them.
    async fn route_lines(&self, outgoing: &mut LineReceiver, ping_interval: Duration) -> HttpConnectionEnd {
        while let Some(Ok(line)) = outgoing.recv().await {
            let target = self.streams().target_line(line);
            let (lines, line) = match target {
                LineTarget::Queue(lines, line) => (lines, line),
                LineTarget::Delivered => continue,
                LineTarget::Finished => break,
            };
            let mut sending = std::pin::pin!(lines.send(Ok(line)));
            loop {
                let n_before = self.n_pieces.load(Ordering::Relaxed);
                match timeout(SILENT_PINGS_MAX * ping_interval, &mut sending).await {
                    // A queue lives as long as its connection.
                    Ok(_) => break,
                    Err(_) if self.n_pieces.load(Ordering::Relaxed) == n_before => {
                        return HttpConnectionEnd::ClientLost("the client no longer reads");
                    }
                    Err(_) => {}
                }
            }
        }
        HttpConnectionEnd::AgentEnded
    }

    async fn wait_for_absence(&self, absence_max: Duration) {
        let mut presence = self.presence.subscribe();
        loop {
            // The sender is in `self`.
            let _ = presence.wait_for(|n_requests| *n_requests == 0).await;
            if timeout(absence_max, presence.wait_for(|n_requests| *n_requests > 0)).await.is_err() {
                return;
            }
        }
    }

    async fn wait_until_unused(&self) {
        // The sender is in `self`.
        let _ = self.presence.subscribe().wait_for(|n_requests| *n_requests == 0).await;
    }
}
