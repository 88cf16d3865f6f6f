//! Lines over a WebSocket, both ends: one text frame is one message, as in ACP's draft for remote agents.
//!
//! Must never know what a message says, who is served behind the door, or where a token is kept.

mod carry;
mod connect;
mod door;
mod farewell;
mod listen;
mod queue;
#[cfg(test)]
mod tests;
mod visitors;

use std::{io, time::Duration};

use futures_util::{StreamExt, sink, stream};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use self::queue::{LineReceiver, LineSender, line_queue};
use crate::transport::{LINE_BYTES_MAX, LineTransport};

pub use self::{
    connect::{ConnectError, TransportSecurity, classify_address, connect_socket},
    door::{AdmissionPolicy, BearerToken, SocketListener},
    farewell::CloseReason,
    listen::serve_socket,
    visitors::{ConnectionLimits, PendingConnection, accept_connections},
};

/// Where agents are found unless an address says otherwise.
const PATH: &str = "/acp";

/// The largest message, as on stdio.
const MESSAGE_BYTES_MAX: usize = LINE_BYTES_MAX as usize;

/// What one read takes; enough for most messages at once, and each connection has as much at rest.
const READ_BYTES: usize = 64 * 1024;

/// Between two pings: half of what proxies and routers commonly let pass in silence.
const PING: Duration = Duration::from_secs(15);

/// How long either side waits for the other to say goodbye.
const GOODBYE: Duration = Duration::from_secs(1);

fn websocket_config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BYTES)
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX))
}

/// Makes lines, and the ends of their queues where a socket fills and empties them.
fn queued_transport() -> (LineTransport, (LineSender, LineReceiver)) {
    let (heard, hears) = line_queue();
    let (say, said) = line_queue();
    let outgoing = sink::unfold(say, |say, line: String| async move {
        match say.send(Ok(line)).await {
            Ok(()) => Ok(say),
            Err(_) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    });
    let incoming =
        stream::unfold(hears, |mut hears| async move { hears.recv().await.map(|line| (line, hears)) });
    (LineTransport { outgoing: Box::pin(outgoing), incoming: incoming.boxed() }, (heard, said))
}
