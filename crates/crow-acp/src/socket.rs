//! Lines over a WebSocket, both ends: one text frame is one message, as in ACP's draft for remote agents.
//!
//! Must not know the meaning of a message, what is served, or where a token is stored.

mod admission;
mod close_reason;
mod connect;
mod connections;
mod listen;
mod message_pump;
mod queue;
#[cfg(test)]
mod tests;

use std::{io, time::Duration};

use futures_util::{StreamExt, sink, stream};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use self::queue::{LineReceiver, LineSender, line_queue};
use crate::transport::{LINE_BYTES_MAX, LineTransport};

pub use self::{
    admission::{AdmissionPolicy, BearerToken, SocketListener},
    close_reason::CloseReason,
    connect::{ConnectError, TransportSecurity, classify_address, connect_socket},
    connections::{ConnectionLimits, PendingConnection, accept_connections},
    listen::serve_socket,
};

/// The default path of an agent's URL.
const DEFAULT_PATH: &str = "/acp";

/// The largest message, as on stdio.
const MESSAGE_BYTES_MAX: usize = LINE_BYTES_MAX as usize;

/// The size of one read; enough for most messages at once, and each idle connection has a buffer of this size.
const READ_BUFFER_BYTES: usize = 64 * 1024;

/// The interval between pings: half of the silence that proxies and routers commonly permit.
const PING_INTERVAL: Duration = Duration::from_secs(15);

/// The wait for the other side's close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

fn websocket_config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX))
}

/// Creates a transport and the ends of its queues that a socket fills and empties.
fn queued_transport() -> (LineTransport, (LineSender, LineReceiver)) {
    let (incoming_sender, incoming_receiver) = line_queue();
    let (outgoing_sender, outgoing_receiver) = line_queue();
    let outgoing = sink::unfold(outgoing_sender, |outgoing_sender, line: String| async move {
        match outgoing_sender.send(Ok(line)).await {
            Ok(()) => Ok(outgoing_sender),
            Err(_) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    });
    let incoming = stream::unfold(incoming_receiver, |mut incoming_receiver| async move {
        incoming_receiver.recv().await.map(|line| (line, incoming_receiver))
    });
    (
        LineTransport { outgoing: Box::pin(outgoing), incoming: incoming.boxed() },
        (incoming_sender, outgoing_receiver),
    )
}
