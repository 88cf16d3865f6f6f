//! A turn: the stream of its events, and the task that waits for its end.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crow_acp::{PromptOutcome, StopReason, TurnScope};
use crow_core::{Failure, SessionId};
use futures_util::{Stream, StreamExt};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::connection::{AgentHandle, SharedConnection, wait_for_end};
use crate::error::AgentError;
use crate::event::{TurnCollector, TurnEvent, TurnOutcome};
use crate::prompt::PromptContent;
use crate::router::{RoutedTurn, RouterCommand, TurnItem};

/// Events of a turn that wait to be read; then the agent is held back.
const ITEMS_LEN: usize = 256;

/// The longest end of a turn that was cancelled: an agent kills its commands meanwhile.
const CANCEL_TIME_MAX: Duration = Duration::from_secs(30);

/// A turn, as a stream of its events. The last one is [`TurnEvent::End`] or an error.
///
/// Nothing is sent before it is polled. A turn that is not read holds its agent back, with all of its sessions.
/// Dropping it cancels the turn.
#[derive(Debug)]
#[must_use = "a turn begins when it is polled"]
pub struct AgentTurn {
    /// Keeps the agent running.
    handle: AgentHandle,
    state: TurnState,
    collector: TurnCollector,
    cancel: CancellationToken,
    _cancel_on_drop: DropGuard,
}

#[derive(Debug)]
enum TurnState {
    Prepared(Box<TurnTask>),
    Running(mpsc::Receiver<TurnItem>),
    Ended,
}

impl AgentTurn {
    pub(crate) fn new(
        handle: AgentHandle,
        session: SessionId,
        content: PromptContent,
        turn_lock: Arc<Mutex<()>>,
    ) -> Self {
        let cancel = CancellationToken::new();
        let task = TurnTask {
            connection: Arc::clone(&handle.connection),
            session,
            content,
            turn_lock,
            cancel: cancel.clone(),
        };
        Self {
            handle,
            state: TurnState::Prepared(Box::new(task)),
            collector: TurnCollector::default(),
            _cancel_on_drop: cancel.clone().drop_guard(),
            cancel,
        }
    }

    /// Waits for the next event; `None` after the last one.
    pub async fn next_event(&mut self) -> Result<Option<TurnEvent>, AgentError> {
        self.next().await.transpose()
    }

    /// Cancels the turn. Its last event is then a [`TurnEvent::End`] with [`StopReason::Cancelled`](crate::StopReason).
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Reads the turn to its end.
    pub async fn finish(mut self) -> Result<TurnOutcome, AgentError> {
        while let Some(event) = self.next_event().await? {
            if let TurnEvent::End(outcome) = event {
                return Ok(outcome);
            }
        }
        Err(AgentError::ShutDown)
    }
}

impl Stream for AgentTurn {
    type Item = Result<TurnEvent, AgentError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let turn = self.get_mut();
        if matches!(turn.state, TurnState::Prepared(_)) {
            let (items, received) = mpsc::channel(ITEMS_LEN);
            let prepared = std::mem::replace(&mut turn.state, TurnState::Running(received));
            if let TurnState::Prepared(task) = prepared {
                turn.handle.connection.runtime.spawn(task.run(items));
            }
        }
        let TurnState::Running(received) = &mut turn.state else { return Poll::Ready(None) };
        let event = match ready!(received.poll_recv(cx)) {
            Some(TurnItem::Update(update)) => Ok(turn.collector.apply(update)),
            Some(TurnItem::Raw(update)) => Ok(TurnEvent::Raw(update)),
            Some(TurnItem::End(result)) => {
                turn.state = TurnState::Ended;
                result.map(|outcome| TurnEvent::End(turn.collector.finish(outcome)))
            }
            None => {
                // The runtime is shutting down.
                turn.state = TurnState::Ended;
                Err(AgentError::ShutDown)
            }
        };
        Poll::Ready(Some(event))
    }
}

/// Sends a prompt and waits for its end, also after the stream was dropped: the next turn begins after it.
#[derive(Debug)]
struct TurnTask {
    connection: Arc<SharedConnection>,
    session: SessionId,
    content: PromptContent,
    turn_lock: Arc<Mutex<()>>,
    cancel: CancellationToken,
}

impl TurnTask {
    async fn run(mut self, items: mpsc::Sender<TurnItem>) {
        let lock = Arc::clone(&self.turn_lock);
        let end = wait_for_end(self.connection.end.clone());
        let cancel = self.cancel.clone();
        let result = tokio::select! {
            biased;
            error = end => Err(error),
            () = cancel.cancelled() => {
                Ok(PromptOutcome { stop_reason: StopReason::Cancelled, tokens_spent: None })
            }
            _running = lock.lock() => self.run_prompt(items.clone()).await,
        };
        if items.send(TurnItem::End(result)).await.is_err() {
            tracing::debug!("the end of a turn is no longer received");
        }
    }

    async fn run_prompt(&mut self, items: mpsc::Sender<TurnItem>) -> Result<PromptOutcome, AgentError> {
        let questions_end = CancellationToken::new();
        let turn = RoutedTurn { items, questions_end: questions_end.clone() };
        let session = self.session.clone();
        self.connection.send_command(RouterCommand::BeginTurn { session, turn }).await;
        let result = tokio::select! {
            biased;
            result = self.wait_for_response(&questions_end) => result,
            error = wait_for_end(self.connection.end.clone()) => Err(error),
        };
        questions_end.cancel();
        self.connection.end_turn(&self.session).await;
        result
    }

    async fn wait_for_response(
        &self,
        questions_end: &CancellationToken,
    ) -> Result<PromptOutcome, AgentError> {
        let connection = &self.connection;
        // The agent's tasks end with the turn: its connection may be closed after it.
        let parts = self.content.parts.clone();
        let response = connection.agent.send_prompt(&self.session, parts, TurnScope::WithTasks);
        tokio::pin!(response);
        let timed_out = tokio::select! {
            biased;
            result = &mut response => return self.explain(result).await,
            () = self.cancel.cancelled() => None,
            time_max = wait_for_turn_limit(connection.time_limits.turn) => Some(time_max),
        };
        connection.agent.cancel_turn(&self.session);
        // The agent learns of the cancellation before its questions end.
        questions_end.cancel();
        let result = match timeout(CANCEL_TIME_MAX, response).await {
            Ok(result) => self.explain(result).await,
            Err(_) => Err(AgentError::TimedOut { method: "session/cancel", time_max: CANCEL_TIME_MAX }),
        };
        match timed_out {
            Some(time_max) => result.and(Err(AgentError::TimedOut { method: "session/prompt", time_max })),
            None => result,
        }
    }

    async fn explain(&self, result: Result<PromptOutcome, Failure>) -> Result<PromptOutcome, AgentError> {
        match result {
            Ok(outcome) => Ok(outcome),
            Err(failure) => Err(self.connection.explain(failure).await),
        }
    }
}

/// Waits until a turn has taken as long as it may, and returns the limit.
async fn wait_for_turn_limit(time_max: Option<Duration>) -> Duration {
    match time_max {
        Some(time_max) => {
            sleep(time_max).await;
            time_max
        }
        None => std::future::pending().await,
    }
}

impl SharedConnection {
    /// Ends the routing of a turn, once everything that was received before is in its stream.
    pub(crate) async fn end_turn(&self, session: &SessionId) {
        let (flushed, done) = oneshot::channel();
        self.send_command(RouterCommand::EndTurn { session: session.clone(), flushed }).await;
        // It is dropped with the router, when the agent has ended.
        drop(done.await);
    }
}
