//! Sends one request to a server, such as a tool call, with timeout and cancellation.

use std::{pin::pin, sync::Arc, time::Duration};

use crow_core::{ToolCallContent, ToolResult};
use rmcp::{
    model::{
        CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientRequest, RequestId,
        ServerResult,
    },
    service::{PeerRequestOptions, ServiceError},
};
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::{
    call_result::{RawCallResult, convert_result},
    http,
    link::{CallTracking, McpLink},
    request_error::root_cause,
    server::McpServerHandle,
    server_requests::ServerExchange,
    session_port::McpSessionPort,
    tool_list::strip_control_chars,
};
use crate::{ToolCx, ToolProgress, tool_error::CANCELLED};

/// Timeout of a list that a turn waits for.
pub(super) const LIST_TIMEOUT: Duration = Duration::from_secs(30);

/// A server that does not read the cancellation must not delay the turn.
const CANCEL_NOTICE_TIMEOUT: Duration = Duration::from_secs(1);

/// Time to learn why a connection ended: a program gets time to exit by itself.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// More than any useful error message; validation errors list every field.
const MESSAGE_CHARS_MAX: usize = 4000;

/// Cancellation and progress of a request.
#[derive(Clone, Copy)]
pub(super) struct McpRequestOptions<'a> {
    pub(super) cancel: &'a CancellationToken,
    pub(super) progress: &'a (dyn Fn(String) + Send + Sync),
    /// The session, for requests of the server meanwhile.
    pub(super) session: Option<&'a dyn McpSessionPort>,
}

/// Calls a tool of a server.
pub(super) async fn call_tool(
    server: &McpServerHandle,
    tool: &str,
    arguments: &Map<String, Value>,
    cx: ToolCx<'_>,
) -> ToolResult {
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.clone());
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let show_text = |text| (cx.progress)(ToolProgress::Content(vec![ToolCallContent::Text(text)]));
    let name = &server.name;
    let options = McpRequestOptions { cancel: cx.cancel, progress: &show_text, session: cx.mcp_session };
    match send_request(server, request, options).await {
        Ok(ServerResult::CallToolResult(result)) => convert_result(RawCallResult::Result(result)),
        Ok(ServerResult::EmptyResult(_)) => {
            convert_result(RawCallResult::Unrecognized(Value::Object(Map::new())))
        }
        Ok(ServerResult::CustomResult(other)) => convert_result(RawCallResult::Unrecognized(other.0)),
        Ok(ServerResult::InputRequiredResult(_)) => ToolResult::failure(format!(
            "the MCP server {name} requested user input, which is not supported here"
        )),
        Ok(_) => ToolResult::failure(format!(
            "the MCP server {name} returned a response that is not a tool result"
        )),
        Err(reason) => ToolResult::failure(reason),
    }
}

/// Sends a request to a server, restarting it if it has ended. `Err` is the reason why there is no response.
pub(super) async fn send_request(
    server: &McpServerHandle,
    request: ClientRequest,
    options: McpRequestOptions<'_>,
) -> Result<ServerResult, String> {
    let name = &server.name;
    let link = tokio::select! {
        biased;
        () = options.cancel.cancelled() => return Err(CANCELLED.to_owned()),
        link = server.acquire_link() => link,
    };
    let link =
        link.map_err(|exit| format!("the MCP server {name} is not running: {}", exit.full_reason()))?;
    match send_and_wait(&link, server.idle_timeout, request, options).await {
        RequestOutcome::Answered(answered) => match *answered {
            Ok(result) => Ok(result),
            Err(error) => Err(describe_failure(server, &link, error).await),
        },
        RequestOutcome::Cancelled => Err(CANCELLED.to_owned()),
        RequestOutcome::TimedOut => {
            let seconds = server.idle_timeout.as_secs_f64();
            Err(format!("stopped: the MCP server {name} did not respond for {seconds} s"))
        }
    }
}

/// The outcome of a request.
enum RequestOutcome {
    Answered(Box<Result<ServerResult, ServiceError>>),
    Cancelled,
    TimedOut,
}

async fn send_and_wait(
    link: &McpLink,
    idle_timeout: Duration,
    request: ClientRequest,
    options: McpRequestOptions<'_>,
) -> RequestOutcome {
    let handle = match link.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await {
        Ok(handle) => handle,
        Err(error) => return RequestOutcome::Answered(Box::new(Err(error))),
    };
    let CallTracking { mut progress, mut requests } =
        link.handler.track_call(handle.progress_token.clone(), options.session.is_some());
    let mut exchange = ServerExchange::new(options.session);
    let id = handle.id.clone();
    let mut answer = pin!(handle.await_response());
    let mut idle_deadline = Instant::now() + idle_timeout;
    loop {
        tokio::select! {
            biased;
            answered = &mut answer => return RequestOutcome::Answered(Box::new(answered)),
            () = options.cancel.cancelled() => {
                cancel_request(link, id, "the turn was cancelled").await;
                return RequestOutcome::Cancelled;
            }
            text = progress.next_text() => {
                idle_deadline = Instant::now() + idle_timeout;
                (options.progress)(text);
            }
            () = exchange.advance(&mut requests) => idle_deadline = Instant::now() + idle_timeout,
            // The server waits for the user or the model.
            () = sleep_until(idle_deadline), if !exchange.is_busy() => {
                cancel_request(link, id, "it took too long").await;
                return RequestOutcome::TimedOut;
            }
        }
    }
}

/// Notifies the server that a request is cancelled.
async fn cancel_request(link: &McpLink, id: RequestId, reason: &str) {
    let params = CancelledNotificationParam::new(Some(id), Some(reason.to_owned()));
    // A server that ignores it is ended with the session.
    let _ = timeout(CANCEL_NOTICE_TIMEOUT, link.peer.notify_cancelled(params)).await;
}

async fn describe_failure(server: &McpServerHandle, link: &Arc<McpLink>, error: ServiceError) -> String {
    let name = &server.name;
    #[expect(clippy::wildcard_enum_match_arm, reason = "the SDK may add to its errors")]
    match error {
        ServiceError::McpError(error) => {
            let message =
                strip_control_chars(&error.message).chars().take(MESSAGE_CHARS_MAX).collect::<String>();
            format!("the MCP server {name} rejected the call: {message}")
        }
        ServiceError::TransportSend(error) if link.is_open() => {
            let reason = root_cause(error.error.as_ref());
            let hint = if reason == http::AUTHENTICATION_REQUIRED {
                format!("; log in with `crow-cli auth {name}`")
            } else {
                String::new()
            };
            format!("could not send a request to the MCP server {name}: {reason}{hint}")
        }
        // Over HTTP one response can end early, and the connection stays open.
        _ if link.is_open() && !link.has_program => {
            format!("the MCP server {name} did not answer: its response ended early")
        }
        _ => match timeout(EXIT_TIMEOUT, server.wait_for_exit(link)).await {
            Ok(exit) => format!("the MCP server {name} ended before it answered: {}", exit.full_reason()),
            Err(_) => format!("the MCP server {name} did not answer: the connection broke"),
        },
    }
}
