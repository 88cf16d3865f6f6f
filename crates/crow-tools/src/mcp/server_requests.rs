//! Requests of a server to the user or the model. Each belongs to a running call and ends with it.

use crow_core::{SamplingReply, SamplingRequest, ServerElicitation, ServerElicitationOutcome};
use tokio::sync::{mpsc, oneshot};

use super::session_port::{McpSessionPort, ServerRequestFuture};

/// Requests of one call that wait while another is answered; a server asks one after the other.
pub(super) const WAITING_REQUESTS_MAX: usize = 8;

/// Requests of one call to the user. A wizard has a handful of pages.
const ELICITATIONS_MAX: u32 = 16;

/// Requests of one call to the model, which the user pays for.
const SAMPLINGS_MAX: u32 = 16;

/// A request, with the sender of its answer.
#[derive(Debug)]
pub(super) enum ServerRequest {
    Elicit { request: ServerElicitation, answer: oneshot::Sender<ServerElicitationOutcome> },
    Sample { request: SamplingRequest, answer: oneshot::Sender<Result<SamplingReply, String>> },
}

/// The requests of a server during one call, one at a time. Dropping it withdraws them.
pub(super) struct ServerExchange<'a> {
    session: Option<&'a dyn McpSessionPort>,
    /// The request that is being answered.
    current: Option<ServerRequestFuture<'a, ()>>,
    n_elicitations: u32,
    n_samplings: u32,
}

impl<'a> ServerExchange<'a> {
    pub(super) fn new(session: Option<&'a dyn McpSessionPort>) -> Self {
        Self { session, current: None, n_elicitations: 0, n_samplings: 0 }
    }

    /// Whether the server waits for an answer.
    pub(super) fn is_busy(&self) -> bool {
        self.current.is_some()
    }

    /// Completes when a request was received or answered. Cancel safe.
    pub(super) async fn advance(&mut self, requests: &mut mpsc::Receiver<ServerRequest>) {
        if let Some(current) = &mut self.current {
            current.await;
            self.current = None;
            return;
        }
        match (requests.recv().await, self.session) {
            (Some(request), Some(session)) => self.current = self.begin_request(request, session),
            (Some(_), None) | (None, _) => std::future::pending().await,
        }
    }

    fn begin_request(
        &mut self,
        request: ServerRequest,
        session: &'a dyn McpSessionPort,
    ) -> Option<ServerRequestFuture<'a, ()>> {
        let too_many = |limit: u32| format!("one call may ask at most {limit} times");
        match request {
            ServerRequest::Elicit { answer, .. } if self.n_elicitations == ELICITATIONS_MAX => {
                let reason = too_many(ELICITATIONS_MAX);
                send_answer(answer, ServerElicitationOutcome::Unavailable { reason });
                None
            }
            ServerRequest::Sample { answer, .. } if self.n_samplings == SAMPLINGS_MAX => {
                send_answer(answer, Err(too_many(SAMPLINGS_MAX)));
                None
            }
            ServerRequest::Elicit { request, answer } => {
                self.n_elicitations += 1;
                Some(Box::pin(async move { forward_answer(session.elicit(request), answer).await }))
            }
            ServerRequest::Sample { request, answer } => {
                self.n_samplings += 1;
                Some(Box::pin(async move { forward_answer(session.sample(request), answer).await }))
            }
        }
    }
}

/// Waits for an answer and sends it; ends early when the server no longer waits.
async fn forward_answer<T>(pending: ServerRequestFuture<'_, T>, mut answer: oneshot::Sender<T>) {
    let value = tokio::select! {
        biased;
        () = answer.closed() => return,
        value = pending => value,
    };
    send_answer(answer, value);
}

fn send_answer<T>(answer: oneshot::Sender<T>, value: T) {
    if answer.send(value).is_err() {
        tracing::debug!("an MCP server no longer waits for its answer");
    }
}
