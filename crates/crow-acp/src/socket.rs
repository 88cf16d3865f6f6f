//! Lines over a WebSocket or streamable HTTP, both ends, as in ACP's draft for remote agents.
//!
//! Must not know the meaning of a message, what is served, or where a token is stored.

mod admission;
mod close_reason;
mod connect;
mod connections;
mod limits;
mod listen;
mod message_pump;
mod queue;
mod refusal;
mod response;
mod streamable_http;
#[cfg(test)]
mod tests;

pub use self::{
    admission::{AdmissionPolicy, BearerToken, SocketListener},
    close_reason::CloseReason,
    connect::{ConnectError, TransportSecurity, classify_address, connect_socket},
    connections::{ConnectionLimits, PendingConnection, accept_connections},
    listen::serve_socket,
};
