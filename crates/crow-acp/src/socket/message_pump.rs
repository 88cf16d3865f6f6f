//! Carries messages between a WebSocket and the queues of its lines, and detects a dead peer.
//!
//! Both directions have backpressure: a full queue stops reading from the network, and a blocked network stops
//! reading from the queue.

use std::{
    fmt, io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{
    Sink, SinkExt, Stream, StreamExt,
    stream::{SplitSink, SplitStream},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval_at, sleep, timeout},
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Bytes, Error, Message,
        error::ProtocolError,
        protocol::{CloseFrame, frame::coding::CloseCode},
    },
};
use tokio_util::sync::CancellationToken;

use super::{
    close_reason::{CloseReason, close_frame},
    limits::CLOSE_TIMEOUT,
    queue::{LineReceiver, LineSender, QUEUED_LINES_MAX, SocketQueues},
};

/// Consecutive unanswered pings before the peer is considered dead.
pub(super) const SILENT_PINGS_MAX: u32 = 3;

/// The time for the last lines of our side to leave after our side has ended.
pub(super) const FLUSH_TIMEOUT: Duration = Duration::from_secs(10);

/// The same when everything shuts down.
pub(super) const SHUTDOWN_FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The connection ended without a close frame.
pub(super) const ABRUPT_END: &str = "the other side disconnected without closing the connection";

/// The answer to a binary frame that is not text.
const BINARY_FRAME_ERROR: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error","data":{"kind":"protocol","details":"Messages are text; a binary frame that holds none was not read."}}}"#;

/// A stream that counts the bytes that show that the peer lives: a large message does long before it is complete. These
/// are those that it sent, and those that fit after it had received what filled the connection.
#[derive(Debug)]
pub(super) struct CountingStream<S> {
    inner: S,
    n_alive: Arc<AtomicU64>,
    /// Whether the connection was full at the last write.
    is_full: bool,
}

impl<S> CountingStream<S> {
    pub(super) fn new(inner: S) -> Self {
        Self { inner, n_alive: Arc::default(), is_full: false }
    }

    /// The number of these bytes.
    pub(super) fn alive_counter(&self) -> Arc<AtomicU64> {
        self.n_alive.clone()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CountingStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let n_filled_before = buf.filled().len();
        let poll = Pin::new(&mut self.inner).poll_read(cx, buf);
        self.n_alive.fetch_add((buf.filled().len() - n_filled_before) as u64, Ordering::Relaxed);
        poll
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CountingStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.inner).poll_write(cx, bytes);
        if let Poll::Ready(Ok(n_written)) = &poll
            && self.is_full
        {
            self.n_alive.fetch_add(*n_written as u64, Ordering::Relaxed);
        }
        self.is_full = poll.is_pending();
        poll
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// The reason for the end of a connection.
enum ConnectionEnd {
    /// Our side has sent everything.
    LocalEnd,
    /// Our side is gone, and its last lines are not being read.
    OutputAbandoned,
    /// The other side sent a close frame.
    RemoteClosed(Option<CloseFrame>),
    /// The other side violated the protocol.
    Violation(CloseCode, &'static str),
    /// The connection broke.
    Broken(String),
}

impl ConnectionEnd {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the rest is one to us")]
    fn from_socket_error(error: &Error) -> Self {
        match error {
            Error::Capacity(_) => Self::Violation(CloseCode::Size, "a message is larger than 64 MiB"),
            Error::Utf8(_) => Self::Violation(CloseCode::Invalid, "a text frame is not UTF-8"),
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
                Self::Broken(ABRUPT_END.to_owned())
            }
            Error::Protocol(_) => {
                Self::Violation(CloseCode::Protocol, "the other side violates the WebSocket protocol")
            }
            other => Self::Broken(other.to_string()),
        }
    }

    /// The error for our side if it did not end the connection itself.
    fn to_io_error(&self) -> Option<io::Error> {
        match self {
            Self::LocalEnd | Self::OutputAbandoned => None,
            Self::RemoteClosed(Some(CloseFrame { code: CloseCode::Normal, .. }) | None) => None,
            Self::RemoteClosed(Some(_)) | Self::Violation(..) | Self::Broken(_) => {
                Some(io::Error::other(self.to_string()))
            }
        }
    }
}

impl fmt::Display for ConnectionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LocalEnd => f.write_str("finished"),
            Self::OutputAbandoned => f.write_str("the last messages were not read"),
            Self::RemoteClosed(None) => f.write_str("the other side closed it"),
            Self::RemoteClosed(Some(CloseFrame { code, reason })) => {
                write!(f, "the other side closed it ({code}): {}", sanitize_reason(reason))
            }
            Self::Violation(_, reason) => f.write_str(reason),
            Self::Broken(reason) => f.write_str(reason),
        }
    }
}

/// The other side's text may be shown on a terminal.
pub(super) fn sanitize_reason(reason: &str) -> String {
    reason.chars().filter(|c| !c.is_control()).collect()
}

/// Carries messages until either side is done, then sends the close reason if it is our turn. After `cancel`, slow
/// readers are not awaited for long.
pub(super) async fn carry_messages<S: AsyncRead + AsyncWrite + Unpin>(
    socket: WebSocketStream<CountingStream<S>>,
    SocketQueues { incoming, mut outgoing }: SocketQueues,
    ping_interval: Duration,
    close_reason: impl Future<Output = CloseReason>,
    cancel: &CancellationToken,
) {
    let n_alive = socket.get_ref().alive_counter();
    let (mut sink, mut stream) = socket.split();
    let (error_sender, error_receiver) = mpsc::channel(1);
    let end = tokio::select! {
        end = receive_messages(&mut stream, &incoming, &error_sender, &n_alive, ping_interval) => end,
        end = send_messages(&mut sink, &mut outgoing, error_receiver, ping_interval) => end,
        () = wait_for_abandoned_queue(&incoming, cancel) => ConnectionEnd::OutputAbandoned,
    };
    drop(outgoing);
    tracing::info!(%end, "a connection ends");
    let mut incoming = Some(incoming);
    let frame = match &end {
        ConnectionEnd::LocalEnd | ConnectionEnd::OutputAbandoned => {
            // Our side may still receive, and nothing more comes.
            drop(incoming.take());
            Some(close_reason.await.to_close_frame())
        }
        ConnectionEnd::Violation(code, reason) => Some(close_frame(*code, reason, "")),
        ConnectionEnd::RemoteClosed(_) | ConnectionEnd::Broken(_) => None,
    };
    if !matches!(end, ConnectionEnd::Broken(_)) {
        // A peer that does not answer the close frame gets no more time.
        let _ = timeout(CLOSE_TIMEOUT, close_socket(&mut sink, &mut stream, frame)).await;
    }
    drop((sink, stream));
    if let (Some(incoming), Some(reason)) = (incoming, end.to_io_error()) {
        // Our side is gone as well, or receives it.
        let _ = incoming.send(Err(reason)).await;
    }
}

/// Waits until our side is gone, plus the time for its last lines to leave.
pub(super) async fn wait_for_abandoned_queue(incoming: &LineSender, cancel: &CancellationToken) {
    incoming.wait_closed().await;
    tokio::select! {
        () = sleep(FLUSH_TIMEOUT) => {}
        () = async { cancel.cancelled().await; sleep(SHUTDOWN_FLUSH_TIMEOUT).await } => {}
    }
}

/// Sends a close frame and waits for the other side's.
async fn close_socket<S: AsyncRead + AsyncWrite + Unpin>(
    sink: &mut SplitSink<WebSocketStream<CountingStream<S>>, Message>,
    stream: &mut SplitStream<WebSocketStream<CountingStream<S>>>,
    frame: Option<CloseFrame>,
) {
    if let Some(frame) = frame
        && let Err(error) = sink.send(Message::Close(Some(frame))).await
    {
        tracing::debug!(%error, "the other side disconnected without a close frame");
        return;
    }
    while let Some(Ok(_)) = stream.next().await {}
}

/// Receives messages, one per line. Time counts only while this waits for the network.
async fn receive_messages(
    stream: &mut (impl Stream<Item = Result<Message, Error>> + Unpin),
    incoming: &LineSender,
    error_sender: &mpsc::Sender<Message>,
    n_alive: &AtomicU64,
    ping_interval: Duration,
) -> ConnectionEnd {
    let mut n_silent = 0;
    loop {
        let n_before = n_alive.load(Ordering::Relaxed);
        let message = match timeout(ping_interval, stream.next()).await {
            Ok(Some(Ok(message))) => message,
            Ok(Some(Err(error))) => return ConnectionEnd::from_socket_error(&error),
            Ok(None) => return ConnectionEnd::Broken(ABRUPT_END.to_owned()),
            Err(_) => {
                let is_silent = n_alive.load(Ordering::Relaxed) == n_before;
                n_silent = if is_silent { n_silent + 1 } else { 0 };
                if n_silent == SILENT_PINGS_MAX {
                    return ConnectionEnd::Broken("the other side no longer answers".to_owned());
                }
                continue;
            }
        };
        n_silent = 0;
        let is_delivered = match message {
            Message::Text(text) if text.trim().is_empty() => true,
            Message::Text(text) => incoming.send(Ok(join_lines(&text))).await.is_ok(),
            // Some clients send text as binary frames.
            Message::Binary(bytes) => match std::str::from_utf8(&bytes) {
                Ok(text) if text.trim().is_empty() => true,
                Ok(text) => incoming.send(Ok(join_lines(text))).await.is_ok(),
                Err(_) => error_sender.send(Message::text(BINARY_FRAME_ERROR)).await.is_ok(),
            },
            Message::Close(frame) => return ConnectionEnd::RemoteClosed(frame),
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => true,
        };
        if !is_delivered {
            // Our side no longer receives; its remaining output decides the end.
            std::future::pending::<()>().await;
        }
    }
}

/// Line breaks are between the tokens of a message, never inside its strings.
pub(super) fn join_lines(text: &str) -> String {
    // Two searches for a byte are several times faster than one for either.
    if text.contains('\n') || text.contains('\r') { text.replace(['\n', '\r'], " ") } else { text.to_owned() }
}

/// Sends the lines of our side, and a ping at intervals.
async fn send_messages(
    sink: &mut (impl Sink<Message, Error = Error> + Unpin),
    outgoing: &mut LineReceiver,
    mut error_receiver: mpsc::Receiver<Message>,
    ping_interval: Duration,
) -> ConnectionEnd {
    let mut ping_timer = interval_at(Instant::now() + ping_interval, ping_interval);
    ping_timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let message = tokio::select! {
            line = outgoing.recv() => match line {
                Some(Ok(line)) => Message::text(line),
                Some(Err(_)) | None => return ConnectionEnd::LocalEnd,
            },
            Some(complaint) = error_receiver.recv() => complaint,
            _ = ping_timer.tick() => Message::Ping(Bytes::new()),
        };
        if let Err(error) = send_batch(sink, message, outgoing).await {
            return ConnectionEnd::from_socket_error(&error);
        }
    }
}

/// Sends a message together with those already queued: they share a packet.
async fn send_batch(
    sink: &mut (impl Sink<Message, Error = Error> + Unpin),
    message: Message,
    outgoing: &mut LineReceiver,
) -> Result<(), Error> {
    sink.feed(message).await?;
    for _ in 0..QUEUED_LINES_MAX {
        let Some(Ok(line)) = outgoing.try_recv() else { break };
        sink.feed(Message::text(line)).await?;
    }
    sink.flush().await
}
