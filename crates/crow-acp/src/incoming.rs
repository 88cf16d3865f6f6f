//! The requests of a client, in Crow's own types.

use std::fmt;
use std::path::PathBuf;

use crow_core::{
    ContentPart, Failure, McpServer, MessageId, SessionConfigOptions, SessionId, TokenUsage, TurnEnd,
};

/// The agent's part of `initialize`.
#[derive(Debug, Clone)]
pub struct AgentInfo {
    pub version: &'static str,
    /// The program, for clients that start it in a terminal to set it up.
    pub program: Option<PathBuf>,
    /// Whether a configured model reads images, as far as known.
    pub reads_images: bool,
}

/// The answer of a prompt.
#[derive(Debug)]
pub struct PromptResult {
    pub end: TurnEnd,
    /// Tokens of the session itself since it was created, without those of its children; `None` if none were counted.
    pub session_usage: Option<TokenUsage>,
}

impl From<TurnEnd> for PromptResult {
    fn from(end: TurnEnd) -> Self {
        Self { end, session_usage: None }
    }
}

/// One request of a client.
#[derive(Debug)]
pub enum IncomingRequest {
    /// The client sent `initialize`; a good moment to load what sessions need.
    Initialized,
    /// `authenticate`, which checks that a model is configured.
    Authenticate { answer: ResponseSender<()> },
    /// `logout`: no more model requests until the next `authenticate`.
    Logout { answer: ResponseSender<()> },
    /// Opens a session, new or stored.
    Open { kind: SessionOpenKind, location: SessionLocation, answer: ResponseSender<OpenSessionResult> },
    /// Lists stored sessions, newest first.
    ListSessions {
        /// Only those with this working directory.
        cwd: Option<PathBuf>,
        /// The end of the previous page.
        cursor: Option<String>,
        answer: ResponseSender<SessionPage>,
    },
    /// Lists the prompts of a session that a fork can begin before, newest first.
    ListPrompts { session: SessionId, answer: ResponseSender<Vec<EarlierPrompt>> },
    /// Ends a session's activity and drops it from memory; it stays stored.
    Close { session: SessionId, answer: ResponseSender<()> },
    /// Closes a session and deletes it from the store.
    Delete { session: SessionId, answer: ResponseSender<()> },
    /// A prompt; answered when its turn has ended.
    Prompt {
        session: SessionId,
        /// Its ID among the prompts of this connection.
        prompt_id: PromptId,
        content: Vec<PromptBlock>,
        /// The condition for the end of its turn.
        turn_scope: TurnScope,
        answer: ResponseSender<PromptResult>,
    },
    /// The client cancels one prompt, whether its turn is running or waiting.
    Withdraw { session: SessionId, prompt_id: PromptId },
    /// Steering input for the running turn; answered at once.
    Steer { session: SessionId, content: Vec<PromptBlock>, answer: ResponseSender<SteerOutcome> },
    /// Cancels the running turn and drops the waiting prompts.
    Cancel { session: SessionId },
    /// Sets an option: `mode`, `model` or `thought_level`.
    SetOption {
        session: SessionId,
        option: String,
        value: String,
        answer: ResponseSender<SessionConfigOptions>,
    },
}

impl IncomingRequest {
    /// The session that the request concerns.
    pub fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Open {
                kind:
                    SessionOpenKind::Load(session)
                    | SessionOpenKind::Resume(session)
                    | SessionOpenKind::Fork { session, .. },
                ..
            }
            | Self::ListPrompts { session, .. }
            | Self::Close { session, .. }
            | Self::Delete { session, .. }
            | Self::Prompt { session, .. }
            | Self::Withdraw { session, .. }
            | Self::Steer { session, .. }
            | Self::Cancel { session }
            | Self::SetOption { session, .. } => Some(session),
            Self::Initialized
            | Self::Authenticate { .. }
            | Self::Logout { .. }
            | Self::Open { kind: SessionOpenKind::New, .. }
            | Self::ListSessions { .. } => None,
        }
    }

    /// Answers with a failure, if the request expects an answer.
    pub fn reject(self, failure: Failure) {
        match self {
            Self::Authenticate { answer }
            | Self::Logout { answer }
            | Self::Close { answer, .. }
            | Self::Delete { answer, .. } => answer.send(Err(failure)),
            Self::Open { answer, .. } => answer.send(Err(failure)),
            Self::ListSessions { answer, .. } => answer.send(Err(failure)),
            Self::ListPrompts { answer, .. } => answer.send(Err(failure)),
            Self::Prompt { answer, .. } => answer.send(Err(failure)),
            Self::Steer { answer, .. } => answer.send(Err(failure)),
            Self::SetOption { answer, .. } => answer.send(Err(failure)),
            Self::Initialized | Self::Withdraw { .. } | Self::Cancel { .. } => {}
        }
    }
}

/// The way to open a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionOpenKind {
    New,
    /// A stored one, with replay.
    Load(SessionId),
    /// A stored one, without replay.
    Resume(SessionId),
    /// A copy of a stored one, without replay.
    Fork {
        session: SessionId,
        /// The copy ends before the turn of this prompt.
        before: Option<MessageId>,
    },
}

/// The directories and MCP servers of a session, not yet validated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionLocation {
    /// The directory that relative paths start from.
    pub cwd: PathBuf,
    /// Additional directories.
    pub additional_directories: Vec<PathBuf>,
    /// The MCP servers that the client supplies.
    pub servers: Vec<McpServer>,
}

/// A content block of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptBlock {
    /// In the form for the model.
    Part(ContentPart),
    /// An image that is only linked.
    ImageUri {
        /// A `file://`, `data:`, `https://` or `http://` URL.
        uri: String,
        /// The media type that the client gave.
        mime: String,
    },
}

/// The condition for the end of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TurnScope {
    /// The model has nothing more to do.
    #[default]
    WithoutTasks,
    /// The tasks that it gave have ended as well, and it has reacted to them: the client disconnects afterwards.
    WithTasks,
}

/// The ID of a prompt within a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PromptId(pub(crate) u64);

/// The result of steering input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SteerOutcome {
    /// The model gets it with its next request.
    Injected,
    /// No turn was running any more; it started one.
    StartedNewTurn,
}

/// A session that was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSessionResult {
    pub session: SessionId,
    pub options: SessionConfigOptions,
}

/// A stored session, for a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    pub session: SessionId,
    pub cwd: PathBuf,
    pub title: Option<String>,
    /// The last change, in RFC 3339.
    pub updated_at: String,
}

/// A prompt of the user that a session can go back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierPrompt {
    pub message: MessageId,
    pub text: String,
    /// Turns from this one on whose changes of files can be undone.
    pub n_undoable_turns: u64,
    /// Files that those changes concern.
    pub n_undoable_files: u64,
}

/// A page of stored sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPage {
    /// The sessions, newest first.
    pub sessions: Vec<SessionInfo>,
    /// The start of the next page, if there is one.
    pub next_cursor: Option<String>,
}

/// Sends the one answer to a request. Dropping it sends an internal error.
pub struct ResponseSender<T>(Box<dyn FnOnce(Result<T, Failure>) + Send>);

impl<T> ResponseSender<T> {
    /// Wraps a function that sends the answer.
    pub fn new(send: impl FnOnce(Result<T, Failure>) + Send + 'static) -> Self {
        Self(Box::new(send))
    }

    /// Sends the answer.
    pub fn send(self, result: Result<T, Failure>) {
        (self.0)(result);
    }
}

impl<T> fmt::Debug for ResponseSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answer")
    }
}
