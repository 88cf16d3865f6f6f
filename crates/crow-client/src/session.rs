//! A session of an agent.

use std::sync::Arc;

use crow_acp::{AgentUpdate, ConfigOption, OpenedSession};
use crow_core::SessionId;
use tokio::sync::Mutex;

use crate::connection::AgentHandle;
use crate::error::AgentError;
use crate::prompt::PromptContent;
use crate::turn::AgentTurn;

/// A session of an agent. Clones share it.
#[derive(Debug, Clone)]
pub struct AgentSession {
    handle: AgentHandle,
    opened: OpenedSession,
    /// Held by the running turn.
    turn_lock: Arc<Mutex<()>>,
}

/// A session that was loaded, with everything that happened in it.
#[derive(Debug, Clone)]
pub struct SessionReplay {
    pub session: AgentSession,
    /// The prompts, replies and calls in order.
    pub updates: Vec<AgentUpdate>,
    /// True if there were more than 100,000; the newest are missing.
    pub is_truncated: bool,
}

impl AgentSession {
    pub(crate) fn new(handle: AgentHandle, session: SessionId, options: Vec<ConfigOption>) -> Self {
        Self { handle, opened: OpenedSession { session, options }, turn_lock: Arc::default() }
    }

    /// Returns the agent's ID of the session, with which it can be resumed.
    pub fn id(&self) -> &SessionId {
        &self.opened.session
    }

    /// Returns the configuration options, such as the mode and the model; empty for a resumed session.
    pub fn options(&self) -> &[ConfigOption] {
        &self.opened.options
    }

    /// Sets a configuration option by its ID or category, such as `mode`, `model` or `thought_level`.
    pub async fn set_option(&mut self, option: &str, value: &str) -> Result<(), AgentError> {
        let connection = &self.handle.connection;
        let id = self.opened.find_option(option).map_or(option, |known| known.id.as_str());
        let set = connection.agent.set_option(&self.opened.session, id, value);
        let options = connection.request("session/set_config_option", set).await?;
        if !options.is_empty() {
            self.opened.options = options;
        }
        Ok(())
    }

    /// Prepares a turn. It begins when the turn is first polled, after the turns of this session that run already.
    pub fn prompt(&self, content: impl Into<PromptContent>) -> AgentTurn {
        AgentTurn::new(
            self.handle.clone(),
            self.opened.session.clone(),
            content.into(),
            Arc::clone(&self.turn_lock),
        )
    }
}
