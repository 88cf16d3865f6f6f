//! One call of a server's tool, whatever ends it.

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

use super::{
    connect::cause,
    link::Link,
    outcome::{Answer, outcome},
    server::Server,
};
use crate::{Progress, ToolCx, tool::CANCELLED};

/// A server that works this long without a word hangs; progress starts the time anew.
const SILENCE_MAX: Duration = Duration::from_secs(600);

/// A server that does not even read that a call is over keeps nobody waiting.
const GOODBYE: Duration = Duration::from_secs(1);

/// How soon it is known why a connection is over: a program gets time to end by itself.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// More than any reason that is one; validation errors list every field.
const MESSAGE_CHARS_MAX: usize = 4000;

/// An answer as the SDK gives it.
type Answered = Result<ServerResult, ServiceError>;

/// Has a server run a tool.
pub(super) async fn call(
    server: &Server,
    tool: &str,
    arguments: &Map<String, Value>,
    cx: ToolCx<'_>,
) -> Outcome {
    let link = tokio::select! {
        biased;
        () = cx.cut.cancelled() => return Outcome::failed(CANCELLED),
        link = server.link() => link,
    };
    let link = match link {
        Ok(link) => link,
        Err(end) => {
            let name = &server.name;
            return Outcome::failed(format!("the MCP server {name} is not there: {}", end.in_full()));
        }
    };
    match ask(&link, tool, arguments, cx).await {
        Asked::Answered(answered) => told(server, &link, *answered).await,
        Asked::Cancelled => Outcome::failed(CANCELLED),
        Asked::Silent => {
            let minutes = SILENCE_MAX.as_secs() / 60;
            let name = &server.name;
            Outcome::failed(format!("stopped: the MCP server {name} said nothing for {minutes} minutes"))
        }
    }
}

/// How asking went.
enum Asked {
    Answered(Box<Answered>),
    Cancelled,
    Silent,
}

async fn ask(link: &Link, tool: &str, arguments: &Map<String, Value>, cx: ToolCx<'_>) -> Asked {
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.clone());
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let handle = match link.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await {
        Ok(handle) => handle,
        Err(error) => return Asked::Answered(Box::new(Err(error))),
    };
    let mut progress = link.heard.progress_of(handle.progress_token.clone());
    let id = handle.id.clone();
    let mut answer = pin!(handle.await_response());
    let mut silent_at = Instant::now() + SILENCE_MAX;
    loop {
        tokio::select! {
            biased;
            answered = &mut answer => return Asked::Answered(Box::new(answered)),
            () = cx.cut.cancelled() => {
                give_up(link, id, "the turn was cancelled").await;
                return Asked::Cancelled;
            }
            text = progress.next() => {
                silent_at = Instant::now() + SILENCE_MAX;
                (cx.progress)(Progress::Shows(vec![Content::Text(text)]));
            }
            () = sleep_until(silent_at) => {
                give_up(link, id, "it took too long").await;
                return Asked::Silent;
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

async fn told(server: &Server, link: &Arc<Link>, answered: Answered) -> Outcome {
    let name = &server.name;
    match answered {
        Ok(ServerResult::CallToolResult(result)) => outcome(Answer::Result(result)),
        Ok(ServerResult::EmptyResult(_)) => outcome(Answer::Odd(Value::Object(Map::new()))),
        Ok(ServerResult::CustomResult(odd)) => outcome(Answer::Odd(odd.0)),
        Ok(ServerResult::InputRequiredResult(_)) => Outcome::failed(format!(
            "the MCP server {name} wants to ask the person something, which it cannot here"
        )),
        Ok(_) => Outcome::failed(format!("the MCP server {name} gave an answer that is no result of a tool")),
        Err(ServiceError::McpError(error)) => {
            let message = error.message.chars().take(MESSAGE_CHARS_MAX).collect::<String>();
            Outcome::failed(format!("the MCP server {name} refused the call: {message}"))
        }
        Err(ServiceError::TransportSend(error)) if link.is_open() => {
            Outcome::failed(format!("could not ask the MCP server {name}: {}", cause(error.error.as_ref())))
        }
        Err(_) => match timeout(LAST_WORDS, server.end_of(link)).await {
            Ok(end) => {
                Outcome::failed(format!("the MCP server {name} ended before it answered: {}", end.in_full()))
            }
            Err(_) => Outcome::failed(format!("the MCP server {name} did not answer: the connection broke")),
        },
    }
}
