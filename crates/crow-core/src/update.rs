//! Session updates: the events that a client receives, independent of the protocol.

use serde_json::{Map, Value};

use crate::{
    CallId, ContentPart, MessageId, PlanEntry, SessionId, ToolCallContent, ToolCallInfo, ToolCallStatus,
};

/// An event for the client. Live and replay send the same updates; `acp` encodes them.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionUpdate {
    /// A part of a prompt, in replay.
    Prompt {
        /// The prompt.
        message: MessageId,
        /// The part.
        part: ContentPart,
    },
    /// More text of a reply.
    Text {
        /// The reply.
        message: MessageId,
        /// The text.
        text: String,
    },
    /// The report of finished work, with suggested commands.
    Report {
        /// The ID, which is not stored.
        message: MessageId,
        /// The text.
        text: String,
        /// The outcome of the work.
        outcome: ReportOutcome,
        /// Suggested next commands, the likeliest first.
        next: Vec<SuggestedCommand>,
    },
    /// More of the model's reasoning.
    Thought {
        /// The reply.
        message: MessageId,
        /// The text.
        text: String,
    },
    /// A new call.
    Call {
        /// The call.
        call: CallId,
        /// The tool's name.
        name: String,
        /// Its title, kind and locations.
        info: ToolCallInfo,
        /// The arguments.
        arguments: Map<String, Value>,
        /// The status.
        status: ToolCallStatus,
        /// The content.
        content: Vec<ToolCallContent>,
        /// Whether output follows as [`SessionUpdate::Output`].
        streaming: OutputStreaming,
    },
    /// A change of a call.
    CallChanged {
        /// The call.
        call: CallId,
        /// The status.
        status: ToolCallStatus,
        /// The new content; `None` for no change.
        content: Option<Vec<ToolCallContent>>,
    },
    /// A call restored after a question in its place.
    CallRestored {
        /// The call.
        call: CallId,
        /// Its title, kind and locations.
        info: ToolCallInfo,
        /// The status.
        status: ToolCallStatus,
        /// The content.
        content: Vec<ToolCallContent>,
    },
    /// A child session, and whether it is running.
    Child {
        /// The child's session.
        child: SessionId,
        /// The title of its task.
        title: String,
        /// The working directory.
        cwd: String,
        /// Whether it is running.
        is_running: bool,
    },
    /// An update of a child's agent in its own session, in the protocol's format.
    Forwarded(Value),
    /// The whole plan.
    Plan(Vec<PlanEntry>),
    /// The session's title.
    Title(String),
    /// The time of the session's last change, in RFC 3339.
    LastChanged(String),
    /// A call runs in a terminal of the client.
    Terminal {
        /// The call.
        call: CallId,
        /// The client's terminal ID.
        id: String,
    },
    /// More output of a call.
    Output {
        /// The call.
        call: CallId,
        /// The output.
        text: String,
    },
    /// The program of a call with output has exited.
    Exited {
        /// The call.
        call: CallId,
        /// The exit code, if any.
        code: Option<i32>,
        /// The signal, if any.
        signal: Option<i32>,
    },
    /// The context usage.
    Usage {
        /// Tokens in context.
        used: u64,
        /// The model's context window.
        size: u64,
        /// Tokens used by the session and its children since it was opened.
        tokens_spent: Option<u64>,
        /// The cost of the session in billionths of a US dollar, if known.
        cost: Option<u64>,
        /// Whether the token count is an estimate.
        is_estimate: bool,
    },
    /// The current mode.
    Mode(crate::Mode),
    /// All options with their values.
    Options(SessionConfigOptions),
    /// The available commands.
    Commands(Vec<CommandInfo>),
    /// A notice by Crow.
    Notice(String),
    /// A compaction of the conversation.
    Compaction {
        /// The ID in the session; the same live and in replay.
        id: String,
        /// The stage.
        stage: CompactionStage,
        /// The stage as a sentence.
        text: String,
    },
}

/// The outcome of reported work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportOutcome {
    /// Complete.
    Done,
    /// Partly done.
    Incomplete,
    /// Not started.
    NotStarted,
}

impl ReportOutcome {
    const ALL: [Self; 3] = [Self::Done, Self::Incomplete, Self::NotStarted];

    /// Returns the word for clients and scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Incomplete => "left",
            Self::NotStarted => "refused",
        }
    }

    /// Parses the output of [`ReportOutcome::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == text)
    }
}

/// The stage of a compaction. Each started one ends in another stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompactionStage {
    /// Started.
    Started,
    /// The conversation was compacted.
    Done {
        /// The summary for the model.
        summary: Option<String>,
    },
    /// Nothing was changed.
    Failed,
    /// The user cancelled it; nothing was changed.
    Cancelled,
}

/// The display of a call's output while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputStreaming {
    /// As content of the call, or not at all.
    Off,
    /// Incrementally, as in a terminal in this directory.
    Live {
        /// The working directory.
        cwd: String,
    },
}

/// An available slash command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandInfo {
    /// The name without the slash.
    pub name: String,
    /// The description.
    pub description: String,
    /// The expected arguments.
    pub hint: Option<String>,
}

/// A suggested next command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuggestedCommand {
    /// The description.
    pub label: String,
    /// The name without the slash.
    pub command: String,
}

/// The options of a session with their values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionConfigOptions {
    /// The mode.
    pub mode: crate::Mode,
    /// The current model; `None` if none is configured.
    pub model: Option<String>,
    /// The available models.
    pub models: Vec<ModelInfo>,
    /// The reasoning effort of the model.
    pub thought_level: ThoughtLevel,
}

/// An available model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// The configured name.
    pub name: String,
    /// The provider.
    pub provider: String,
}

/// The reasoning effort of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThoughtLevel {
    /// The default of the configuration or the provider.
    #[default]
    Default,
    /// The least possible effort.
    Minimal,
    /// Low effort.
    Low,
    /// Medium effort.
    Medium,
    /// High effort.
    High,
}

impl ThoughtLevel {
    /// All levels, in display order.
    pub const ALL: [Self; 5] = [Self::Default, Self::Minimal, Self::Low, Self::Medium, Self::High];

    /// Returns the configuration word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// Parses a configuration word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == text)
    }

    /// Returns the value in a request; `None` for the default.
    pub fn reasoning_effort(self) -> Option<&'static str> {
        (self != Self::Default).then(|| self.as_str())
    }
}
