//! An agent that is connected.

use crow_acp::{AcpAgentCapabilities, SessionInfo};
use crow_core::SessionId;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::connection::{AgentHandle, wait_for_end};
use crate::error::AgentError;
use crate::router::{RoutedTurn, RouterCommand, TurnItem};
use crate::session::{AgentSession, SessionReplay};

/// Updates of a replay between the router and its collection.
const REPLAY_LEN: usize = 256;

/// Updates of a replay that are collected; the newest of a longer one are dropped.
const REPLAY_UPDATES_MAX: usize = 100_000;

/// An agent that is connected. Clones share it. It runs until the last clone, its sessions and its turns are dropped.
#[derive(Debug, Clone)]
pub struct Agent {
    pub(crate) handle: AgentHandle,
}

impl Agent {
    /// Returns what the agent supports.
    pub fn capabilities(&self) -> AcpAgentCapabilities {
        self.handle.connection.agent.capabilities()
    }

    /// Opens a new session in the directory of the options.
    pub async fn new_session(&self) -> Result<AgentSession, AgentError> {
        let connection = &self.handle.connection;
        let opened = connection.request("session/new", connection.agent.new_session(&connection.cwd)).await?;
        self.announce_session(&opened.session).await;
        Ok(AgentSession::new(self.handle.clone(), opened.session, opened.options))
    }

    /// Continues a stored session without its replay: by `session/resume`, or by `session/load` for agents that support
    /// only that.
    ///
    /// # Errors
    /// If the agent supports neither, or does not know the session.
    pub async fn resume_session(&self, session: impl Into<String>) -> Result<AgentSession, AgentError> {
        let session = SessionId::new(session);
        self.announce_session(&session).await;
        let connection = &self.handle.connection;
        let resumed = connection.agent.continue_session(&session, &connection.cwd);
        connection.request("session/resume", resumed).await?;
        Ok(AgentSession::new(self.handle.clone(), session, Vec::new()))
    }

    /// Loads a stored session, with everything that happened in it.
    ///
    /// # Errors
    /// If the agent does not support it, or does not know the session.
    pub async fn load_session(&self, session: impl Into<String>) -> Result<SessionReplay, AgentError> {
        let session = SessionId::new(session);
        self.announce_session(&session).await;
        let connection = &self.handle.connection;
        let (items, mut received) = mpsc::channel(REPLAY_LEN);
        let turn = RoutedTurn { items, questions_end: CancellationToken::new() };
        connection.send_command(RouterCommand::BeginTurn { session: session.clone(), turn }).await;
        let opened = async {
            let loading = connection.agent.load_session(&session, &connection.cwd);
            let opened = connection.request("session/load", loading).await;
            connection.end_turn(&session).await;
            opened
        };
        let replayed = async {
            let (mut updates, mut is_truncated) = (Vec::new(), false);
            // The router drops the sender at the end.
            while let Some(item) = received.recv().await {
                match item {
                    TurnItem::Update(_) if updates.len() >= REPLAY_UPDATES_MAX => is_truncated = true,
                    TurnItem::Update(update) => updates.push(update),
                    TurnItem::Raw(_) | TurnItem::End(_) => {}
                }
            }
            (updates, is_truncated)
        };
        let (opened, (updates, is_truncated)) = tokio::join!(opened, replayed);
        let session = AgentSession::new(self.handle.clone(), session, opened?.options);
        Ok(SessionReplay { session, updates, is_truncated })
    }

    /// Lists the newest stored sessions of the directory of the options.
    pub async fn list_sessions(&self) -> Result<Vec<SessionInfo>, AgentError> {
        let connection = &self.handle.connection;
        connection.request("session/list", connection.agent.list_sessions(&connection.cwd)).await
    }

    /// Closes the connection and waits until the program has ended: it gets its time to exit, then SIGTERM, then SIGKILL.
    /// Running turns fail with [`AgentError::ShutDown`].
    pub async fn shut_down(self) {
        self.handle.connection.closing.cancel();
        // The reason is this call, or that it had ended before.
        wait_for_end(self.handle.connection.end.clone()).await;
    }

    /// Announces the directory of a session to the router, before its agent can use files.
    async fn announce_session(&self, session: &SessionId) {
        let connection = &self.handle.connection;
        let (session, cwd) = (session.clone(), connection.cwd.clone());
        connection.send_command(RouterCommand::OpenSession { session, cwd }).await;
    }
}
