//! Reads a program's stdout without messages that the SDK cannot parse. During the handshake such a message is fatal,
//! since no other message is expected.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, ReadBuf};

use super::message_filter::MessageFilter;

/// Bytes read at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// State of the handshake, shared by the reader and the code that waits for the handshake.
#[derive(Debug, Clone, Default)]
pub(super) struct McpHandshakeState(Arc<McpHandshakeMarks>);

#[derive(Debug, Default)]
struct McpHandshakeMarks {
    is_complete: OnceLock<()>,
    fault: Mutex<Option<String>>,
}

impl McpHandshakeState {
    /// Marks the handshake as complete: an unreadable message is no longer fatal.
    pub(super) fn mark_complete(&self) {
        self.0.is_complete.get_or_init(|| ());
    }

    /// Returns the unreadable message's fault, if it made the handshake fail.
    pub(super) fn fault(&self) -> Option<String> {
        self.0.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn record_fault(&self, reason: &str) {
        *self.0.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.to_owned());
    }
}

pub(super) struct FilteredReader<R> {
    inner: R,
    chunk: Box<[u8]>,
    filter: MessageFilter,
    /// Filtered bytes, of which `n_delivered` were read.
    output: Vec<u8>,
    n_delivered: usize,
    handshake: McpHandshakeState,
}

impl<R> FilteredReader<R> {
    pub(super) fn new(inner: R, handshake: McpHandshakeState) -> Self {
        let chunk = vec![0; CHUNK_BYTES].into_boxed_slice();
        let (filter, output) = (MessageFilter::default(), Vec::new());
        Self { inner, chunk, filter, output, n_delivered: 0, handshake }
    }

    /// Whether the stream has ended.
    fn is_ended(&self) -> bool {
        let is_complete = self.handshake.0.is_complete.get().is_some();
        let reason = self.filter.end_reason().or_else(|| self.filter.last_fault().filter(|_| !is_complete));
        if let (Some(reason), false) = (reason, is_complete) {
            self.handshake.record_fault(reason);
        }
        reason.is_some()
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for FilteredReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            if this.is_ended() {
                return Poll::Ready(Ok(()));
            }
            let ready = &this.output[this.n_delivered..];
            if !ready.is_empty() {
                let n_bytes = ready.len().min(buffer.remaining());
                buffer.put_slice(&ready[..n_bytes]);
                this.n_delivered += n_bytes;
                return Poll::Ready(Ok(()));
            }
            (this.output, this.n_delivered) = (Vec::new(), 0);
            let mut chunk = ReadBuf::new(&mut this.chunk);
            ready!(Pin::new(&mut this.inner).poll_read(cx, &mut chunk))?;
            match chunk.filled() {
                // An incomplete last line is dropped.
                [] => return Poll::Ready(Ok(())),
                bytes => this.filter.feed(bytes, &mut this.output),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn fault_after_the_handshake_is_an_error_response() {
        let deep = format!("{{\"id\":4,\"result\":{}", "[".repeat(1000));
        let input = format!("one\n\n{deep}\ntwo\n");
        let mut output = String::new();
        let handshake = McpHandshakeState::default();
        handshake.mark_complete();
        FilteredReader::new(input.as_bytes(), handshake).read_to_string(&mut output).await.unwrap();
        let reason = "its answer is nested more than 120 levels deep";
        let refusal = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":4,\"error\":{{\"code\":-32603,\"message\":\"{reason}\"}}}}"
        );
        assert_eq!(output, format!("one\n\n{refusal}\ntwo\n"));
    }

    #[tokio::test]
    async fn endless_message_ends_the_handshake() {
        let handshake = McpHandshakeState::default();
        let mut output = Vec::new();
        FilteredReader::new(tokio::io::repeat(b'v'), handshake.clone())
            .read_to_end(&mut output)
            .await
            .unwrap();
        assert_eq!(handshake.fault().as_deref(), Some("its answer is longer than 16 MB"));
        assert_eq!(output.len(), 0);
    }
}
