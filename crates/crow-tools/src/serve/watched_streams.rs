//! Streams to a client that show whether it still writes and reads.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::watch,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// Time without progress after which a client that should leave is considered to read no more.
const STALL_MAX: Duration = Duration::from_secs(3);

/// Reads from a client and signals when the client closes its side.
pub(super) struct EofSignalReader<R> {
    pub(super) inner: R,
    pub(super) closed: CancellationToken,
}

impl<R: AsyncRead + Unpin> AsyncRead for EofSignalReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let n_before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(cx, buffer);
        if let Poll::Ready(Ok(())) = polled
            && buffer.filled().len() == n_before
        {
            self.closed.cancel();
        }
        polled
    }
}

/// The writes to a client.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WriteProgress {
    n_done: u64,
    is_blocked: bool,
}

/// Writes to a client and signals its progress.
pub(super) struct ProgressWriter<W> {
    pub(super) inner: W,
    pub(super) progress: watch::Sender<WriteProgress>,
}

impl<W> ProgressWriter<W> {
    fn signal<T>(&self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.progress.send_modify(|progress| {
            progress.is_blocked = polled.is_pending();
            progress.n_done += u64::from(polled.is_ready());
        });
        polled
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for ProgressWriter<W> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.signal(polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_flush(cx);
        self.signal(polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// Waits until a write was blocked for a while.
pub(super) async fn wait_for_stall(mut progress: watch::Receiver<WriteProgress>) {
    loop {
        let Ok(blocked) = progress.wait_for(|progress| progress.is_blocked).await.map(|blocked| *blocked)
        else {
            // The writer is gone, and the server ends by itself.
            return std::future::pending().await;
        };
        let moved = progress.wait_for(|progress| progress.n_done > blocked.n_done);
        if timeout(STALL_MAX, moved).await.is_err() {
            return;
        }
    }
}
