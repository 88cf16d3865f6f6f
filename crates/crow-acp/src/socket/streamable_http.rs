//! ACP's draft for streamable HTTP: a message to the agent is a POST, its messages are server-sent events of long GETs,
//! one for the connection and one for each session.
//!
//! Must not know the meaning of a message beyond its ID, its method and its session.

mod connection;
mod cookies;
mod endpoint;
mod event_body;
mod event_reader;
mod link;
mod message_head;
mod outgoing_streams;
mod request_body;
mod route_table;
#[cfg(test)]
mod tests;

pub(super) use self::{
    endpoint::{HttpEndpoint, HttpEndpointConfig, ServeClient},
    link::carry_posts,
};

/// The connection that a request belongs to; the answer to `initialize` has it first.
const CONNECTION_HEADER: &str = "acp-connection-id";

/// The session that a request belongs to.
const SESSION_HEADER: &str = "acp-session-id";

const EVENT_STREAM: &str = "text/event-stream";

const JSON: &str = "application/json";

/// The last message of a connection that did not end by itself, with the reason in `params.reason`: HTTP has no close
/// frame.
const CLOSED_METHOD: &str = "_crow/closed";
