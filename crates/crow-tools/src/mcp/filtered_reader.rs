//! What a program says, without what nobody could read of it. Before there is a connection such a message is the end:
//! there is nothing else to wait for.

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

/// How the shaking of hands goes, for whoever waits for it and for who hears the program.
#[derive(Debug, Clone, Default)]
pub(super) struct McpHandshakeState(Arc<McpHandshakeMarks>);

#[derive(Debug, Default)]
struct McpHandshakeMarks {
    is_complete: OnceLock<()>,
    fault: Mutex<Option<String>>,
}

impl McpHandshakeState {
    /// It worked: what cannot be read from here on is one message among others.
    pub(super) fn mark_complete(&self) {
        self.0.is_complete.get_or_init(|| ());
    }

    /// Says why it failed, when a message that cannot be read is why.
    pub(super) fn fault(&self) -> Option<String> {
        self.0.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn record_fault(&self, reason: &str) {
        *self.0.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.to_owned());
    }
}

/// A program's stdout.
pub(super) struct FilteredReader<R> {
    inner: R,
    chunk: Box<[u8]>,
    filter: MessageFilter,
    /// What passed the filter, and how much of it is handed on.
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

    /// Whether nothing more is to be heard.
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
                // What was said without an end is not said.
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
    async fn after_the_handshake_a_fault_is_one_answer_among_others() {
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
    async fn no_handshake_is_endless() {
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
