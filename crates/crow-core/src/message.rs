//! The elements of a conversation: prompts, replies, calls and results.

use std::fmt;

use serde_json::Value;

use crate::{CallId, CrowPart, MessageId, ToolArguments};

/// A part of a prompt or of a result, as the model gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentPart {
    /// Plain text.
    Text(String),
    /// An image; `data` is base64.
    Image {
        /// Media type, such as `image/png`.
        mime: String,
        /// The bytes in base64.
        data: String,
    },
    /// A link in a prompt.
    Link {
        /// The address, mostly `file://` with an optional `#L10:20`.
        uri: String,
        /// The client's name for it.
        name: String,
        /// Media type, if the client gave it.
        mime: Option<String>,
    },
    /// A resource in a prompt, with its text.
    Resource {
        /// The address.
        uri: String,
        /// The content.
        text: String,
        /// Media type, if the client gave it.
        mime: Option<String>,
    },
    /// A text that Crow adds to a prompt. Never created from input of a client, a server or a program.
    FromCrow {
        /// The kind of the text.
        kind: CrowPart,
        /// The text.
        text: String,
    },
}

impl ContentPart {
    /// Returns the kind of a part by Crow; `None` for an external part.
    pub fn crow_part(&self) -> Option<&CrowPart> {
        match self {
            Self::FromCrow { kind: what, .. } => Some(what),
            Self::Text(_) | Self::Image { .. } | Self::Link { .. } | Self::Resource { .. } => None,
        }
    }
}

/// A message of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The identifier in the session.
    pub id: MessageId,
    /// The parts, in order.
    pub parts: Vec<ContentPart>,
}

impl Prompt {
    /// Returns the text parts, for titles and search.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            ContentPart::Text(text)
            | ContentPart::Resource { text, .. }
            | ContentPart::FromCrow { text, .. } => Some(text.as_str()),
            ContentPart::Image { .. } | ContentPart::Link { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Whether any part is the user's; Crow also creates prompts.
    pub(crate) fn has_user_content(&self) -> bool {
        self.parts.iter().any(|part| part.crow_part().is_none())
    }
}

/// One answer of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The identifier in the session.
    pub id: MessageId,
    /// The reasoning, as far as the provider shows it.
    pub thought: String,
    /// The text to the user.
    pub text: String,
    /// The tool calls, in order.
    pub calls: Vec<ToolCall>,
    /// The end of the reply.
    pub end: ReplyEnd,
    /// The usage, if the provider gave it.
    pub usage: Option<TokenUsage>,
    /// The data that the provider requires back.
    pub provider_state: Option<ProviderState>,
    /// The configured name of the fallback model that answered; `None` for the session's model.
    pub fallback_model: Option<String>,
}

/// Opaque data of a reply that the provider requires back unchanged, such as signed reasoning.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderState {
    /// The model and provider that gave the data; it is sent to no other.
    pub model: String,
    /// The data, in the provider's format.
    pub items: Vec<Value>,
}

impl Reply {
    /// Returns the data for a model: empty unless that model gave it.
    pub fn provider_state_for(&self, model: &str) -> &[Value] {
        self.provider_state.as_ref().filter(|state| state.model == model).map_or(&[], |sealed| &sealed.items)
    }

    /// Whether the reply has no content.
    pub fn is_empty(&self) -> bool {
        self.thought.is_empty() && self.text.is_empty() && self.calls.is_empty()
    }
}

/// The end of a reply.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplyEnd {
    /// The model finished.
    Complete,
    /// Truncated by the output limit; its last call may be incomplete.
    OutputLimit,
    /// Truncated by Crow's size limit.
    SizeLimit,
    /// Withheld by the provider's filter.
    Refused,
    /// Cancelled by the user; the text so far stays.
    Cancelled,
    /// The request failed, or the stream was interrupted.
    Failed(Failure),
}

/// Tokens by the provider's count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenUsage {
    /// Tokens read, including cached ones.
    pub input: u64,
    /// Tokens written, including reasoning.
    pub output: u64,
    /// Tokens of `input` read from the provider's cache.
    pub cached: u64,
    /// Tokens of `input` written to the provider's cache.
    pub cache_written: u64,
    /// The cost in billionths of a US dollar, if known.
    pub cost: Option<u64>,
}

impl TokenUsage {
    /// Creates a usage without cache or cost.
    pub fn new(input: u64, output: u64) -> Self {
        Self { input, output, ..Self::default() }
    }

    /// Adds another usage. An unknown cost counts as none.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        let cost = match (self.cost, other.cost) {
            (Some(cost), Some(more)) => Some(cost.saturating_add(more)),
            (cost, more) => cost.or(more),
        };
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cached: self.cached.saturating_add(other.cached),
            cache_written: self.cache_written.saturating_add(other.cache_written),
            cost,
        }
    }

    /// Returns the tokens in context; `None` if the server reported no input.
    pub fn context_tokens(self) -> Option<u64> {
        (self.input > 0).then(|| self.total_tokens())
    }

    /// Returns the tokens read and written.
    pub fn total_tokens(self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

/// A failure, for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The kind, for callers that branch on it.
    pub kind: FailureKind,
    /// The event, its reason, and the next step.
    pub message: String,
}

impl Failure {
    /// Creates a failure.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

/// The kinds of failure that clients and scripts distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// No such session.
    SessionNotFound,
    /// A value outside the allowed range.
    InvalidValue,
    /// A login is required.
    AuthRequired,
    /// The provider rejected the key.
    ProviderAuth,
    /// The provider's rate limit.
    ProviderRate,
    /// The provider is overloaded.
    ProviderOverloaded,
    /// The provider rejected the request.
    ProviderRejected,
    /// The provider has no such model.
    ModelNotFound,
    /// The conversation exceeds the model's context window.
    ContextOverflow,
    /// The provider is unreachable, or the connection was interrupted.
    Connection,
    /// The provider's answer violates the protocol.
    Protocol,
    /// The database failed.
    Store,
    /// The configuration is missing or invalid.
    Config,
    /// An internal error.
    Internal,
}

impl FailureKind {
    const ALL: [Self; 14] = [
        Self::SessionNotFound,
        Self::InvalidValue,
        Self::AuthRequired,
        Self::ProviderAuth,
        Self::ProviderRate,
        Self::ProviderOverloaded,
        Self::ProviderRejected,
        Self::ModelNotFound,
        Self::ContextOverflow,
        Self::Connection,
        Self::Protocol,
        Self::Store,
        Self::Config,
        Self::Internal,
    ];

    /// Parses the output of [`FailureKind::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Returns the value of `data.kind` in an error.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SessionNotFound => "session_not_found",
            Self::InvalidValue => "invalid_value",
            Self::AuthRequired => "auth_required",
            Self::ProviderAuth => "provider_auth",
            Self::ProviderRate => "provider_rate",
            Self::ProviderOverloaded => "provider_overloaded",
            Self::ProviderRejected => "provider_rejected",
            Self::ModelNotFound => "model_not_found",
            Self::ContextOverflow => "context_overflow",
            Self::Connection => "connection",
            Self::Protocol => "protocol",
            Self::Store => "store",
            Self::Config => "config",
            Self::Internal => "internal",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A tool call of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// Our identifier.
    pub id: CallId,
    /// The provider's identifier, returned with the result; providers reuse these.
    pub provider_id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments.
    pub arguments: ToolArguments,
}

/// A tool as described to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name.
    pub name: String,
    /// The description for the model.
    pub description: String,
    /// The JSON schema of the arguments, an object.
    pub parameters: Value,
}

/// The kind of a tool, for the client's icon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
    /// Reads files.
    Read,
    /// Changes files.
    Edit,
    /// Searches.
    Search,
    /// Runs a program.
    Execute,
    /// Thinks or plans.
    Think,
    /// Fetches external data.
    Fetch,
    /// Anything else.
    Other,
}

/// A file location of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLocation {
    /// Absolute path.
    pub path: String,
    /// Line, from 1.
    pub line: Option<u32>,
}

/// Information about a call before it runs: what the client shows, and the basis of the permission decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCallInfo {
    /// One line for the user.
    pub title: String,
    /// The kind of the tool.
    pub kind: ToolKind,
    /// The affected files.
    pub locations: Vec<FileLocation>,
    /// The access that the call needs.
    pub access: ToolAccess,
}

/// The access of a call if it ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolAccess {
    /// Nothing outside the agent.
    Nothing,
    /// Reads these absolute paths, with links resolved.
    Reads(Vec<String>),
    /// Changes these absolute paths, with links resolved.
    Writes(Vec<String>),
    /// Runs a shell command.
    Runs(String),
    /// Calls a tool of an MCP server, with unknown effects.
    Calls {
        /// The server's name.
        server: String,
        /// The tool's name on the server.
        tool: String,
    },
    /// Fetches a web page.
    Fetches {
        /// The host, with a port other than the default.
        site: String,
        /// The location of the site.
        reach: SiteReach,
    },
    /// Sends a query to the configured search service.
    Searches,
}

/// The location of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SiteReach {
    /// On the public internet.
    Public,
    /// On this machine, in its network, or configured by the user.
    Private,
}

/// The result of a call, for the model and for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The status.
    pub status: ToolCallStatus,
    /// The content for the model.
    pub for_model: Vec<ContentPart>,
    /// The content for the client.
    pub for_client: Vec<ToolCallContent>,
    /// The new plan, if the call made one.
    pub plan: Option<Vec<PlanEntry>>,
}

impl ToolResult {
    /// Creates a success with the same text for both.
    pub fn success(text: impl Into<String>) -> Self {
        Self::with_status(ToolCallStatus::Completed, text)
    }

    /// Creates a failure with the same text for both.
    pub fn failure(text: impl Into<String>) -> Self {
        Self::with_status(ToolCallStatus::Failed, text)
    }

    /// Appends a line to the text for both.
    #[must_use]
    pub fn with_note(mut self, note: &str) -> Self {
        let append_note = |text: &str| format!("{}\n{note}", text.trim_end_matches('\n'));
        if let Some(ContentPart::Text(text)) = self.for_model.last_mut() {
            *text = append_note(text);
        } else {
            self.for_model.push(ContentPart::Text(note.to_owned()));
        }
        if let Some(ToolCallContent::Text(text)) = self.for_client.last_mut() {
            *text = append_note(text);
        } else {
            self.for_client.push(ToolCallContent::Text(note.to_owned()));
        }
        self
    }

    fn with_status(status: ToolCallStatus, text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            status,
            for_model: vec![ContentPart::Text(text.clone())],
            for_client: vec![ToolCallContent::Text(text)],
            plan: None,
        }
    }
}

/// The status of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolCallStatus {
    /// Announced, possibly waiting for permission.
    Pending,
    /// Running.
    InProgress,
    /// Succeeded.
    Completed,
    /// Failed or cancelled.
    Failed,
}

impl ToolCallStatus {
    /// Returns the name for clients and scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

/// A part of a call's content for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolCallContent {
    /// Text.
    Text(String),
    /// An image; `data` is base64.
    Image {
        /// Media type.
        mime: String,
        /// The bytes in base64.
        data: String,
    },
    /// A change of a file, with its old and new text.
    Diff {
        /// Absolute path.
        path: String,
        /// The text before; `None` for a new file.
        old: Option<String>,
        /// The text after.
        new: String,
    },
}

/// An entry of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanEntry {
    /// The task.
    pub text: String,
    /// The progress.
    pub status: PlanStatus,
    /// The priority.
    pub priority: PlanPriority,
    /// Additional data for clients: an object.
    pub meta: Option<Value>,
}

impl PlanEntry {
    /// Creates an entry with medium priority.
    pub fn new(text: impl Into<String>, status: PlanStatus) -> Self {
        Self { text: text.into(), status, priority: PlanPriority::Medium, meta: None }
    }
}

/// The priority of a plan entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanPriority {
    /// Others depend on it.
    High,
    /// The usual priority.
    Medium,
    /// Optional.
    Low,
}

/// The progress of a plan entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanStatus {
    /// Not started.
    Pending,
    /// In progress.
    InProgress,
    /// Completed.
    Completed,
}
