//! What is kept of a session beside its messages, and how sessions are listed.

use std::fmt;

use crow_core::{Entry, Mode, SessionId, ThoughtLevel};

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
    /// When it began.
    pub created: Timestamp,
    /// When its last message came.
    pub updated: Timestamp,
    /// How many messages it has.
    pub n_messages: u64,
}

/// A session with everything said in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// What a list shows of it.
    pub session: SessionRow,
    /// What the model is told first.
    pub system_prompt: String,
    /// Its messages in the order they were stored.
    pub entries: Vec<Entry>,
}

/// Which sessions to list, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuery {
    /// Only those of this directory.
    pub cwd: Option<String>,
    /// Only those after this place of the list.
    pub before: Option<Cursor>,
    /// How many at most.
    pub limit: u32,
}

/// A place in the list of sessions, from which the next page goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    pub(crate) updated: Timestamp,
    pub(crate) id: SessionId,
}

impl Cursor {
    /// Marks the place right after a listed session.
    pub fn after(row: &SessionRow) -> Self {
        Self { updated: row.updated, id: row.id.clone() }
    }

    /// Reads a cursor that [`fmt::Display`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let (updated, id) = text.split_once('.')?;
        Some(Self { updated: Timestamp(updated.parse().ok()?), id: SessionId::new(id) })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.updated.0, self.id)
    }
}

/// A message that search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// In which session.
    pub session: SessionId,
    /// Which message.
    pub seq: u64,
    /// Its text around the first word found, on one line.
    pub snippet: String,
}
