//! A session as an agent opened it, with its configuration options, and copies of it.

use std::path::Path;

use agent_client_protocol as sdk;
use crow_core::{Failure, FailureKind, MessageId, SessionId};
use sdk::v1::schema as wire;

use super::AgentConnection;
use crate::{
    config_option::ConfigOption,
    incoming::EarlierPrompt,
    v1::{self, ListPromptsRequest},
};

/// A session as an agent opened it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedSession {
    /// The agent's ID.
    pub session: SessionId,
    pub options: Vec<ConfigOption>,
}

impl OpenedSession {
    /// Finds an option by its ID or its category.
    pub fn find_option(&self, id_or_category: &str) -> Option<&ConfigOption> {
        let by_category = || self.options.iter().find(|option| option.category == Some(id_or_category));
        self.options.iter().find(|option| option.id == id_or_category).or_else(by_category)
    }
}

impl AgentConnection {
    /// Continues a stored session with the capabilities that the agent has. Some agents declare that they can resume
    /// sessions, and can only load them.
    pub async fn continue_session(&self, session: &SessionId, cwd: &Path) -> Result<(), Failure> {
        let capabilities = self.capabilities();
        if capabilities.resume_session {
            let result = self.resume_session(session, cwd).await;
            if result.is_ok() || !capabilities.load_session {
                return result;
            }
        }
        if capabilities.load_session {
            return self.load_session(session, cwd).await.map(drop);
        }
        let reason = "this agent cannot resume a session; start a new one";
        Err(Failure::new(FailureKind::InvalidValue, reason))
    }

    /// Forks a stored session under a new ID.
    pub async fn fork_session(&self, session: &SessionId, cwd: &Path) -> Result<OpenedSession, Failure> {
        let response = self.send_request(wire::ForkSessionRequest::new(v1::session_id(session), cwd)).await?;
        let session = SessionId::new(&*response.session_id.0);
        Ok(OpenedSession { session, options: v1::opened_options(response.config_options, response.modes) })
    }

    /// Forks a stored session up to a prompt of its user.
    pub async fn fork_before(
        &self,
        session: &SessionId,
        before: &MessageId,
        cwd: &Path,
    ) -> Result<OpenedSession, Failure> {
        let request = wire::ForkSessionRequest::new(v1::session_id(session), cwd);
        let response = self.send_request(request.meta(v1::fork_end_meta(before))).await?;
        let session = SessionId::new(&*response.session_id.0);
        Ok(OpenedSession { session, options: v1::opened_options(response.config_options, response.modes) })
    }

    /// Lists the prompts that a session can be forked before, newest first.
    pub async fn list_prompts(&self, session: &SessionId) -> Result<Vec<EarlierPrompt>, Failure> {
        let request = ListPromptsRequest { session_id: v1::session_id(session) };
        self.send_request(request).await.map(v1::earlier_prompts)
    }
}
