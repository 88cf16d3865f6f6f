//! What a client hears from an agent, and what it answers.

use std::borrow::Cow;

use crow_core::{
    CommandInfo, GrantOffer, PlanEntry, ReportOutcome, SessionId, ToolCallContent, ToolCallStatus, ToolKind,
};
use serde_json::Value;
use tokio::sync::oneshot;

use super::wanted::ClientAccessRequest;
use crate::form::{ElicitationForm, ElicitationOutcome};
use crate::outbox::PermissionSubject;

/// What an agent tells a client.
#[derive(Debug)]
pub enum ClientEvent {
    /// An update of a session.
    Heard {
        /// Of which session.
        session: SessionId,
        /// Which message the words are of, where the agent says so.
        message: Option<String>,
        /// What was said.
        heard: AgentUpdate,
    },
    /// An update as it was said, where somebody wants to pass it on; heard after this.
    Said(Value),
    /// A question that needs the person; dropped, it is answered as one of a turn that was stopped.
    Permission {
        /// In which session.
        session: SessionId,
        /// What is asked.
        question: Box<AgentPermissionRequest>,
        /// Where the chosen id goes.
        answer: oneshot::Sender<PermissionAnswer>,
    },
    /// A question that the person answers by choosing or in their own words; dropped, it is answered as one of a turn
    /// that was stopped.
    Form {
        /// In which session.
        session: SessionId,
        /// What is asked.
        form: Box<ElicitationForm>,
        /// Where what came of it goes.
        answer: oneshot::Sender<ElicitationOutcome>,
    },
    /// The agent wants something of the client's files or terminals.
    Wanted(Box<ClientAccessRequest>),
    /// The agent wants to start a child of its own; dropped, it may not.
    Claim {
        /// For which session.
        session: SessionId,
        /// Where the number of the place goes, or why there is none.
        answer: oneshot::Sender<Result<u64, String>>,
    },
    /// A child of the agent has ended.
    Released {
        /// The number of its place.
        claim: u64,
    },
}

/// An update as a client hears it, from any agent.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentUpdate {
    /// What the person said, in replay.
    Prompt(String),
    /// The model's words.
    Text(String),
    /// The model's reasoning.
    Thought(String),
    /// A call, new or changed; what is absent stays as it was.
    Call {
        /// The agent's name for it.
        id: String,
        /// One line for the person.
        title: Option<String>,
        /// For the icon.
        kind: Option<ToolKind>,
        /// Where it stands.
        status: Option<ToolCallStatus>,
        /// What is shown in it.
        content: Option<Vec<ToolCallContent>>,
        /// What the model passed.
        input: Option<Value>,
    },
    /// The whole plan.
    Plan(Vec<PlanEntry>),
    /// The session's title.
    Title(String),
    /// How full the context is.
    Usage {
        /// Tokens in context.
        used: u64,
        /// The model's window.
        size: u64,
        /// Tokens that the session and its children have cost so far, where the agent tells.
        spent: Option<u64>,
        /// What the session has cost so far, in billionths of a US dollar, where the agent tells.
        cost: Option<u64>,
        /// Whether the tokens are the agent's guess.
        is_guess: bool,
    },
    /// The mode in force.
    Mode(String),
    /// The commands on offer.
    Commands(Vec<CommandInfo>),
    /// Something the person should know.
    Notice(String),
    /// How an attempt ended to make the conversation shorter for the model.
    Compaction(String),
    /// How the work ended that was just reported.
    Outcome(ReportOutcome),
}

/// A call that needs a person's word.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentPermissionRequest {
    /// What a yes would be about.
    pub subject: PermissionSubject,
    /// The agent's name for the call.
    pub call: String,
    /// What it would do.
    pub title: String,
    /// For the icon.
    pub kind: ToolKind,
    /// With what.
    pub input: Option<Value>,
    /// What is shown with it.
    pub content: Vec<ToolCallContent>,
    /// The answers on offer.
    pub choices: Vec<PermissionOption>,
    /// What a yes would be remembered as, where the agent is Crow and says so.
    pub offer: Option<GrantOffer>,
}

impl AgentPermissionRequest {
    /// Finds the answer that allows this call and nothing else.
    pub fn allow_once(&self) -> Option<PermissionAnswer> {
        let choice = self.choices.iter().find(|choice| choice.allows && !choice.always)?;
        Some(PermissionAnswer::Chosen(choice.id.clone()))
    }

    /// Returns how long an answer to a question of another Crow holds beyond the call.
    pub fn grant_scope(&self, answer: &PermissionAnswer) -> Option<GrantScope> {
        match answer {
            PermissionAnswer::Chosen(id) => crate::v1::grant_scope(id),
            PermissionAnswer::Nobody { .. } => None,
        }
    }
}

/// How long a yes holds beyond its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantScope {
    /// For the rest of the session.
    Session,
    /// Always in this project.
    Project,
}

/// What a client answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionAnswer {
    /// The id of one of the choices.
    Chosen(String),
    /// There is nobody to ask.
    Nobody {
        /// Why not, to stand in brackets.
        why: Cow<'static, str>,
    },
}

/// One answer on offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionOption {
    /// What to answer.
    pub id: String,
    /// What the person reads.
    pub name: String,
    /// Whether it is a yes.
    pub allows: bool,
    /// Whether it holds from here on.
    pub always: bool,
}
/// Why a turn stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The agent has nothing more to do.
    EndTurn,
    /// The output limit.
    MaxTokens,
    /// The limit of model calls.
    MaxTurnRequests,
    /// The model refused.
    Refusal,
    /// It was stopped.
    Cancelled,
}

impl StopReason {
    /// Spells the reason as the protocol does.
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
