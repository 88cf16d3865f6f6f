//! The older HTTP transport: responses arrive on one event stream, requests go to an endpoint that the stream gives
//! first. The SDK no longer supports it.

use std::{collections::VecDeque, sync::Arc};

use reqwest::{
    Client, RequestBuilder, Response, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap},
};
use rmcp::{
    RoleClient,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};

use tokio::sync::Mutex;

use super::{
    auth::{self, RequestAuthorizer},
    http,
    message_filter::error_response_for,
};

/// The SDK's limit on the other transports.
const EVENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Reason why a request failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum SseError {
    #[error("the request failed")]
    Request(#[from] reqwest::Error),
    #[error("it answered HTTP {0}")]
    Status(u16),
    #[error("its login could not be used: {0}")]
    SignIn(String),
}

/// An open event stream and its endpoint.
pub(super) struct SseTransport {
    client: Client,
    headers: HeaderMap,
    /// Shared by the requests: one of them refreshes the token.
    authorizer: Option<Arc<Mutex<RequestAuthorizer>>>,
    endpoint: Url,
    stream: EventStream,
}

/// Opens the stream and waits for the endpoint. `Err(None)` means that authentication is required.
pub(super) async fn open_transport(
    url: &str,
    headers: &[(String, String)],
    authorizer: Option<RequestAuthorizer>,
) -> Result<SseTransport, Option<String>> {
    let (client, url) = http::client_for_url(url).await?;
    let headers: HeaderMap = http::parse_headers(headers)?.into_iter().collect();
    let request = client.get(url.clone()).header(ACCEPT, "text/event-stream").headers(headers.clone());
    let authorizer = authorizer.map(|signer| Arc::new(Mutex::new(signer)));
    let response = authorize_request(request, authorizer.as_ref()).await?.send().await;
    let response = response.map_err(|error| super::connect::root_cause(&error))?;
    match response.status().as_u16() {
        200 => {}
        401 | 403 => return Err(None),
        status => return Err(Some(format!("it answered HTTP {status}"))),
    }
    let (endpoint, stream) = wait_for_endpoint(&url, response).await?;
    Ok(SseTransport { client, headers, authorizer, endpoint, stream })
}

/// Waits for the endpoint event on the open stream.
async fn wait_for_endpoint(url: &Url, response: Response) -> Result<(Url, EventStream), String> {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.starts_with("text/event-stream") {
        return Err("its response is not an event stream".to_owned());
    }
    let mut stream = EventStream { response, decoder: SseDecoder::default(), ready: VecDeque::new() };
    let endpoint = loop {
        match stream.next_event().await {
            Some(event) if event.name == "endpoint" => break event.data,
            Some(_) => {}
            None => return Err("its stream ended before it gave an endpoint".to_owned()),
        }
    };
    let endpoint = url.join(endpoint.trim()).map_err(|_| "it gave an invalid endpoint".to_owned())?;
    // The headers must not be sent to another server.
    if endpoint.origin() != url.origin() {
        return Err("it gave an endpoint on another server".to_owned());
    }
    Ok((endpoint, stream))
}

/// Adds an access token if a login is stored.
async fn authorize_request(
    request: RequestBuilder,
    authorizer: Option<&Arc<Mutex<RequestAuthorizer>>>,
) -> Result<RequestBuilder, String> {
    let Some(authorizer) = authorizer else { return Ok(request) };
    let token = auth::fetch_access_token(&*authorizer.lock().await).await?;
    Ok(match token {
        Some(token) => request.bearer_auth(token),
        None => request,
    })
}

impl Transport<RoleClient> for SseTransport {
    type Error = SseError;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), SseError>> + Send + 'static {
        let request = self.client.post(self.endpoint.clone()).headers(self.headers.clone()).json(&message);
        let authorizer = self.authorizer.clone();
        async move {
            let request = authorize_request(request, authorizer.as_ref()).await.map_err(SseError::SignIn)?;
            let status = request.send().await?.status();
            if status.is_success() { Ok(()) } else { Err(SseError::Status(status.as_u16())) }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let event = self.stream.next_event().await?;
            if event.name.is_empty() || event.name == "message" {
                match serde_json::from_str(&event.data) {
                    Ok(message) => return Some(message),
                    Err(error) => {
                        let reason = format!("its answer is not valid JSON: {error}");
                        match error_response_for(event.data.as_bytes(), &reason)
                            .map(|line| serde_json::from_str(&line))
                        {
                            Some(Ok(refusal)) => return Some(refusal),
                            Some(Err(_)) | None => {
                                tracing::debug!(%error, "ignored an event that is not a message");
                            }
                        }
                    }
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), SseError> {
        Ok(())
    }
}

struct EventStream {
    response: Response,
    decoder: SseDecoder,
    ready: VecDeque<SseEvent>,
}

impl EventStream {
    /// Waits for an event; `None` if the stream has ended. Cancel safe.
    async fn next_event(&mut self) -> Option<SseEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            match self.response.chunk().await {
                Ok(Some(chunk)) => self.ready.extend(self.decoder.feed(&chunk)?),
                Ok(None) => return None,
                Err(error) => {
                    tracing::debug!(error = %error.without_url(), "an event stream failed");
                    return None;
                }
            }
        }
    }
}

#[derive(Debug, Default, PartialEq)]
struct SseEvent {
    name: String,
    data: String,
}

/// Decodes bytes to events. Must not know their content.
#[derive(Default)]
struct SseDecoder {
    line: Vec<u8>,
    event: SseEvent,
    /// The last line ended with CR, so a following LF belongs to it.
    after_cr: bool,
}

impl SseDecoder {
    /// Decodes the next bytes and returns the completed events; `None` if an event is too long.
    fn feed(&mut self, chunk: &[u8]) -> Option<Vec<SseEvent>> {
        let mut events = Vec::new();
        for &byte in chunk {
            let after_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                _ => self.line.push(byte),
            }
            if self.line.len() + self.event.data.len() > EVENT_BYTES_MAX {
                return None;
            }
        }
        Some(events)
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let mut event = std::mem::take(&mut self.event);
            // Each data line ended with a newline.
            return event.data.pop().map(|_| event);
        }
        let line = String::from_utf8_lossy(&line);
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => value.clone_into(&mut self.event.name),
            "data" => {
                self.event.data.push_str(value);
                self.event.data.push('\n');
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::SseDecoder;

    #[test]
    fn events_are_decoded_from_chunks_of_any_size() {
        let text = ": hello\r\nevent: endpoint\r\ndata: /a\r\n\r\ndata: é\ndata:b\n\nevent: x\n\nid: 1\rdata\r\rdata: cut";
        let whole = format!("{:?}", SseDecoder::default().feed(text.as_bytes()).unwrap());
        for n_bytes in 1..text.len() {
            let mut decoder = SseDecoder::default();
            let events: Vec<_> =
                text.as_bytes().chunks(n_bytes).flat_map(|chunk| decoder.feed(chunk).unwrap()).collect();
            assert_eq!(format!("{events:?}"), whole, "in pieces of {n_bytes}");
        }
        expect_test::expect![[r#"[SseEvent { name: "endpoint", data: "/a" }, SseEvent { name: "", data: "é\nb" }, SseEvent { name: "", data: "" }]"#]].assert_eq(&whole);
    }
}
