//! What a conversation is made of: prompts, replies, calls and their outcomes.

use std::fmt;

use serde_json::Value;

use crate::{CallId, CrowPart, MessageId, ToolArguments};

/// A piece of a prompt or of a result, as the model gets it.
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
    /// Something the person pointed at.
    Link {
        /// Where it is, a `file://` address with an optional `#L10:20` most of the time.
        uri: String,
        /// What the client calls it.
        name: String,
        /// Media type, where the client said it.
        mime: Option<String>,
    },
    /// Something the person pointed at, with its text.
    Resource {
        /// Where it came from.
        uri: String,
        /// What it says.
        text: String,
        /// Media type, where the client said it.
        mime: Option<String>,
    },
    /// A text that Crow itself adds to a prompt. Never made from what a client, a server or a program sent.
    FromCrow {
        /// What it is.
        what: CrowPart,
        /// What it says.
        text: String,
    },
}

impl ContentPart {
    /// Returns what Crow added here; `None` for what came from outside.
    pub fn crow_part(&self) -> Option<&CrowPart> {
        match self {
            Self::FromCrow { what, .. } => Some(what),
            Self::Text(_) | Self::Image { .. } | Self::Link { .. } | Self::Resource { .. } => None,
        }
    }
}

/// What the person said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// Its name in the session.
    pub id: MessageId,
    /// Its pieces, in the order given.
    pub parts: Vec<ContentPart>,
}

impl Prompt {
    /// Joins the text pieces, for titles and search.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            ContentPart::Text(text)
            | ContentPart::Resource { text, .. }
            | ContentPart::FromCrow { text, .. } => Some(text.as_str()),
            ContentPart::Image { .. } | ContentPart::Link { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Tells whether anything of it is the person's; Crow speaks by itself as well.
    pub(crate) fn has_user_content(&self) -> bool {
        self.parts.iter().any(|part| part.crow_part().is_none())
    }
}

/// What the model said in one reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Its name in the session.
    pub id: MessageId,
    /// Its reasoning, as far as the provider shows it.
    pub thought: String,
    /// Its words to the person.
    pub text: String,
    /// The tools it wants run, in its order.
    pub calls: Vec<ToolCall>,
    /// How it came to an end.
    pub ended: ReplyEnd,
    /// What it cost, when the provider said so.
    pub usage: Option<TokenUsage>,
    /// What the provider wants back with it.
    pub sealed: Option<ProviderState>,
    /// The configured name of the model that answered in place of the session's own; `None` for that one.
    pub answered_by: Option<String>,
}

/// What a provider gave along with a reply and wants back untouched, such as its own record of the reasoning. Nobody
/// else can read it.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderState {
    /// The model that gave it, with its provider: only that one gets it back.
    pub by: String,
    /// Its pieces, in the provider's words.
    pub pieces: Vec<Value>,
}

impl Reply {
    /// Shows what a model wants back with it: nothing, unless it is the one that gave it.
    pub fn provider_state_for(&self, by: &str) -> &[Value] {
        self.sealed.as_ref().filter(|sealed| sealed.by == by).map_or(&[], |sealed| &sealed.pieces)
    }

    /// Tells whether nothing at all arrived.
    pub fn is_empty(&self) -> bool {
        self.thought.is_empty() && self.text.is_empty() && self.calls.is_empty()
    }
}

/// How a reply came to an end.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplyEnd {
    /// The model finished.
    Normally,
    /// The output limit cut it; its last call may be half a call.
    OutputLimit,
    /// Crow cut it: no reply may become larger.
    SizeLimit,
    /// The provider's filter withheld the rest.
    Refused,
    /// The person stopped it; what arrived until then stands.
    Cancelled,
    /// The model could not be asked, or its answer broke off.
    Failed(Failure),
}

/// Tokens as the provider counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenUsage {
    /// Tokens read, those of the cache among them.
    pub input: u64,
    /// Tokens written, those of the reasoning among them.
    pub output: u64,
    /// Tokens of `input` that came out of the provider's cache.
    pub cached: u64,
    /// Tokens of `input` that were written into the provider's cache.
    pub cache_written: u64,
    /// What it cost, in billionths of a US dollar, where that is known.
    pub cost: Option<u64>,
}

impl TokenUsage {
    /// Tokens read and written, and nothing known of a cache or a price.
    pub fn new(input: u64, output: u64) -> Self {
        Self { input, output, ..Self::default() }
    }

    /// Adds what something else took. The cost is what is known of it.
    #[must_use]
    pub fn saturating_add(self, more: Self) -> Self {
        let cost = match (self.cost, more.cost) {
            (Some(cost), Some(more)) => Some(cost.saturating_add(more)),
            (cost, more) => cost.or(more),
        };
        Self {
            input: self.input.saturating_add(more.input),
            output: self.output.saturating_add(more.output),
            cached: self.cached.saturating_add(more.cached),
            cache_written: self.cache_written.saturating_add(more.cache_written),
            cost,
        }
    }

    /// Counts the tokens now in context, unless the server has only pretended to.
    pub fn context_tokens(self) -> Option<u64> {
        (self.input > 0).then(|| self.total_tokens())
    }

    /// Counts the tokens read and written.
    pub fn total_tokens(self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

/// Why something failed, for a person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct Failure {
    /// What kind of thing went wrong, for whoever branches.
    pub kind: FailureKind,
    /// What happened, why, and what to do next.
    pub sentence: String,
}

impl Failure {
    /// Makes a failure of a kind with its sentence.
    pub fn new(kind: FailureKind, sentence: impl Into<String>) -> Self {
        Self { kind, sentence: sentence.into() }
    }
}

/// The kinds of failure that clients and scripts tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// No such session.
    SessionNotFound,
    /// A value outside what is allowed.
    InvalidValue,
    /// Nothing works without signing in.
    AuthRequired,
    /// The provider refused the key.
    ProviderAuth,
    /// The provider limits the rate.
    ProviderRate,
    /// The provider is overloaded.
    ProviderOverloaded,
    /// The provider refused the request.
    ProviderRejected,
    /// The provider has no such model.
    ModelNotFound,
    /// The conversation is longer than the model's window.
    ContextOverflow,
    /// The provider could not be reached, or the connection broke.
    Connection,
    /// The provider answered with something that is not the protocol.
    Protocol,
    /// The database failed.
    Store,
    /// The configuration is missing or wrong.
    Config,
    /// A mistake of ours.
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

    /// Reads what [`FailureKind::as_str`] spelled.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Spells the kind as `data.kind` of an error does.
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

/// One tool the model wants run.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// Our name for it.
    pub id: CallId,
    /// The provider's name for it, given back with the result; providers reuse these.
    pub provider_id: String,
    /// Which tool.
    pub name: String,
    /// With what.
    pub arguments: ToolArguments,
}

/// A tool as the model is told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON schema of its arguments, an object.
    pub parameters: Value,
}

/// What a tool does, for the client's icon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
    /// Reads.
    Read,
    /// Changes files.
    Edit,
    /// Searches.
    Search,
    /// Runs a program.
    Execute,
    /// Thinks or plans.
    Think,
    /// Fetches from outside.
    Fetch,
    /// Anything else.
    Other,
}

/// A place a call is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLocation {
    /// Absolute path.
    pub path: String,
    /// Line, from 1.
    pub line: Option<u32>,
}

/// What is known of a call before it runs: what the client shows and what permission is judged by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCallInfo {
    /// One line for the person.
    pub title: String,
    /// For the icon.
    pub kind: ToolKind,
    /// The files it is about.
    pub locations: Vec<FileLocation>,
    /// What it would touch.
    pub touch: ToolAccess,
}

/// What a call would touch if it ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolAccess {
    /// Nothing outside the agent.
    Nothing,
    /// Reads these absolute paths, resolved through links.
    Reads(Vec<String>),
    /// Changes these absolute paths, resolved through links.
    Writes(Vec<String>),
    /// Runs a shell command.
    Runs(String),
    /// Calls a tool of an MCP server, which may do anything.
    Calls {
        /// The server's name.
        server: String,
        /// The tool's name there.
        tool: String,
    },
    /// Reads a page of the web.
    Fetches {
        /// Its host, with the port where that is not the usual one.
        site: String,
        /// Where that is.
        reach: SiteReach,
    },
    /// Sends words to the search service that the person chose.
    Searches,
}

/// Where a site is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SiteReach {
    /// On the public internet, where everybody sees the same.
    Public,
    /// On this machine, in its network, or named by the person's own settings.
    Private,
}

/// What came of a call, for its two audiences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// How it went.
    pub status: ToolCallStatus,
    /// What the model reads.
    pub for_model: Vec<ContentPart>,
    /// What the client shows.
    pub for_client: Vec<ToolCallContent>,
    /// The new plan, when the call made one.
    pub plan: Option<Vec<PlanEntry>>,
}

impl ToolResult {
    /// A success whose text serves both audiences.
    pub fn success(text: impl Into<String>) -> Self {
        Self::with_status(ToolCallStatus::Done, text)
    }

    /// A failure whose text serves both audiences.
    pub fn failure(text: impl Into<String>) -> Self {
        Self::with_status(ToolCallStatus::Failed, text)
    }

    /// Adds a line to its text, for both audiences.
    #[must_use]
    pub fn with_note(mut self, note: &str) -> Self {
        let noted = |text: &str| format!("{}\n{note}", text.trim_end_matches('\n'));
        if let Some(ContentPart::Text(text)) = self.for_model.last_mut() {
            *text = noted(text);
        } else {
            self.for_model.push(ContentPart::Text(note.to_owned()));
        }
        if let Some(ToolCallContent::Text(text)) = self.for_client.last_mut() {
            *text = noted(text);
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

/// Where a call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolCallStatus {
    /// Announced, perhaps waiting for permission.
    Pending,
    /// At work.
    Running,
    /// Ended well.
    Done,
    /// Ended badly, or was stopped.
    Failed,
}

impl ToolCallStatus {
    /// Spells the status as clients and scripts read it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "in_progress",
            Self::Done => "completed",
            Self::Failed => "failed",
        }
    }
}

/// A piece of what the client shows of a call.
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
    /// A change of a file, with its real old and new text.
    Diff {
        /// Absolute path.
        path: String,
        /// The text before; `None` for a new file.
        old: Option<String>,
        /// The text after.
        new: String,
    },
}

/// A step of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanEntry {
    /// What is to be done.
    pub text: String,
    /// How far it is.
    pub status: PlanStatus,
    /// How much hangs on it.
    pub priority: PlanPriority,
    /// What else clients are told of it: an object.
    pub meta: Option<Value>,
}

impl PlanEntry {
    /// Makes a step like any other.
    pub fn new(text: impl Into<String>, status: PlanStatus) -> Self {
        Self { text: text.into(), status, priority: PlanPriority::Medium, meta: None }
    }
}

/// How much hangs on a step of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanPriority {
    /// Others wait for it.
    High,
    /// As much as on most.
    Medium,
    /// It can be left out.
    Low,
}

/// How far a step of the plan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanStatus {
    /// Not begun.
    Pending,
    /// Being done.
    InProgress,
    /// Done.
    Completed,
}
