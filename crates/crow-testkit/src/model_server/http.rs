//! The part of HTTP/1.1 that the server needs.

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The size of a read.
const READ_LEN: usize = 64 * 1024;

/// The size of a request; a bigger one is a mistake of the test.
const REQUEST_MAX: usize = 256 * 1024 * 1024;

/// A raw request.
#[derive(Debug)]
pub(crate) struct Request {
    /// Request line and headers.
    pub(crate) head: String,
    /// The body.
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// Method and path.
    pub(crate) fn target(&self) -> (&str, &str) {
        let method = self.head.split_whitespace().next().unwrap_or_default();
        (method, self.address().split('?').next().unwrap_or_default())
    }

    /// Path and query.
    pub(crate) fn address(&self) -> &str {
        self.head.split_whitespace().nth(1).unwrap_or_default()
    }
}

/// A client's connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> Self {
        // Each piece should arrive when it is sent; without it the test is only slower.
        let _ = stream.set_nodelay(true);
        Self { stream, unread: Vec::new() }
    }

    /// Reads the next request; `None` when the client has disconnected.
    pub(crate) async fn read_request(&mut self) -> io::Result<Option<Request>> {
        let head_len = loop {
            if let Some(index) = self.unread.windows(4).position(|terminator| terminator == b"\r\n\r\n") {
                break index + 4;
            }
            if !self.read_more().await? {
                return Ok(None);
            }
        };
        let head = String::from_utf8_lossy(&self.unread[..head_len]).into_owned();
        let body_len = content_length(&head);
        if body_len > REQUEST_MAX {
            return Err(io::Error::other("the request is too big"));
        }
        while self.unread.len() < head_len + body_len {
            if !self.read_more().await? {
                return Ok(None);
            }
        }
        let body = self.unread[head_len..head_len + body_len].to_vec();
        self.unread.drain(..head_len + body_len);
        Ok(Some(Request { head, body }))
    }

    /// Waits until the client disconnects.
    pub(crate) async fn wait_for_disconnect(&mut self) {
        while let Ok(true) = self.read_more().await {}
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    async fn read_more(&mut self) -> io::Result<bool> {
        self.unread.reserve(READ_LEN);
        Ok(self.stream.read_buf(&mut self.unread).await? > 0)
    }
}

fn content_length(head: &str) -> usize {
    let mut lengths = head.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    lengths.next().unwrap_or(0)
}
