//! What is kept of a session beside its messages, and how sessions are listed.

use std::fmt;

use crate::database::own_agent_type;
use crow_core::{Compaction, Mode, Reply, SessionId, ThoughtLevel, TokenUsage, TranscriptEntry};

/// Milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

/// A session about to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// Absolute path of its directory.
    pub cwd: String,
    /// The model it asks.
    pub model: String,
    /// How much it may do on its own.
    pub mode: Mode,
    /// How hard the model should think.
    pub thought_level: ThoughtLevel,
    /// What the model is told first.
    pub system_prompt: String,
    /// The session that started it.
    pub parent: Option<SessionId>,
    /// Which kind of agent it runs, when not the usual one.
    pub agent_type: Option<String>,
    /// When it begins.
    pub now: Timestamp,
}

/// A session as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// Its name.
    pub id: SessionId,
    /// Absolute path of its directory.
    pub cwd: String,
    /// What it is about, once that is known.
    pub title: Option<String>,
    /// The model it asks.
    pub model: String,
    /// How much it may do on its own.
    pub mode: Mode,
    /// How hard the model should think.
    pub thought_level: ThoughtLevel,
    /// The session that started it.
    pub parent: Option<SessionId>,
    /// Which kind of agent it runs, when not the usual one.
    pub agent_type: Option<String>,
    /// What that agent calls it.
    pub agent_session_id: Option<String>,
    /// When it began.
    pub created: Timestamp,
    /// When its last message came.
    pub updated: Timestamp,
    /// How many messages it has.
    pub n_messages: u64,
    /// The session it began as a copy of; that one may be gone.
    pub forked_from: Option<SessionId>,
}

impl SessionRow {
    /// Names the kind of agent it runs as the database does: Crow's own sessions and children have names as well.
    pub fn agent_type_name(&self) -> &str {
        self.agent_type.as_deref().unwrap_or_else(|| own_agent_type(self.parent.is_some()))
    }
}

/// A session with everything said in it.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedSession {
    /// What a list shows of it.
    pub session: SessionRow,
    /// What the model is told first.
    pub system_prompt: String,
    /// Its messages in the order they were stored.
    pub entries: Vec<TranscriptEntry>,
    /// Its compactions that were not taken back, oldest first; the newest tells what the model sees.
    pub compactions: Vec<Compaction>,
    /// What questions to a model took that are no messages, in their order.
    pub asides: Vec<SideRequestUsage>,
    /// What a reply after them came to whose end was never stored.
    pub unfinished: Option<Reply>,
}

/// What a question to a model took that is no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SideRequestUsage {
    /// The place of the message that came next.
    pub seq: u64,
    /// How many tokens, and what they cost.
    pub usage: TokenUsage,
}

impl LoadedSession {
    /// What all replies of the session and the questions beside them took.
    pub fn total_usage(&self) -> TokenUsage {
        let replies = self.entries.iter().filter_map(TranscriptEntry::usage);
        replies
            .chain(self.asides.iter().map(|aside| aside.usage))
            .fold(TokenUsage::default(), TokenUsage::saturating_add)
    }
}

/// Where a session stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionTip {
    /// How many messages it has.
    pub n_messages: u64,
    /// The compaction in force.
    pub compaction: Option<Compaction>,
    /// What else is set in it, as JSON.
    pub config: String,
}

/// A message with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredMessage {
    /// Its place in the session.
    pub seq: u64,
    /// What it says, without images.
    pub entry: TranscriptEntry,
    /// When it came.
    pub created: Timestamp,
}

/// Which messages of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageRange {
    /// The place of the first.
    pub from: u64,
    /// How many at most.
    pub limit: u32,
}

/// Which sessions to list, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuery {
    /// Only those of this directory.
    pub cwd: Option<String>,
    /// Only those that somebody began.
    pub begun_by: CreatorFilter,
    /// Only those after this place of the list.
    pub before: Option<SessionCursor>,
    /// How many at most.
    pub limit: u32,
}

/// Who began the sessions to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreatorFilter {
    /// Nobody but a person.
    Person,
    /// A person or another session.
    Anyone,
}

/// A place in the list of sessions, from which the next page goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionCursor {
    pub(crate) updated: Timestamp,
    pub(crate) id: SessionId,
}

impl SessionCursor {
    /// Marks the place right after a listed session.
    pub fn after_session(row: &SessionRow) -> Self {
        Self { updated: row.updated, id: row.id.clone() }
    }

    /// Reads a cursor that [`fmt::Display`] wrote.
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

/// What to search for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuery {
    /// Words, all of which must occur.
    pub text: String,
    /// Only in this session.
    pub session: Option<SessionId>,
    /// How many hits at most.
    pub limit: u32,
    /// How many of the best to pass over.
    pub offset: u32,
}

/// Who said a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageRole {
    /// A person.
    Person,
    /// A model.
    Model,
    /// A tool.
    Tool,
}

impl MessageRole {
    /// Spells the speaker as the roles of a conversation are.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Person => "user",
            Self::Model => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// A message that search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    /// In which session.
    pub session: SessionId,
    /// Which message.
    pub seq: u64,
    /// When it came.
    pub created: Timestamp,
    /// Who said it.
    pub speaker: MessageRole,
    /// Its text around the first word found, on one line.
    pub snippet: String,
}
