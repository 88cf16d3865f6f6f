//! Carries messages between a WebSocket and the queues of its lines, and finds out when the other side is gone.
//!
//! Both ways push back: what is not taken from a queue is not read from the network, and what the network does not
//! take is not taken from the queue.

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
    GOODBYE,
    farewell::{CloseReason, close_frame},
    queue::{LINES_WAITING, LineReceiver, LineSender},
};

/// Pings in a row after which whoever says nothing at all is gone.
const SILENT_PINGS_MAX: u32 = 3;

/// How long what our side said last may take to leave when our side has gone.
const LAST_LINES: Duration = Duration::from_secs(10);

/// How long it may take when everything ends.
const CUT_LINES: Duration = Duration::from_secs(1);

/// A connection that ended as no conversation does.
const NO_WORD: &str = "the other side is gone without a word";

/// What a frame of bytes that are no text is answered with.
const NO_TEXT: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error","data":{"kind":"protocol","details":"Messages are text; a binary frame that holds none was not read."}}}"#;

/// A stream that counts what was read of it: a large message is a sign of life long before it is whole.
#[derive(Debug)]
pub(super) struct CountingStream<S> {
    inner: S,
    n_read: Arc<AtomicU64>,
}

impl<S> CountingStream<S> {
    pub(super) fn new(inner: S) -> Self {
        Self { inner, n_read: Arc::default() }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CountingStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let n_before = into.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(cx, into);
        self.n_read.fetch_add((into.filled().len() - n_before) as u64, Ordering::Relaxed);
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CountingStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// How a connection came to its end.
enum ConnectionEnd {
    /// Our side has said all it had to say.
    Ours,
    /// Our side is gone, and what it said last is not taken.
    Unheard,
    /// The other side said goodbye.
    Theirs(Option<CloseFrame>),
    /// The other side broke the rules.
    Against(CloseCode, &'static str),
    /// The connection is gone.
    Broken(String),
}

impl ConnectionEnd {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the rest is one to us")]
    fn from_socket_error(error: &Error) -> Self {
        match error {
            Error::Capacity(_) => Self::Against(CloseCode::Size, "a message is larger than 64 MiB"),
            Error::Utf8(_) => Self::Against(CloseCode::Invalid, "a text frame is not UTF-8"),
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => Self::Broken(NO_WORD.to_owned()),
            Error::Protocol(_) => Self::Against(CloseCode::Protocol, "that is not how WebSockets are spoken"),
            other => Self::Broken(other.to_string()),
        }
    }

    /// What our side is told when it did not end this itself.
    fn to_io_error(&self) -> Option<io::Error> {
        match self {
            Self::Ours | Self::Unheard => None,
            Self::Theirs(Some(CloseFrame { code: CloseCode::Normal, .. }) | None) => None,
            Self::Theirs(Some(_)) | Self::Against(..) | Self::Broken(_) => {
                Some(io::Error::other(self.to_string()))
            }
        }
    }
}

impl fmt::Display for ConnectionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours => f.write_str("all was said here"),
            Self::Unheard => f.write_str("what was said last was not taken there"),
            Self::Theirs(None) => f.write_str("the other side closed it"),
            Self::Theirs(Some(CloseFrame { code, reason })) => {
                write!(f, "the other side closed it ({code}): {}", sanitize_reason(reason))
            }
            Self::Against(_, why) => f.write_str(why),
            Self::Broken(why) => f.write_str(why),
        }
    }
}

/// The other side's words may come to stand on a terminal.
fn sanitize_reason(reason: &str) -> String {
    reason.chars().filter(|c| !c.is_control()).collect()
}

/// Carries messages until either side is done, then says `farewell` if it is ours to say. After `cut` nobody waits long
/// for a reader.
pub(super) async fn carry_messages<S: AsyncRead + AsyncWrite + Unpin>(
    socket: WebSocketStream<CountingStream<S>>,
    (heard, mut said): (LineSender, LineReceiver),
    ping: Duration,
    farewell: impl Future<Output = CloseReason>,
    cut: &CancellationToken,
) {
    let n_read = socket.get_ref().n_read.clone();
    let (mut sink, mut stream) = socket.split();
    let (complain, complaints) = mpsc::channel(1);
    let end = tokio::select! {
        end = receive_messages(&mut stream, (&heard, &complain), &n_read, ping) => end,
        end = send_messages(&mut sink, &mut said, complaints, ping) => end,
        () = wait_for_abandoned_queue(&heard, cut) => ConnectionEnd::Unheard,
    };
    drop(said);
    tracing::info!(%end, "a connection ends");
    let mut heard = Some(heard);
    let last = match &end {
        ConnectionEnd::Ours | ConnectionEnd::Unheard => {
            // Our side may still listen, and nothing more comes.
            drop(heard.take());
            Some(farewell.await.to_close_frame())
        }
        ConnectionEnd::Against(code, why) => Some(close_frame(*code, why, "")),
        ConnectionEnd::Theirs(_) | ConnectionEnd::Broken(_) => None,
    };
    if !matches!(end, ConnectionEnd::Broken(_)) {
        // Whoever does not take part in the goodbye has no claim to more of it.
        let _ = timeout(GOODBYE, close_socket(&mut sink, &mut stream, last)).await;
    }
    drop((sink, stream));
    if let (Some(heard), Some(why)) = (heard, end.to_io_error()) {
        // Our side is gone as well, or hears it.
        let _ = heard.send(Err(why)).await;
    }
}

/// Waits until our side is gone, and as long as what it said last may take to leave.
async fn wait_for_abandoned_queue(heard: &LineSender, cut: &CancellationToken) {
    heard.wait_closed().await;
    tokio::select! {
        () = sleep(LAST_LINES) => {}
        () = async { cut.cancelled().await; sleep(CUT_LINES).await } => {}
    }
}

/// Says goodbye and waits for the other side's.
async fn close_socket<S: AsyncRead + AsyncWrite + Unpin>(
    sink: &mut SplitSink<WebSocketStream<CountingStream<S>>, Message>,
    stream: &mut SplitStream<WebSocketStream<CountingStream<S>>>,
    last: Option<CloseFrame>,
) {
    if let Some(last) = last
        && let Err(error) = sink.send(Message::Close(Some(last))).await
    {
        tracing::debug!(%error, "the other side is gone without a goodbye");
        return;
    }
    while let Some(Ok(_)) = stream.next().await {}
}

/// Takes in what comes, one message a line. Time counts only while this waits for the network.
async fn receive_messages(
    stream: &mut (impl Stream<Item = Result<Message, Error>> + Unpin),
    (heard, complain): (&LineSender, &mpsc::Sender<Message>),
    n_read: &AtomicU64,
    ping: Duration,
) -> ConnectionEnd {
    let mut n_silent = 0;
    loop {
        let n_before = n_read.load(Ordering::Relaxed);
        let message = match timeout(ping, stream.next()).await {
            Ok(Some(Ok(message))) => message,
            Ok(Some(Err(error))) => return ConnectionEnd::from_socket_error(&error),
            Ok(None) => return ConnectionEnd::Broken(NO_WORD.to_owned()),
            Err(_) => {
                let is_silent = n_read.load(Ordering::Relaxed) == n_before;
                n_silent = if is_silent { n_silent + 1 } else { 0 };
                if n_silent == SILENT_PINGS_MAX {
                    return ConnectionEnd::Broken("the other side does not answer any longer".to_owned());
                }
                continue;
            }
        };
        n_silent = 0;
        let is_taken = match message {
            Message::Text(text) if text.trim().is_empty() => true,
            Message::Text(text) => heard.send(Ok(join_lines(&text))).await.is_ok(),
            // Some clients send the same text as bytes.
            Message::Binary(bytes) => match std::str::from_utf8(&bytes) {
                Ok(text) if text.trim().is_empty() => true,
                Ok(text) => heard.send(Ok(join_lines(text))).await.is_ok(),
                Err(_) => complain.send(Message::text(NO_TEXT)).await.is_ok(),
            },
            Message::Close(frame) => return ConnectionEnd::Theirs(frame),
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => true,
        };
        if !is_taken {
            // Our side listens no longer; what it still has to say decides the end.
            std::future::pending::<()>().await;
        }
    }
}

/// Line ends stand between the tokens of a message, never inside its texts.
fn join_lines(text: &str) -> String {
    if text.contains(['\n', '\r']) { text.replace(['\n', '\r'], " ") } else { text.to_owned() }
}

/// Sends what our side says, and a ping now and then.
async fn send_messages(
    sink: &mut (impl Sink<Message, Error = Error> + Unpin),
    said: &mut LineReceiver,
    mut complaints: mpsc::Receiver<Message>,
    ping: Duration,
) -> ConnectionEnd {
    let mut pings = interval_at(Instant::now() + ping, ping);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let message = tokio::select! {
            line = said.recv() => match line {
                Some(Ok(line)) => Message::text(line),
                Some(Err(_)) | None => return ConnectionEnd::Ours,
            },
            Some(complaint) = complaints.recv() => complaint,
            _ = pings.tick() => Message::Ping(Bytes::new()),
        };
        if let Err(error) = send_batch(sink, message, said).await {
            return ConnectionEnd::from_socket_error(&error);
        }
    }
}

/// Sends a message, and with it those that wait already: they share a packet.
async fn send_batch(
    sink: &mut (impl Sink<Message, Error = Error> + Unpin),
    message: Message,
    said: &mut LineReceiver,
) -> Result<(), Error> {
    sink.feed(message).await?;
    for _ in 0..LINES_WAITING {
        let Some(Ok(line)) = said.try_recv() else { break };
        sink.feed(Message::text(line)).await?;
    }
    sink.flush().await
}
