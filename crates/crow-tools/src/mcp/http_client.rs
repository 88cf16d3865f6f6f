//! The HTTP client of the SDK, with two repairs for a server that has forgotten its session. It should answer 404, but
//! some answer with an error that names no request, and the SDK would wait for the request's answer forever. And the SDK
//! would try to resume a response even after a 404.

use std::{collections::HashMap, sync::Arc};

use futures_util::stream::BoxStream;
use reqwest::{
    Client, StatusCode,
    header::{HeaderName, HeaderValue},
};
use rmcp::{
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::streamable_http_client::{
        SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use sse_stream::Sse;

use super::request_authorizer::RequestAuthorizer;

type SseEvents = BoxStream<'static, Result<Sse, SseError>>;
type HttpResult<T> = Result<T, StreamableHttpError<reqwest::Error>>;

/// A client that authorizes its requests and recognises a forgotten session, so that the SDK begins a new one.
#[derive(Clone)]
pub(super) struct McpHttpClient {
    pub(super) client: Client,
    /// The server's login, if there is one. The SDK's own client would drop a refresh with its request.
    pub(super) authorizer: Option<RequestAuthorizer>,
}

/// Takes an error that answers no request for the end of the session, if there is one and a request waits.
fn check_response(
    response: StreamableHttpPostResponse,
    is_request_in_session: bool,
) -> HttpResult<StreamableHttpPostResponse> {
    if let StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), _) = &response
        && error.id.is_none()
        && is_request_in_session
    {
        tracing::info!(code = error.error.code.0, "an MCP server rejected a request without naming it");
        return Err(StreamableHttpError::SessionExpired);
    }
    Ok(response)
}

/// Ends a stream of a session that the server does not know: this error is one that the SDK does not try again.
fn check_stream(opened: HttpResult<SseEvents>, is_in_session: bool) -> HttpResult<SseEvents> {
    match opened {
        Err(StreamableHttpError::Client(error))
            if is_in_session && matches!(error.status(), Some(StatusCode::NOT_FOUND | StatusCode::GONE)) =>
        {
            tracing::info!("an MCP server has forgotten the session of a stream");
            Err(StreamableHttpError::ServerDoesNotSupportSse)
        }
        opened => opened,
    }
}

impl McpHttpClient {
    /// Sends a request with the token of the login, if there is one, and again with another if the server rejects it.
    async fn send_authorized<T, F>(
        &self,
        auth_header: Option<String>,
        send: impl Fn(Option<String>) -> F + Send + Sync,
    ) -> HttpResult<T>
    where
        F: Future<Output = HttpResult<T>> + Send,
    {
        let Some(authorizer) = &self.authorizer else { return send(auth_header).await };
        let token = authorizer.fetch_token().await?;
        match (send(token.clone()).await, token) {
            (Err(StreamableHttpError::AuthRequired(challenge)), Some(rejected)) => {
                match authorizer.replace_token(rejected).await? {
                    Some(token) => send(Some(token)).await,
                    None => Err(StreamableHttpError::AuthRequired(challenge)),
                }
            }
            (sent, _) => sent,
        }
    }
}

impl StreamableHttpClient for McpHttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<StreamableHttpPostResponse> {
        let is_request_in_session =
            matches!(message, ClientJsonRpcMessage::Request(_)) && session_id.is_some();
        let response = self.send_authorized(auth_header, |token| {
            let (message, custom_headers) = (message.clone(), custom_headers.clone());
            self.client.post_message(uri.clone(), message, session_id.clone(), token, custom_headers)
        });
        check_response(response.await?, is_request_in_session)
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> HttpResult<StreamableHttpPostResponse> {
        let is_request_in_session =
            matches!(message, ClientJsonRpcMessage::Request(_)) && session_id.is_some();
        let response = self.send_authorized(auth_header, |token| {
            self.client.post_message_with_max_sse_event_size(
                uri.clone(),
                message.clone(),
                session_id.clone(),
                token,
                custom_headers.clone(),
                max_sse_event_size,
            )
        });
        check_response(response.await?, is_request_in_session)
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<()> {
        let deletion = self.send_authorized(auth_header, |token| {
            self.client.delete_session(uri.clone(), session_id.clone(), token, custom_headers.clone())
        });
        deletion.await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<SseEvents> {
        let opening = self.send_authorized(auth_header, |token| {
            let (last_event_id, custom_headers) = (last_event_id.clone(), custom_headers.clone());
            self.client.get_stream(uri.clone(), session_id.clone(), last_event_id, token, custom_headers)
        });
        check_stream(opening.await, session_id.is_some())
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> HttpResult<SseEvents> {
        let opening = self.send_authorized(auth_header, |token| {
            self.client.get_stream_with_max_sse_event_size(
                uri.clone(),
                session_id.clone(),
                last_event_id.clone(),
                token,
                custom_headers.clone(),
                max_sse_event_size,
            )
        });
        check_stream(opening.await, session_id.is_some())
    }
}
