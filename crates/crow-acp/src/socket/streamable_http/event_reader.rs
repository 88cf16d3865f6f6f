//! Reads one event stream of an agent, again if the server ends it.

use std::sync::Arc;

use crow_core::SseParser;
use http::{Method, StatusCode, header};
use reqwest::{Body, Response};
use serde::Deserialize;

use super::{
    super::{
        limits::MESSAGE_BYTES_MAX,
        message_pump::{ABRUPT_END, join_lines, sanitize_reason},
    },
    CLOSED_METHOD, EVENT_STREAM,
    link::{HttpLink, LinkEnd},
    route_table::StreamScope,
};

/// The room for `data: ` and the like around a message.
const EVENT_OVERHEAD_BYTES: usize = 1024;

/// The last message of a server that has a reason for the end.
#[derive(Deserialize)]
struct ClosedMessage {
    method: String,
    params: ClosedParams,
}

#[derive(Deserialize)]
struct ClosedParams {
    reason: String,
}

/// Reads a stream until it ends. Returns the end of the connection if that was the reason.
///
/// A server or a proxy may end a stream that is still needed; nothing is lost between two events, so it is opened again
/// if it had delivered something. A stream that breaks may have lost events, which nothing repeats.
pub(super) async fn read_stream(link: &Arc<HttpLink>, scope: &StreamScope) -> Option<LinkEnd> {
    let session = match scope {
        StreamScope::Connection => None,
        StreamScope::Session(session) => Some(session.as_str()),
    };
    let mut is_reopened = false;
    loop {
        let response = match link.send_request(Method::GET, session, Body::default()).await {
            Ok(response) => response,
            Err(error) => return Some(error.into()),
        };
        match (response.status(), session) {
            (StatusCode::OK, _) => {}
            // The server does not know the session yet, or no longer.
            (StatusCode::NOT_FOUND, Some(_)) => return None,
            (StatusCode::NOT_FOUND, None) if is_reopened => return Some(LinkEnd::Finished),
            (status, _) => return Some(link.target.rejected_message(status).into()),
        }
        let content_type = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if !content_type.is_some_and(|value| value.starts_with(EVENT_STREAM)) {
            return Some(link.target.invalid_answer("its response is not an event stream").into());
        }
        match read_events(link, response, scope).await {
            Ok(true) => is_reopened = true,
            Ok(false) => return session.is_none().then_some(LinkEnd::Finished),
            Err(end) => return Some(end),
        }
    }
}

/// Delivers the events of a response until its end. Returns whether anything came.
async fn read_events(
    link: &Arc<HttpLink>,
    mut response: Response,
    scope: &StreamScope,
) -> Result<bool, LinkEnd> {
    let mut parser = SseParser::with_len_max(MESSAGE_BYTES_MAX + EVENT_OVERHEAD_BYTES);
    let mut has_data = false;
    loop {
        let chunk = response.chunk().await.map_err(|_| LinkEnd::Failed(ABRUPT_END.to_owned()))?;
        has_data |= chunk.is_some();
        let mut lines = Vec::new();
        let mut on_event = |event: crow_core::SseEvent<'_>| {
            lines.push(join_lines(&String::from_utf8_lossy(event.data)));
        };
        let parsed = match &chunk {
            Some(bytes) => parser.feed(bytes, &mut on_event),
            None => parser.finish(&mut on_event),
        };
        parsed.map_err(|_| link.target.invalid_answer("a message is larger than 64 MiB"))?;
        for line in lines {
            if let Some(reason) = closed_reason(&line) {
                return Err(LinkEnd::Failed(format!(
                    "the other side closed it: {}",
                    sanitize_reason(&reason)
                )));
            }
            link.deliver_event(line, scope).await;
        }
        if chunk.is_none() {
            return Ok(has_data);
        }
    }
}

fn closed_reason(line: &str) -> Option<String> {
    let message: ClosedMessage =
        line.contains(CLOSED_METHOD).then(|| serde_json::from_str(line).ok()).flatten()?;
    (message.method == CLOSED_METHOD).then_some(message.params.reason)
}
