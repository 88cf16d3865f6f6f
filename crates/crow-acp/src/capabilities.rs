//! The capabilities of both ends, as declared in `initialize`. Undeclared capabilities are never used.

use std::sync::{Arc, OnceLock};

/// Client capabilities beyond the baseline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AcpClientCapabilities {
    /// Reads files, including unsaved buffers.
    pub reads_files: bool,
    /// Writes files through its buffers.
    pub writes_files: bool,
    /// Runs commands in its own terminals.
    pub terminals: bool,
    /// Shows the output of commands that run in Crow while they run.
    pub terminal_output: bool,
    /// Shows notices.
    pub notices: bool,
    /// Shows compactions.
    pub compactions: bool,
    /// Supports forms (elicitation).
    pub forms: bool,
    /// Shows the sessions that a session starts.
    pub children: bool,
    /// Wants the tokens that a session has used with each update of its usage, as a parent gets them.
    pub session_tokens: bool,
    /// The depth in the tree of agents, if the client is Crow and keeps the tree's budget.
    pub tree_depth: Option<u32>,
    /// Can start this program in a terminal to authenticate.
    pub terminal_auth: bool,
    /// Supports that in the older form, as a whole command line.
    pub terminal_auth_by_command: bool,
}

/// The client's part of `initialize`.
#[derive(Debug, Clone)]
pub struct ClientInfo {
    /// The name of the program for the agent.
    pub name: &'static str,
    pub version: &'static str,
    pub capabilities: AcpClientCapabilities,
    /// The name of the agent in its questions; `None` if the user knows who asks.
    pub agent_name: Option<String>,
    /// Whether the client also wants each update as raw JSON.
    pub wants_raw_updates: bool,
}

/// The agent's capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AcpAgentCapabilities {
    /// Supports `session/load`, with replay.
    pub load_session: bool,
    /// Supports `session/resume`, without replay.
    pub resume_session: bool,
    /// Accepts steering input during a turn.
    pub steering: bool,
    /// Supports `session/fork`.
    pub fork_session: bool,
    /// Supports `session/list`.
    pub list_sessions: bool,
    /// Accepts images in prompts.
    pub reads_images: bool,
    /// Lists earlier prompts, and forks a session before one of them; an extension.
    pub earlier_prompts: bool,
}

/// The capabilities of a connection's client: none until `initialize`, and constant from then on.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedCapabilities(Arc<OnceLock<AcpClientCapabilities>>);

impl SharedCapabilities {
    /// Sets the capabilities of the first `initialize`; a second one changes nothing.
    pub(crate) fn set_once(&self, capabilities: AcpClientCapabilities) {
        if self.0.set(capabilities).is_err() {
            tracing::debug!("the client sent `initialize` again; its capabilities are unchanged");
        }
    }

    pub(crate) fn get(&self) -> AcpClientCapabilities {
        self.0.get().copied().unwrap_or_default()
    }
}
