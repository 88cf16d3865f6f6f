//! What a client asks of the agent, in our words.

use std::fmt;
use std::path::PathBuf;

use crow_core::{ContentPart, Failure, McpServer, SessionConfigOptions, SessionId, TurnEnd};

/// What the agent says of itself.
#[derive(Debug, Clone)]
pub struct AgentInfo {
    /// Its version.
    pub version: &'static str,
    /// The program, for clients that start it in a terminal to set it up.
    pub program: Option<PathBuf>,
    /// Whether a configured model reads images, as far as that is known.
    pub reads_images: bool,
}

/// One thing a client wants.
#[derive(Debug)]
pub enum IncomingRequest {
    /// The client said hello; a good moment to load what sessions need.
    Hello,
    /// Sign in, which is to check that a model is configured.
    SignIn {
        /// Where the answer goes.
        answer: ResponseSender<()>,
    },
    /// Sign out: nothing more is asked of a model until the next sign-in.
    SignOut {
        /// Where the answer goes.
        answer: ResponseSender<()>,
    },
    /// A session, new or stored.
    Open {
        /// Which.
        which: SessionOpenKind,
        /// Where it works and with what.
        place: SessionLocation,
        /// Where the answer goes.
        answer: ResponseSender<OpenSessionResult>,
    },
    /// The stored sessions, newest first.
    ListSessions {
        /// Only those that work here.
        cwd: Option<PathBuf>,
        /// Where the page before ended.
        cursor: Option<String>,
        /// Where the answer goes.
        answer: ResponseSender<SessionPage>,
    },
    /// Stop what a session does and forget it here; it stays stored.
    Close {
        /// Which session.
        session: SessionId,
        /// Where the answer goes.
        answer: ResponseSender<()>,
    },
    /// Close a session and forget what is stored of it.
    Delete {
        /// Which session.
        session: SessionId,
        /// Where the answer goes.
        answer: ResponseSender<()>,
    },
    /// A prompt; answered when its turn has ended.
    Prompt {
        /// In which session.
        session: SessionId,
        /// Its name among the prompts of this connection.
        ticket: PromptId,
        /// What was said.
        said: Vec<PromptBlock>,
        /// When its turn is over.
        until: TurnScope,
        /// Where the answer goes.
        answer: ResponseSender<TurnEnd>,
    },
    /// The client takes one prompt back, whether its turn runs or waits.
    Withdraw {
        /// In which session.
        session: SessionId,
        /// Which prompt.
        ticket: PromptId,
    },
    /// Words for the turn that runs, without waiting for its end.
    Steer {
        /// In which session.
        session: SessionId,
        /// What was said.
        said: Vec<PromptBlock>,
        /// Where the answer goes.
        answer: ResponseSender<SteerOutcome>,
    },
    /// Stop the turn that runs and forget the prompts that wait.
    Cancel {
        /// In which session.
        session: SessionId,
    },
    /// Change an option: `mode`, `model` or `thought_level`.
    SetOption {
        /// In which session.
        session: SessionId,
        /// Which option.
        option: String,
        /// Its new value.
        value: String,
        /// Where the answer goes.
        answer: ResponseSender<SessionConfigOptions>,
    },
}

impl IncomingRequest {
    /// The stored or living session it is about.
    pub fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Open {
                which:
                    SessionOpenKind::Load(session)
                    | SessionOpenKind::Resume(session)
                    | SessionOpenKind::Fork(session),
                ..
            }
            | Self::Close { session, .. }
            | Self::Delete { session, .. }
            | Self::Prompt { session, .. }
            | Self::Withdraw { session, .. }
            | Self::Steer { session, .. }
            | Self::Cancel { session }
            | Self::SetOption { session, .. } => Some(session),
            Self::Hello
            | Self::SignIn { .. }
            | Self::SignOut { .. }
            | Self::Open { which: SessionOpenKind::New, .. }
            | Self::ListSessions { .. } => None,
        }
    }

    /// Answers with a failure, where there is somebody to answer.
    pub fn reject(self, failure: Failure) {
        match self {
            Self::SignIn { answer }
            | Self::SignOut { answer }
            | Self::Close { answer, .. }
            | Self::Delete { answer, .. } => answer.send(Err(failure)),
            Self::Open { answer, .. } => answer.send(Err(failure)),
            Self::ListSessions { answer, .. } => answer.send(Err(failure)),
            Self::Prompt { answer, .. } => answer.send(Err(failure)),
            Self::Steer { answer, .. } => answer.send(Err(failure)),
            Self::SetOption { answer, .. } => answer.send(Err(failure)),
            Self::Hello | Self::Withdraw { .. } | Self::Cancel { .. } => {}
        }
    }
}

/// Which session to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionOpenKind {
    /// A new one.
    New,
    /// A stored one; the client is told everything it saw of it.
    Load(SessionId),
    /// A stored one, of which the client knows all it needs.
    Resume(SessionId),
    /// A new one that begins as a copy of a stored one, of which the client knows all it needs.
    Fork(SessionId),
}

/// Where a session works and with what. Nothing here is checked yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionLocation {
    /// The folder that relative paths start from.
    pub cwd: PathBuf,
    /// Folders beside it that it may work in.
    pub more_roots: Vec<PathBuf>,
    /// The MCP servers that the client brings along.
    pub servers: Vec<McpServer>,
}

/// A piece of a prompt as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptBlock {
    /// As the model gets it.
    Part(ContentPart),
    /// An image that is only named.
    ImageAt {
        /// Where it is: a `file://`, `data:`, `https://` or `http://` address.
        uri: String,
        /// Its media type, as the client says it.
        mime: String,
    },
}

/// When a turn is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TurnScope {
    /// When the model has nothing more to do.
    #[default]
    Answered,
    /// When the tasks that it gave are over as well, and it has nothing to do about them: whoever asks is gone then.
    TasksEnded,
}

/// A prompt's name among those of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PromptId(pub(crate) u64);

/// What became of words for a running turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SteerOutcome {
    /// The model gets them with its next request.
    Injected,
    /// No turn ran any longer; they started one.
    StartedNewTurn,
}

/// A session that opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSessionResult {
    /// Its name.
    pub session: SessionId,
    /// Its options.
    pub options: SessionConfigOptions,
}

/// A stored session, for a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// Its name.
    pub session: SessionId,
    /// Where it works.
    pub cwd: PathBuf,
    /// What it is about.
    pub title: Option<String>,
    /// When it last changed, RFC 3339.
    pub updated: String,
}

/// A page of stored sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPage {
    /// The sessions, newest first.
    pub sessions: Vec<SessionInfo>,
    /// Where the next page starts, if there is one.
    pub next: Option<String>,
}

/// The one answer a request gets. Dropped unanswered, the client is told of an internal error.
pub struct ResponseSender<T>(Box<dyn FnOnce(Result<T, Failure>) + Send>);

impl<T> ResponseSender<T> {
    /// Wraps whatever carries the answer away.
    pub fn new(send: impl FnOnce(Result<T, Failure>) + Send + 'static) -> Self {
        Self(Box::new(send))
    }

    /// Answers.
    pub fn send(self, result: Result<T, Failure>) {
        (self.0)(result);
    }
}

impl<T> fmt::Debug for ResponseSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answer")
    }
}
