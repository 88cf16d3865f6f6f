//! Responses of the server, and the ID that one gives a connection.

use std::io;

use http::{HeaderValue, Response};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Bytes;

/// The length of a connection ID.
const CONNECTION_ID_BYTES: usize = 16;

/// The body of a response.
pub(super) type SocketBody = UnsyncBoxBody<Bytes, io::Error>;

pub(super) type SocketResponse = Response<SocketBody>;

/// Returns a random ID. The error is that of the system's random numbers.
pub(super) fn new_connection_id() -> io::Result<HeaderValue> {
    let mut bytes = [0; CONNECTION_ID_BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let id: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::from_str(&id).map_err(io::Error::other)
}
