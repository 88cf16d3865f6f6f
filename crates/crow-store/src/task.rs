//! The tasks that sessions give to other agents.

use std::fmt;

use crow_core::SessionId;

use crate::Timestamp;

/// The state of a task's newest turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskState {
    /// It continues, if a process drives the task.
    Running,
    Completed,
    /// The child, or the connection to it, failed.
    Failed,
    Cancelled,
    /// The process that drove it died.
    Lost,
}

impl TaskState {
    /// Returns the state as stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let states = [Self::Running, Self::Completed, Self::Failed, Self::Cancelled, Self::Lost];
        states.into_iter().find(|state| state.as_str() == text)
    }
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRow {
    /// Its ID, which is that of the child's session.
    pub task: SessionId,
    /// The session that gave it.
    pub parent: SessionId,
    /// The kind of agent, if not the default one.
    pub agent_type: Option<String>,
    /// The title of the child's session.
    pub title: String,
    /// The state of its newest turn.
    pub state: TaskState,
    pub n_turns: u32,
    /// Tokens of all turns, as far as known.
    pub n_tokens: u64,
    /// Start of its newest turn.
    pub started: Timestamp,
    /// End of that turn.
    pub ended: Option<Timestamp>,
    /// The branch with its work, if it had a worktree.
    pub branch: Option<String>,
    /// Whether it goes on without the process that drove it, and another one can take it up again.
    pub has_place: bool,
}

/// The place of a task that outlives the process of its parent, in the words of its driver. It contains a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct TaskPlace(String);

impl TaskPlace {
    /// Creates it from the driver's text.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// Returns the driver's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TaskPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TaskPlace")
    }
}

/// The end of a task's turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskEnd {
    pub state: TaskState,
    /// Tokens of this turn.
    pub n_tokens: u64,
    /// The branch with its work; `None` keeps that of an earlier turn.
    pub branch: Option<String>,
    /// The text for the parent, if it does not wait.
    pub delivery: Option<String>,
    pub now: Timestamp,
}

/// Identifies a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeliveryId(pub(crate) i64);

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An entry with the deliveries in it.
#[derive(Debug)]
pub struct DeliveredEntry<'a, Entry> {
    pub entry: &'a Entry,
    pub deliveries: &'a [DeliveryId],
}

/// The end of a child's turn that waits for the parent session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub id: DeliveryId,
    pub task: SessionId,
    /// The text for the parent.
    pub text: String,
    /// The end of the turn.
    pub created: Timestamp,
}
