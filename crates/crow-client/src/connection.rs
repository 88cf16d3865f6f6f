//! The connection that an agent's handle, its sessions and its turns share: requests with a time limit, and the reason
//! of the agent's end.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crow_acp::AgentConnection;
use crow_core::Failure;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::error::AgentError;
use crate::router::RouterCommand;

/// The longest end of a program after its connection was lost: time to exit by itself, SIGTERM, SIGKILL.
const END_WAIT_MAX: Duration = Duration::from_secs(5);

/// The limits of an agent's answers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeLimits {
    pub(crate) request: Duration,
    /// `None` if turns take as long as they take.
    pub(crate) turn: Option<Duration>,
}

/// A connection to an agent.
#[derive(Debug)]
pub(crate) struct SharedConnection {
    pub(crate) agent: AgentConnection,
    pub(crate) commands: mpsc::Sender<RouterCommand>,
    /// Set once the agent has ended.
    pub(crate) end: watch::Receiver<Option<AgentError>>,
    pub(crate) time_limits: TimeLimits,
    /// The directory of sessions.
    pub(crate) cwd: PathBuf,
    pub(crate) runtime: Handle,
    /// Cancelled when the agent is shut down.
    pub(crate) closing: CancellationToken,
}

/// Keeps an agent running: it is shut down when the last one is dropped.
#[derive(Debug, Clone)]
pub(crate) struct AgentHandle {
    pub(crate) connection: Arc<SharedConnection>,
    _keep_running: Arc<DropGuard>,
}

impl AgentHandle {
    pub(crate) fn new(connection: SharedConnection, guard: DropGuard) -> Self {
        Self { connection: Arc::new(connection), _keep_running: Arc::new(guard) }
    }
}

impl SharedConnection {
    /// Waits for the answer to a request, for its end, or for the end of the agent.
    pub(crate) async fn request<T>(
        &self,
        method: &'static str,
        answer: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, AgentError> {
        let time_max = self.time_limits.request;
        tokio::select! {
            biased;
            result = timeout(time_max, answer) => match result {
                Ok(Ok(value)) => Ok(value),
                Ok(Err(failure)) => Err(self.explain(failure).await),
                Err(_) => Err(AgentError::TimedOut { method, time_max }),
            },
            error = wait_for_end(self.end.clone()) => Err(error),
        }
    }

    /// Explains a failed request: by the agent's end, if it has disconnected.
    pub(crate) async fn explain(&self, failure: Failure) -> AgentError {
        if self.agent.disconnect_failure().is_none() && !self.closing.is_cancelled() {
            return AgentError::Rejected { failure };
        }
        let end = timeout(END_WAIT_MAX, wait_for_end(self.end.clone())).await;
        end.unwrap_or(AgentError::Lost { description: failure.message })
    }

    /// Sends a command to the router; after the end of the agent there is none.
    pub(crate) async fn send_command(&self, command: RouterCommand) {
        if self.commands.send(command).await.is_err() {
            tracing::debug!("the agent has ended; nothing is routed");
        }
    }
}

/// Waits until the agent has ended, and returns the reason.
pub(crate) async fn wait_for_end(mut end: watch::Receiver<Option<AgentError>>) -> AgentError {
    let reason = end.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone());
    // Without a reason the runtime is shutting down.
    reason.unwrap_or(AgentError::ShutDown)
}
