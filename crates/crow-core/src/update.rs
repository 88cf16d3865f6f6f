//! What a client is told while a session lives, in our own words.

use serde_json::{Map, Value};

use crate::{CallId, Content, Facets, MessageId, Part, PlanEntry, Status};

/// One thing to tell the client. Live and replay say the same updates; `acp` spells them.
#[derive(Debug, Clone, PartialEq)]
pub enum Update {
    /// What the person said, in replay.
    Prompt {
        /// Whose words.
        message: MessageId,
        /// What was said.
        part: Part,
    },
    /// More of the model's words.
    Text {
        /// Of which reply.
        message: MessageId,
        /// The next words.
        text: String,
    },
    /// More of the model's reasoning.
    Thought {
        /// Of which reply.
        message: MessageId,
        /// The next words.
        text: String,
    },
    /// A call appears.
    Call {
        /// Which.
        call: CallId,
        /// The tool's name.
        name: String,
        /// Its title, kind and places.
        facets: Facets,
        /// What the model passed.
        arguments: Map<String, Value>,
        /// Where it stands.
        status: Status,
        /// What is shown in it.
        content: Vec<Content>,
    },
    /// A call moved on.
    CallChanged {
        /// Which.
        call: CallId,
        /// Where it stands.
        status: Status,
        /// What is shown in it from here on; `None` leaves it as it is.
        content: Option<Vec<Content>>,
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
    },
    /// The mode in force.
    Mode(crate::Mode),
    /// Every option and what it stands at.
    Options(Options),
    /// The commands on offer.
    Commands(Vec<CommandInfo>),
    /// Something the person should know that is not the model's words.
    Notice(String),
}

/// A slash command on offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandInfo {
    /// Name without the slash.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What may follow it.
    pub hint: Option<String>,
}

/// The options of a session and what they stand at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How much the agent may do on its own.
    pub mode: crate::Mode,
    /// The model in use; `None` when none is configured.
    pub model: Option<String>,
    /// The models on offer.
    pub models: Vec<String>,
}
