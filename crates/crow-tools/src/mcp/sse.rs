//! The older HTTP transport: responses arrive on one event stream, requests go to an endpoint that the stream gives
//! first. The SDK no longer supports it.

use std::collections::VecDeque;

use crow_core::SseParser;
use reqwest::{
    Client, RequestBuilder, Response, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap},
};
use rmcp::{
    RoleClient,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};

use super::{auth, http, message_filter::error_response_for, request_authorizer::RequestAuthorizer};

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
    authorizer: Option<RequestAuthorizer>,
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
    let response = authorize_request(request, authorizer.as_ref()).await?.send().await;
    let response = response.map_err(|error| super::request_error::root_cause(&error))?;
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
    let mut stream = EventStream { response, parser: SseParser::default(), ready: VecDeque::new() };
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
    authorizer: Option<&RequestAuthorizer>,
) -> Result<RequestBuilder, String> {
    let Some(authorizer) = authorizer else { return Ok(request) };
    let token = authorizer.fetch_token().await.map_err(|error| auth::describe_auth_error(&error))?;
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
    parser: SseParser,
    ready: VecDeque<NamedEvent>,
}

struct NamedEvent {
    name: String,
    data: String,
}

impl EventStream {
    /// Waits for an event; `None` if the stream has ended. Cancel safe.
    async fn next_event(&mut self) -> Option<NamedEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            match self.response.chunk().await {
                Ok(Some(chunk)) => self.ready.extend(read_events(&mut self.parser, &chunk)?),
                Ok(None) => return None,
                Err(error) => {
                    tracing::debug!(error = %error.without_url(), "an event stream failed");
                    return None;
                }
            }
        }
    }
}

/// Decodes the next bytes and returns the completed events; `None` if an event is too long.
fn read_events(parser: &mut SseParser, chunk: &[u8]) -> Option<Vec<NamedEvent>> {
    let mut events = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    parser
        .feed(chunk, &mut |event| {
            events.push(NamedEvent { name: text(event.name), data: text(event.data) });
        })
        .ok()?;
    Some(events)
}
