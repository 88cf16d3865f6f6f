//! A session's data besides its messages, and how sessions are listed.

use std::fmt;

use crow_core::{
    Compaction, Mode, Reply, SessionId, SideRequestUsage, ThoughtLevel, TokenUsage, TranscriptEntry,
};

/// The agent type of Crow's own sessions that a user started.
const OWN_ROOT: &str = "crow-cli";
/// The agent type of Crow's own children.
const OWN_CHILD: &str = "crow-child";

/// Milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

/// A session to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// Absolute path of the working directory.
    pub cwd: String,
    pub model: String,
    pub mode: Mode,
    pub thought_level: ThoughtLevel,
    pub system_prompt: String,
    /// The session that started it.
    pub parent: Option<SessionId>,
    /// The kind of agent, if not the default one.
    pub agent_type: Option<String>,
    /// The creation time.
    pub now: Timestamp,
}

/// A session as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    pub id: SessionId,
    /// Absolute path of the working directory.
    pub cwd: String,
    pub title: Option<String>,
    pub model: String,
    pub mode: Mode,
    pub thought_level: ThoughtLevel,
    /// The session that started it.
    pub parent: Option<SessionId>,
    /// The kind of agent, if not the default one.
    pub agent_type: Option<String>,
    /// The session ID in that agent.
    pub agent_session_id: Option<String>,
    pub created: Timestamp,
    /// Time of the last message.
    pub updated: Timestamp,
    pub n_messages: u64,
    /// The session it was forked from, which may be deleted.
    pub forked_from: Option<SessionId>,
}

impl SessionRow {
    /// Returns the agent type as in the database, where Crow's own sessions and children have names as well.
    pub fn agent_type_name(&self) -> &str {
        self.agent_type.as_deref().unwrap_or_else(|| own_agent_type(self.parent.is_some()))
    }
}

/// A session with all of its messages.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedSession {
    pub session: SessionRow,
    pub system_prompt: String,
    /// Its messages in the order they were stored.
    pub entries: Vec<TranscriptEntry>,
    /// Its compactions that were not undone, oldest first; the newest determines what the model sees.
    pub compactions: Vec<Compaction>,
    /// Usage of requests that are not messages, in order.
    pub side_requests: Vec<SideRequestUsage>,
    /// The unfinished reply after them that was never stored.
    pub unfinished_reply: Option<Reply>,
}

impl LoadedSession {
    /// Returns the usage of all replies of the session and its side requests.
    pub fn total_usage(&self) -> TokenUsage {
        let replies = self.entries.iter().filter_map(TranscriptEntry::usage);
        replies
            .chain(self.side_requests.iter().map(|side_request| side_request.usage))
            .fold(TokenUsage::default(), TokenUsage::saturating_add)
    }
}

/// The latest state of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionTip {
    pub n_messages: u64,
    /// The active compaction.
    pub compaction: Option<Compaction>,
    /// Other settings, as JSON.
    pub config: String,
}

/// A message with its sequence number.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredMessage {
    pub seq: u64,
    /// Its content, without images.
    pub entry: TranscriptEntry,
    pub created: Timestamp,
}

/// A range of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageRange {
    /// Sequence number of the first.
    pub from: u64,
    /// Maximum number of messages.
    pub limit: u32,
}

/// A filter for sessions, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuery {
    /// Only those with this working directory.
    pub cwd: Option<String>,
    pub creator: CreatorFilter,
    /// Only those after this position of the list.
    pub before: Option<SessionCursor>,
    /// Maximum number of sessions.
    pub limit: u32,
}

/// A filter by the creator of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreatorFilter {
    /// Sessions that a user started.
    User,
    /// Sessions that a user or another session started.
    Any,
}

/// A position in the list of sessions, where the next page continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionCursor {
    pub(crate) updated: Timestamp,
    pub(crate) id: SessionId,
}

impl SessionCursor {
    /// The position after a listed session.
    pub fn after_session(row: &SessionRow) -> Self {
        Self { updated: row.updated, id: row.id.clone() }
    }

    /// Parses a cursor that [`fmt::Display`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let (updated, id) = text.split_once('.')?;
        Some(Self { updated: Timestamp(updated.parse().ok()?), id: SessionId::new(id) })
    }
}

impl fmt::Display for SessionCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.updated.0, self.id)
    }
}

/// A search query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuery {
    /// Words, all of which must occur.
    pub text: String,
    /// Only in this session.
    pub session: Option<SessionId>,
    /// Maximum number of hits.
    pub limit: u32,
    /// Number of the best hits to skip.
    pub offset: u32,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageRole {
    User,
    Assistant,
    Tool,
}

impl MessageRole {
    /// Returns the role as in a conversation.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// A message that search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    pub session: SessionId,
    /// Sequence number of the message.
    pub seq: u64,
    pub created: Timestamp,
    pub role: MessageRole,
    /// Its text around the first word found, on one line.
    pub snippet: String,
}

/// The agent type of Crow's own sessions.
pub(crate) fn own_agent_type(is_child: bool) -> &'static str {
    if is_child { OWN_CHILD } else { OWN_ROOT }
}

/// Returns only the agent types of external agents.
pub(crate) fn foreign_agent_type(agent_type: Option<String>) -> Option<String> {
    agent_type.filter(|agent_type| agent_type != OWN_ROOT && agent_type != OWN_CHILD)
}
