//! The events that a client receives from an agent, and its answers.

use std::borrow::Cow;

use crow_core::{
    CommandInfo, GrantOffer, PlanEntry, ReportOutcome, SessionId, ToolCallContent, ToolCallStatus, ToolKind,
};
use serde_json::Value;
use tokio::sync::oneshot;

use super::access::ClientAccessRequest;
use crate::form::{ElicitationForm, ElicitationOutcome};
use crate::outbox::PermissionSubject;

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
    /// The raw JSON of an update, if requested; follows the parsed one.
    RawUpdate(Value),
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

/// A parsed update of any agent.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentUpdate {
    /// The user's prompt, in a replay.
    Prompt(String),
    /// Text of the model.
    Text(String),
    /// Thinking of the model.
    Thought(String),
    /// A tool call, new or changed; absent fields are unchanged.
    Call {
        /// The agent's ID.
        id: String,
        /// A title of one line.
        title: Option<String>,
        /// Determines the icon.
        kind: Option<ToolKind>,
        status: Option<ToolCallStatus>,
        content: Option<Vec<ToolCallContent>>,
        /// The arguments.
        input: Option<Value>,
    },
    /// The whole plan.
    Plan(Vec<PlanEntry>),
    /// The session's title.
    Title(String),
    /// Context usage.
    Usage {
        /// Tokens in context.
        used: u64,
        /// The model's context window.
        size: u64,
        /// Tokens used by the session and its children so far, if the agent reports them.
        tokens_spent: Option<u64>,
        /// Cost of the session so far in billionths of a US dollar, if the agent reports it.
        cost: Option<u64>,
        /// True if the context usage is an estimate.
        is_estimate: bool,
    },
    /// The current mode.
    Mode(String),
    /// The available commands.
    Commands(Vec<CommandInfo>),
    /// A notice for the user.
    Notice(String),
    /// The result of a compaction.
    Compaction(String),
    /// The outcome of the work that was just reported.
    Outcome(ReportOutcome),
}

/// A call that needs the user's approval.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentPermissionRequest {
    pub subject: PermissionSubject,
    /// The agent's ID of the call.
    pub call: String,
    pub title: String,
    /// Determines the icon.
    pub kind: ToolKind,
    /// The arguments.
    pub input: Option<Value>,
    pub content: Vec<ToolCallContent>,
    pub options: Vec<PermissionOption>,
    /// The grants that an approval would be remembered as, if the agent is Crow.
    pub offer: Option<GrantOffer>,
}

impl AgentPermissionRequest {
    /// Finds the option that allows this call and nothing else.
    pub fn allow_once(&self) -> Option<PermissionAnswer> {
        let option = self.options.iter().find(|choice| choice.allows && !choice.always)?;
        Some(PermissionAnswer::Selected(option.id.clone()))
    }

    /// Returns the scope of an answer to another Crow's question, beyond the call.
    pub fn grant_scope(&self, answer: &PermissionAnswer) -> Option<GrantScope> {
        match answer {
            PermissionAnswer::Selected(id) => crate::v1::grant_scope(id),
            PermissionAnswer::Unavailable { .. } => None,
        }
    }
}

/// The scope of an approval beyond its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantScope {
    Session,
    /// Permanently for this project.
    Project,
}

/// A client's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionAnswer {
    /// The ID of an option.
    Selected(String),
    /// No user could be asked.
    Unavailable {
        /// The reason, to be shown in parentheses.
        reason: Cow<'static, str>,
    },
}

/// An option of a permission request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionOption {
    pub id: String,
    pub name: String,
    /// Whether it approves.
    pub allows: bool,
    /// Whether it applies from now on.
    pub always: bool,
}
/// The stop reason of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    EndTurn,
    /// The output limit was reached.
    MaxTokens,
    /// The limit of model requests was reached.
    MaxTurnRequests,
    /// The model refused.
    Refusal,
    Cancelled,
}

impl StopReason {
    /// Returns the reason as in the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EndTurn => "end_turn",
            Self::MaxTokens => "max_tokens",
            Self::MaxTurnRequests => "max_turn_requests",
            Self::Refusal => "refusal",
            Self::Cancelled => "cancelled",
        }
    }
}
