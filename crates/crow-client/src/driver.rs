//! The task that owns an agent: starts or reaches it, keeps the connection, and ends the program. Must not know
//! sessions and turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crow_acp::{
    AgentConnection, AgentLauncher, AgentProgram, ClientEvent, ClientInfo, LineTransport, ProgramLoss,
    drive_agent,
};
use crow_core::Failure;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::error::AgentError;
use crate::options::AgentSource;
use crate::router::{EventRouter, RouterCommand};

/// Events between the connection and the router; a slow reader of a turn slows the agent down.
const EVENTS_LEN: usize = 256;

/// Time that the last message to an agent may take to be written; a pipe takes it at once if it is read.
const FLUSH_WAIT_MAX: Duration = Duration::from_millis(100);

/// The longest wait for telling a remote agent that its client leaves.
const LEAVE_WAIT_MAX: Duration = Duration::from_secs(2);

/// An agent that is to be started.
pub(crate) struct AgentDriver {
    pub(crate) source: AgentSource,
    pub(crate) client_info: ClientInfo,
    pub(crate) router: EventRouter,
    pub(crate) commands: mpsc::Receiver<RouterCommand>,
    /// Receives the connection once the agent has answered `initialize`.
    pub(crate) ready: oneshot::Sender<AgentConnection>,
    /// Receives the reason of the end, after the program has ended.
    pub(crate) end: watch::Sender<Option<AgentError>>,
    pub(crate) closing: CancellationToken,
}

impl AgentDriver {
    /// Runs the agent until it ends or is shut down.
    pub(crate) async fn run(self) {
        let Self { source, client_info, router, commands, ready, end, closing } = self;
        let name = source.name();
        let launcher = AgentLauncher::new(None);
        let tasks = TaskTracker::new();
        let opened = closing.run_until_cancelled(source.open(&launcher, &tasks)).await;
        let (lines, program) = match opened.unwrap_or(Err(AgentError::ShutDown)) {
            Ok(opened) => opened,
            Err(error) => {
                end.send_replace(Some(error));
                return;
            }
        };
        let (event_sender, events) = mpsc::channel(EVENTS_LEN);
        let agent = async {
            let (result, was_initialized) =
                keep_connection(lines, client_info, event_sender, ready, &closing).await;
            tasks.close();
            if timeout(LEAVE_WAIT_MAX, tasks.wait()).await.is_err() {
                tracing::debug!("the agent was not told that its client leaves");
            }
            let phase = if was_initialized { "during the session" } else { "during initialization" };
            end.send_replace(Some(end_agent(&name, phase, result.err(), program).await));
        };
        // What the agent sent before it ended is still read.
        tokio::join!(agent, closing.run_until_cancelled(router.run(events, commands)));
    }
}

/// Keeps the connection until it is lost or closed from here; returns also whether the agent was initialized.
async fn keep_connection(
    lines: LineTransport,
    client_info: ClientInfo,
    event_sender: mpsc::Sender<ClientEvent>,
    ready: oneshot::Sender<AgentConnection>,
    closing: &CancellationToken,
) -> (Result<(), Failure>, bool) {
    let was_initialized = Arc::new(AtomicBool::new(false));
    let (initialized, until_closing) = (was_initialized.clone(), closing.clone());
    let mut drive = Box::pin(drive_agent(lines, client_info, event_sender, async move |connection| {
        initialized.store(true, Ordering::Relaxed);
        let agent = connection.clone();
        // The caller may have given up the start; then the agent is being shut down.
        drop(ready.send(connection));
        let closed = until_closing.run_until_cancelled(agent.wait_closed()).await;
        closed.and_then(|()| agent.disconnect_failure())
    }));
    let result = tokio::select! {
        biased;
        result = &mut drive => match result {
            Ok(Some(failure)) | Err(failure) => Err(failure),
            Ok(None) => Ok(()),
        },
        () = closing.cancelled() => {
            // The last message is still written; an agent that does not read it must not delay the end.
            drop(timeout(FLUSH_WAIT_MAX, &mut drive).await);
            Ok(())
        }
    };
    (result, was_initialized.load(Ordering::Relaxed))
}

/// Ends the program of an agent and says why the agent has ended.
async fn end_agent(
    name: &str,
    phase: &str,
    failure: Option<Failure>,
    program: Option<AgentProgram>,
) -> AgentError {
    match (failure, program) {
        (None, None) => AgentError::ShutDown,
        (None, Some(program)) => {
            program.shut_down().await;
            AgentError::ShutDown
        }
        (Some(failure), None) => {
            let reason = failure.to_clause();
            let description = format!("the connection to the agent {name} was lost {phase}: {reason}");
            AgentError::Lost { description }
        }
        (Some(failure), Some(program)) => {
            let loss = ProgramLoss::collect(program, failure).await;
            AgentError::Lost { description: loss.describe(name, phase) }
        }
    }
}
