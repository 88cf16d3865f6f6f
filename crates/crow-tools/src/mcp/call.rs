//! One request to a server, a call of its tool above all, whatever ends it.

use std::{pin::pin, sync::Arc, time::Duration};

use crow_core::{Content, Outcome};
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
    connect::cause,
    http,
    link::Link,
    listing::plain,
    outcome::{Answer, outcome},
    server::Server,
};
use crate::{Progress, ToolCx, tool::CANCELLED};

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
pub(super) struct Asking<'a> {
    pub(super) cut: &'a CancellationToken,
    pub(super) progress: &'a (dyn Fn(String) + Send + Sync),
}

/// Has a server run a tool.
pub(super) async fn call(
    server: &Server,
    tool: &str,
    arguments: &Map<String, Value>,
    cx: ToolCx<'_>,
) -> Outcome {
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.clone());
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let shows = |text| (cx.progress)(Progress::Shows(vec![Content::Text(text)]));
    let name = &server.name;
    match ask(server, request, Asking { cut: cx.cut, progress: &shows }).await {
        Ok(ServerResult::CallToolResult(result)) => outcome(Answer::Result(result)),
        Ok(ServerResult::EmptyResult(_)) => outcome(Answer::Odd(Value::Object(Map::new()))),
        Ok(ServerResult::CustomResult(odd)) => outcome(Answer::Odd(odd.0)),
        Ok(ServerResult::InputRequiredResult(_)) => Outcome::failed(format!(
            "the MCP server {name} wants to ask the person something, which it cannot here"
        )),
        Ok(_) => Outcome::failed(format!("the MCP server {name} gave an answer that is no result of a tool")),
        Err(why) => Outcome::failed(why),
    }
}

/// Asks a server, which is started again where it has ended. The other side is why there is no answer.
pub(super) async fn ask(
    server: &Server,
    request: ClientRequest,
    asking: Asking<'_>,
) -> Result<ServerResult, String> {
    let name = &server.name;
    let link = tokio::select! {
        biased;
        () = asking.cut.cancelled() => return Err(CANCELLED.to_owned()),
        link = server.link() => link,
    };
    let link = link.map_err(|end| format!("the MCP server {name} is not there: {}", end.in_full()))?;
    match send((&link, server.silence_max), request, asking).await {
        Sent::Answered(answered) => match *answered {
            Ok(result) => Ok(result),
            Err(error) => Err(why_not(server, &link, error).await),
        },
        Sent::Cancelled => Err(CANCELLED.to_owned()),
        Sent::Silent => {
            let seconds = server.silence_max.as_secs_f64();
            Err(format!("stopped: the MCP server {name} said nothing for {seconds} s"))
        }
    }
}

/// How sending a request went.
enum Sent {
    Answered(Box<Result<ServerResult, ServiceError>>),
    Cancelled,
    Silent,
}

async fn send((link, silence_max): (&Link, Duration), request: ClientRequest, asking: Asking<'_>) -> Sent {
    let handle = match link.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await {
        Ok(handle) => handle,
        Err(error) => return Sent::Answered(Box::new(Err(error))),
    };
    let mut progress = link.heard.progress_of(handle.progress_token.clone());
    let id = handle.id.clone();
    let mut answer = pin!(handle.await_response());
    let mut silent_at = Instant::now() + silence_max;
    loop {
        tokio::select! {
            biased;
            answered = &mut answer => return Sent::Answered(Box::new(answered)),
            () = asking.cut.cancelled() => {
                give_up(link, id, "the turn was cancelled").await;
                return Sent::Cancelled;
            }
            text = progress.next() => {
                silent_at = Instant::now() + silence_max;
                (asking.progress)(text);
            }
            () = sleep_until(silent_at) => {
                give_up(link, id, "it took too long").await;
                return Sent::Silent;
            }
        }
    }
}

/// Tells the server that nobody waits any more.
async fn give_up(link: &Link, id: RequestId, why: &str) {
    let params = CancelledNotificationParam::new(Some(id), Some(why.to_owned()));
    // Whoever does not hear it is ended with the session.
    let _ = timeout(GOODBYE, link.peer.notify_cancelled(params)).await;
}

async fn why_not(server: &Server, link: &Arc<Link>, error: ServiceError) -> String {
    let name = &server.name;
    #[expect(clippy::wildcard_enum_match_arm, reason = "the SDK may add to its errors")]
    match error {
        ServiceError::McpError(error) => {
            let message = plain(&error.message).chars().take(MESSAGE_CHARS_MAX).collect::<String>();
            format!("the MCP server {name} refused the call: {message}")
        }
        ServiceError::TransportSend(error) if link.is_open() => {
            let why = cause(error.error.as_ref());
            let hint = if why == http::WANTS_TO_KNOW {
                format!("; sign in with `crow-cli auth {name}`")
            } else {
                String::new()
            };
            format!("could not ask the MCP server {name}: {why}{hint}")
        }
        _ => match timeout(LAST_WORDS, server.end_of(link)).await {
            Ok(end) => format!("the MCP server {name} ended before it answered: {}", end.in_full()),
            Err(_) => format!("the MCP server {name} did not answer: the connection broke"),
        },
    }
}
