//! The events that a client receives from an agent.

use crow_core::SessionId;
use serde_json::Value;
use tokio::sync::oneshot;

use super::access::ClientAccessRequest;
use crate::agent_update::AgentUpdate;
use crate::form::{ElicitationForm, ElicitationOutcome};
use crate::permission::{AgentPermissionRequest, PermissionAnswer};

/// A message of an agent to a client.
#[derive(Debug)]
pub enum ClientEvent {
    /// An update of a session.
    Update {
        session: SessionId,
        /// The message that the text belongs to, if the agent says so.
        message: Option<String>,
        update: AgentUpdate,
    },
    /// The raw JSON of an update, if requested; precedes the parsed one.
    RawUpdate { session: SessionId, update: Value },
    /// A permission request for the user; dropping it answers as for a cancelled turn.
    Permission {
        session: SessionId,
        question: Box<AgentPermissionRequest>,
        /// Receives the ID of the chosen option.
        answer: oneshot::Sender<PermissionAnswer>,
    },
    /// A form for the user; dropping it answers as for a cancelled turn.
    Form { session: SessionId, form: Box<ElicitationForm>, answer: oneshot::Sender<ElicitationOutcome> },
    /// The agent wants to use the client's files or terminals.
    AccessRequest(Box<ClientAccessRequest>),
    /// The agent wants to start a child of its own; dropping this refuses it.
    Claim {
        session: SessionId,
        /// Receives the number of the slot, or the reason why there is none.
        answer: oneshot::Sender<Result<u64, String>>,
    },
    /// A child of the agent has ended.
    Release {
        /// The number of its slot.
        claim: u64,
    },
}
