//! What a program says, with a word after each message that is longer than anybody takes.
//!
//! The SDK drops such a message, and whoever waits for it would wait in vain. So the answer that it was is followed
//! by a refusal of the same request. Before there is a connection it is the end: there is nothing else to wait for.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};

use serde_json::{Value, json};
use tokio::io::{AsyncRead, ReadBuf};

/// The longest message the SDK takes.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Where an answer has its id, if it is to be found at all.
const HEAD_BYTES: usize = 256;

/// Bytes read at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// How the shaking of hands goes, for whoever waits for it and for who hears the program.
#[derive(Debug, Clone, Default)]
pub(super) struct Handshake(Arc<Marks>);

#[derive(Debug, Default)]
struct Marks {
    is_over: AtomicBool,
    was_overlong: AtomicBool,
}

impl Handshake {
    /// It worked: what is too long from here on is one message among others.
    pub(super) fn over(&self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }

    /// Says why it failed, when a message that was too long is why.
    pub(super) fn overlong(&self) -> Option<String> {
        self.0.was_overlong.load(Ordering::Relaxed).then(too_long)
    }
}

/// A program's stdout.
pub(super) struct Overlong<R> {
    inner: R,
    chunk: Box<[u8]>,
    /// What of the chunk is not handed on yet.
    filled: std::ops::Range<usize>,
    /// The beginning of the line.
    head: Vec<u8>,
    n_line_bytes: usize,
    /// A line of our own that comes next.
    refusal: Vec<u8>,
    handshake: Handshake,
}

impl<R> Overlong<R> {
    pub(super) fn new(inner: R, handshake: Handshake) -> Self {
        Self {
            inner,
            chunk: vec![0; CHUNK_BYTES].into_boxed_slice(),
            filled: 0..0,
            head: Vec::with_capacity(HEAD_BYTES),
            n_line_bytes: 0,
            refusal: Vec::new(),
            handshake,
        }
    }

    /// Tells whether all is over because a line was too long before there is a connection.
    fn is_cut(&self) -> bool {
        let marks = &self.handshake.0;
        let is_overlong = self.n_line_bytes > LINE_BYTES_MAX && !marks.is_over.load(Ordering::Relaxed);
        marks.was_overlong.fetch_or(is_overlong, Ordering::Relaxed) || is_overlong
    }

    /// Hands on what is there, up to the end of a line that was too long.
    fn hand_on(&mut self, out: &mut ReadBuf<'_>) {
        let ready = &self.chunk[self.filled.clone()];
        let mut n_bytes = 0;
        for &byte in ready.iter().take(out.remaining()) {
            n_bytes += 1;
            if byte != b'\n' {
                self.n_line_bytes += 1;
                if self.head.len() < HEAD_BYTES {
                    self.head.push(byte);
                }
                continue;
            }
            let is_overlong = self.n_line_bytes > LINE_BYTES_MAX;
            self.n_line_bytes = 0;
            let head = std::mem::take(&mut self.head);
            if is_overlong {
                self.refusal = refusal(&head).unwrap_or_default();
                break;
            }
        }
        out.put_slice(&ready[..n_bytes]);
        self.filled.start += n_bytes;
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Overlong<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.is_cut() {
            return Poll::Ready(Ok(()));
        }
        if !this.refusal.is_empty() {
            let n_bytes = this.refusal.len().min(out.remaining());
            out.put_slice(&this.refusal[..n_bytes]);
            this.refusal.drain(..n_bytes);
            return Poll::Ready(Ok(()));
        }
        if this.filled.is_empty() {
            let mut chunk = ReadBuf::new(&mut this.chunk);
            ready!(Pin::new(&mut this.inner).poll_read(cx, &mut chunk))?;
            this.filled = 0..chunk.filled().len();
        }
        this.hand_on(out);
        Poll::Ready(Ok(()))
    }
}

/// Refuses the request that a message answers, as far as its beginning tells which.
fn refusal(head: &[u8]) -> Option<Vec<u8>> {
    let head = String::from_utf8_lossy(head);
    let before_result = head.split("\"result\"").next()?;
    let (_, id) = before_result.split_once("\"id\"")?;
    let id = id.trim_start().strip_prefix(':')?.trim_start();
    let id: Value = serde_json::Deserializer::from_str(id).into_iter().next()?.ok()?;
    let refusal = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": too_long()}});
    Some(format!("{refusal}\n").into_bytes())
}

fn too_long() -> String {
    format!("its answer is longer than {} MB", LINE_BYTES_MAX / 1024 / 1024)
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[track_caller]
    fn check(head: &str, expected: Option<&str>) {
        let id = refusal(head.as_bytes()).map(|line| {
            let line: Value = serde_json::from_slice(&line).unwrap();
            line["id"].to_string()
        });
        assert_eq!(id.as_deref(), expected, "{head}");
    }

    #[test]
    fn whose_answer_it_was() {
        check(r#"{"jsonrpc":"2.0","id":17,"result":{"content":[{"ty"#, Some("17"));
        check(r#"{"id" : "a b", "jsonrpc":"2.0","result":{"#, Some("\"a b\""));
        check(r#"{"jsonrpc":"2.0","result":{"id":3,"#, None);
        check("vvvvvvvvvvvv", None);
        check("", None);
    }

    #[tokio::test]
    async fn everything_else_passes() {
        let long = format!("{{\"id\":4,\"result\":\"{}\"}}", "v".repeat(LINE_BYTES_MAX));
        let said = format!("one\n\n{long}\ntwo\nthree");
        let mut heard = String::new();
        let handshake = Handshake::default();
        handshake.over();
        Overlong::new(said.as_bytes(), handshake).read_to_string(&mut heard).await.unwrap();
        let (before, after) = heard.split_once(&long).unwrap();
        let refusal =
            r#"{"jsonrpc":"2.0","id":4,"error":{"code":-32603,"message":"its answer is longer than 16 MB"}}"#;
        assert_eq!((before, after), ("one\n\n", format!("\n{refusal}\ntwo\nthree").as_str()));
    }

    #[tokio::test]
    async fn no_handshake_is_endless() {
        let handshake = Handshake::default();
        let mut heard = Vec::new();
        Overlong::new(tokio::io::repeat(b'v'), handshake.clone()).read_to_end(&mut heard).await.unwrap();
        assert_eq!(handshake.overlong().as_deref(), Some("its answer is longer than 16 MB"));
        assert!(heard.len() < LINE_BYTES_MAX + 2 * CHUNK_BYTES, "{}", heard.len());
    }
}
