//! The HTTP client of the SDK, with a repair: a server that has restarted should answer 404 to a session that it does not
//! know, but some answer with an error that names no request. The SDK would wait for the request's answer forever.

use std::{collections::HashMap, sync::Arc};

use futures_util::stream::BoxStream;
use reqwest::{
    Client,
    header::{HeaderName, HeaderValue},
};
use rmcp::{
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::streamable_http_client::{
        SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use sse_stream::Sse;

type SseEvents = BoxStream<'static, Result<Sse, SseError>>;
type HttpResult<T> = Result<T, StreamableHttpError<reqwest::Error>>;

/// A client that recognises a forgotten session, so that the SDK begins a new one.
#[derive(Debug, Clone)]
pub(super) struct McpHttpClient(pub(super) Client);

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
        let response = self.0.post_message(uri, message, session_id, auth_header, custom_headers).await?;
        check_response(response, is_request_in_session)
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
        let posting = self.0.post_message_with_max_sse_event_size(
            uri,
            message,
            session_id,
            auth_header,
            custom_headers,
            max_sse_event_size,
        );
        check_response(posting.await?, is_request_in_session)
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<()> {
        self.0.delete_session(uri, session_id, auth_header, custom_headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<SseEvents> {
        self.0.get_stream(uri, session_id, last_event_id, auth_header, custom_headers).await
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
        let stream = self.0.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            max_sse_event_size,
        );
        stream.await
    }
}
