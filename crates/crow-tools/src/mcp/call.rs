//! One request to a server, a call of its tool above all, whatever ends it.

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
    connect::root_cause,
    http,
    link::McpLink,
    listing::strip_control_chars,
    outcome::{RawCallResult, convert_result},
    server::McpServerHandle,
};
use crate::{ToolCx, ToolProgress, tool::CANCELLED};

/// How long a list may take that somebody waits for.
pub(super) const LIST_WITHIN: Duration = Duration::from_secs(30);

/// A server that does not even read that a call is over keeps nobody waiting.
const GOODBYE: Duration = Duration::from_secs(1);

/// How soon it is known why a connection is over: a program gets time to end by itself.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// More than any reason that is one; validation errors list every field.
const MESSAGE_CHARS_MAX: usize = 4000;

/// What stops a request, and who hears how far it is.
#[derive(Clone, Copy)]
pub(super) struct McpRequestOptions<'a> {
    pub(super) cut: &'a CancellationToken,
    pub(super) progress: &'a (dyn Fn(String) + Send + Sync),
}

/// Has a server run a tool.
pub(super) async fn call_tool(
    server: &McpServerHandle,
    tool: &str,
    arguments: &Map<String, Value>,
    cx: ToolCx<'_>,
) -> ToolResult {
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.clone());
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let shows = |text| (cx.progress)(ToolProgress::Shows(vec![ToolCallContent::Text(text)]));
    let name = &server.name;
    match send_request(server, request, McpRequestOptions { cut: cx.cut, progress: &shows }).await {
        Ok(ServerResult::CallToolResult(result)) => convert_result(RawCallResult::Result(result)),
        Ok(ServerResult::EmptyResult(_)) => convert_result(RawCallResult::Odd(Value::Object(Map::new()))),
        Ok(ServerResult::CustomResult(odd)) => convert_result(RawCallResult::Odd(odd.0)),
        Ok(ServerResult::InputRequiredResult(_)) => ToolResult::failure(format!(
            "the MCP server {name} wants to ask the person something, which it cannot here"
        )),
        Ok(_) => {
            ToolResult::failure(format!("the MCP server {name} gave an answer that is no result of a tool"))
        }
        Err(why) => ToolResult::failure(why),
    }
}

/// Asks a server, which is started again where it has ended. The other side is why there is no answer.
pub(super) async fn send_request(
    server: &McpServerHandle,
    request: ClientRequest,
    asking: McpRequestOptions<'_>,
) -> Result<ServerResult, String> {
    let name = &server.name;
    let link = tokio::select! {
        biased;
        () = asking.cut.cancelled() => return Err(CANCELLED.to_owned()),
        link = server.acquire_link() => link,
    };
    let link = link.map_err(|end| format!("the MCP server {name} is not there: {}", end.full_reason()))?;
    match send_and_wait((&link, server.silence_max), request, asking).await {
        RequestOutcome::Answered(answered) => match *answered {
            Ok(result) => Ok(result),
            Err(error) => Err(describe_failure(server, &link, error).await),
        },
        RequestOutcome::Cancelled => Err(CANCELLED.to_owned()),
        RequestOutcome::Silent => {
            let seconds = server.silence_max.as_secs_f64();
            Err(format!("stopped: the MCP server {name} said nothing for {seconds} s"))
        }
    }
}

/// How sending a request went.
enum RequestOutcome {
    Answered(Box<Result<ServerResult, ServiceError>>),
    Cancelled,
    Silent,
}

async fn send_and_wait(
    (link, silence_max): (&McpLink, Duration),
    request: ClientRequest,
    asking: McpRequestOptions<'_>,
) -> RequestOutcome {
    let handle = match link.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await {
        Ok(handle) => handle,
        Err(error) => return RequestOutcome::Answered(Box::new(Err(error))),
    };
    let mut progress = link.heard.track_progress(handle.progress_token.clone());
    let id = handle.id.clone();
    let mut answer = pin!(handle.await_response());
    let mut silent_at = Instant::now() + silence_max;
    loop {
        tokio::select! {
            biased;
            answered = &mut answer => return RequestOutcome::Answered(Box::new(answered)),
            () = asking.cut.cancelled() => {
                cancel_request(link, id, "the turn was cancelled").await;
                return RequestOutcome::Cancelled;
            }
            text = progress.next_text() => {
                silent_at = Instant::now() + silence_max;
                (asking.progress)(text);
            }
            () = sleep_until(silent_at) => {
                cancel_request(link, id, "it took too long").await;
                return RequestOutcome::Silent;
            }
        }
    }
}

/// Tells the server that nobody waits any more.
async fn cancel_request(link: &McpLink, id: RequestId, why: &str) {
    let params = CancelledNotificationParam::new(Some(id), Some(why.to_owned()));
    // Whoever does not hear it is ended with the session.
    let _ = timeout(GOODBYE, link.peer.notify_cancelled(params)).await;
}

async fn describe_failure(server: &McpServerHandle, link: &Arc<McpLink>, error: ServiceError) -> String {
    let name = &server.name;
    #[expect(clippy::wildcard_enum_match_arm, reason = "the SDK may add to its errors")]
    match error {
        ServiceError::McpError(error) => {
            let message =
                strip_control_chars(&error.message).chars().take(MESSAGE_CHARS_MAX).collect::<String>();
            format!("the MCP server {name} refused the call: {message}")
        }
        ServiceError::TransportSend(error) if link.is_open() => {
            let why = root_cause(error.error.as_ref());
            let hint = if why == http::WANTS_TO_KNOW {
                format!("; sign in with `crow-cli auth {name}`")
            } else {
                String::new()
            };
            format!("could not ask the MCP server {name}: {why}{hint}")
        }
        _ => match timeout(LAST_WORDS, server.wait_for_exit(link)).await {
            Ok(end) => format!("the MCP server {name} ended before it answered: {}", end.full_reason()),
            Err(_) => format!("the MCP server {name} did not answer: the connection broke"),
        },
    }
}
