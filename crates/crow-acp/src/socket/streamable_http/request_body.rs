//! Reads the message in a request's body, up to a limit.

use std::time::Duration;

use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Incoming};
use tokio::time::timeout;

use super::{
    super::{message_pump::join_lines, refusal::RequestRefusal},
    JSON,
    message_head::{InvalidMessage, MessageHead},
};

/// A message of a client, as one line.
pub(super) struct PostedMessage {
    pub(super) line: String,
    pub(super) head: MessageHead,
}

/// Whether a request's body is JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = content_type.and_then(|value| value.split(';').next()).unwrap_or_default();
    media_type.trim().eq_ignore_ascii_case(JSON)
}

/// Reads a body of at most `bytes_max` bytes, each piece of which comes within `silence_max`.
pub(super) async fn read_message(
    body: Incoming,
    bytes_max: usize,
    silence_max: Duration,
) -> Result<PostedMessage, RequestRefusal> {
    let bytes = read_bytes(body, bytes_max, silence_max).await?;
    let invalid = |reason| RequestRefusal::new(StatusCode::BAD_REQUEST, reason);
    let text = String::from_utf8(bytes).map_err(|_| invalid("the message is not UTF-8"))?;
    let line = join_lines(&text);
    let head = MessageHead::parse(&line).map_err(|error| match error {
        InvalidMessage::Batch => {
            RequestRefusal::new(StatusCode::NOT_IMPLEMENTED, "batches are not supported; send one message")
        }
        InvalidMessage::NotAnObject => invalid("the message is not a JSON object"),
        InvalidMessage::Json => invalid("the message is not valid JSON"),
    })?;
    Ok(PostedMessage { line, head })
}

async fn read_bytes(
    mut body: Incoming,
    bytes_max: usize,
    silence_max: Duration,
) -> Result<Vec<u8>, RequestRefusal> {
    let too_large = || RequestRefusal::new(StatusCode::PAYLOAD_TOO_LARGE, "the message is too large");
    let n_expected = body.size_hint().lower();
    if n_expected > u64::try_from(bytes_max).unwrap_or(u64::MAX) {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    loop {
        let frame = timeout(silence_max, body.frame()).await;
        let frame = frame.map_err(|_| {
            RequestRefusal::new(StatusCode::REQUEST_TIMEOUT, "the rest of the message did not arrive")
        })?;
        let Some(frame) = frame else { return Ok(bytes) };
        let frame = frame.map_err(|_| {
            RequestRefusal::new(StatusCode::BAD_REQUEST, "the message could not be received completely")
        })?;
        let Ok(piece) = frame.into_data() else { continue };
        if bytes.len() + piece.len() > bytes_max {
            return Err(too_large());
        }
        bytes.extend_from_slice(&piece);
    }
}
