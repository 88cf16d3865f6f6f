//! The updates of an agent, as a client reads them.

use crow_core::{
    CommandInfo, PlanEntry, ReportOutcome, SessionId, ToolCallContent, ToolCallStatus, ToolKind,
};
use serde_json::Value;

use crate::config_option::ConfigOption;

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
    /// A session that this one started; absent fields are unchanged. Its updates have its ID.
    Child {
        session: SessionId,
        title: Option<String>,
        /// Whether it is working.
        is_running: Option<bool>,
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
    /// More output of a running call's command, if the client shows it.
    CallOutput {
        /// The agent's ID of the call.
        id: String,
        text: String,
    },
    /// The result of a call that has no content, as a text.
    CallResult {
        /// The agent's ID of the call.
        id: String,
        text: String,
    },
    /// The end of a call's command.
    CallExit {
        /// The agent's ID of the call.
        id: String,
        /// The exit code; `None` if a signal ended it.
        code: Option<i64>,
        signal: Option<String>,
    },
    /// The current mode.
    Mode(String),
    /// All configuration options with their values.
    Options(Vec<ConfigOption>),
    /// The available commands.
    Commands(Vec<CommandInfo>),
    /// A notice for the user.
    Notice(String),
    /// The result of a compaction.
    Compaction(String),
    /// The outcome of the work that was just reported.
    Outcome(ReportOutcome),
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
