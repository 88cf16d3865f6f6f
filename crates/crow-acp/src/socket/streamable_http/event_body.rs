//! The body of an event stream: an event for each line, and a comment where nothing was sent for a while.

use std::{sync::Arc, time::Duration};

use futures_util::stream;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Bytes, Frame};
use serde_json::json;
use tokio::{sync::OwnedMutexGuard, time::timeout};

use super::{
    super::{close_reason::CloseReason, message_pump::join_lines, queue::LineReceiver, response::SocketBody},
    CLOSED_METHOD,
    connection::{HttpConnection, PresenceGuard},
};

/// A comment, which readers skip.
const KEEP_ALIVE: &[u8] = b":\n\n";

/// The size of one write. A large message is progress long before it is sent completely.
const PIECE_BYTES_MAX: usize = 64 * 1024;

/// A client that reads a stream.
pub(super) struct StreamReader {
    pub(super) lines: OwnedMutexGuard<LineReceiver>,
    pub(super) connection: Arc<HttpConnection>,
    pub(super) _presence: PresenceGuard,
    pub(super) ping_interval: Duration,
}

/// The state of a body.
struct EventBody {
    reader: StreamReader,
    /// The unsent rest of an event.
    rest: Bytes,
    /// Nothing follows it.
    is_last: bool,
}

impl StreamReader {
    pub(super) fn into_body(self) -> SocketBody {
        let body = EventBody { reader: self, rest: Bytes::new(), is_last: false };
        let frames = stream::unfold(body, |mut body| async move {
            body.next_piece().await.map(|piece| (Ok(Frame::data(piece)), body))
        });
        StreamBody::new(frames).boxed_unsync()
    }
}

impl EventBody {
    async fn next_piece(&mut self) -> Option<Bytes> {
        if self.rest.is_empty() {
            if self.is_last {
                return None;
            }
            match timeout(self.reader.ping_interval, self.reader.lines.recv()).await {
                Ok(Some(Ok(line))) => self.rest = event_bytes(&line),
                Ok(Some(Err(_)) | None) => match self.reader.connection.close_reason() {
                    Some(CloseReason::Normal) | None => return None,
                    Some(reason) => {
                        self.rest = event_bytes(&closed_message(reason));
                        self.is_last = true;
                    }
                },
                Err(_) => return Some(Bytes::from_static(KEEP_ALIVE)),
            }
        }
        self.reader.connection.count_progress();
        Some(self.rest.split_to(self.rest.len().min(PIECE_BYTES_MAX)))
    }
}

fn event_bytes(line: &str) -> Bytes {
    // A line break would end the field.
    Bytes::from(["data: ", &join_lines(line), "\n\n"].concat())
}

fn closed_message(reason: &CloseReason) -> String {
    let frame = reason.to_close_frame();
    json!({"jsonrpc": "2.0", "method": CLOSED_METHOD, "params": {"reason": frame.reason.as_str()}})
        .to_string()
}
