//! What is kept of the work that sessions give to others.

use std::fmt;

use crow_core::SessionId;

use crate::Timestamp;

/// What became of a task's newest round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskState {
    /// It goes on, if anybody attends the task.
    Running,
    /// The child came to an end.
    Done,
    /// The child, or the way to it, broke.
    Failed,
    /// Somebody stopped it.
    Cancelled,
    /// Whoever attended it died.
    Lost,
}

impl TaskState {
    /// Spells the state.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let states = [Self::Running, Self::Done, Self::Failed, Self::Cancelled, Self::Lost];
        states.into_iter().find(|state| state.as_str() == text)
    }
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRow {
    /// Its name, which is that of the child's session.
    pub task: SessionId,
    /// The session that gave it.
    pub parent: SessionId,
    /// Which kind of agent does it, when not the usual one.
    pub agent_type: Option<String>,
    /// What it is about, as the child's session says.
    pub title: String,
    /// What became of its newest round.
    pub state: TaskState,
    /// How many rounds it had.
    pub n_rounds: u32,
    /// Tokens that all rounds spent, as far as is known.
    pub n_tokens: u64,
    /// When its newest round began.
    pub started: Timestamp,
    /// When that round ended.
    pub ended: Option<Timestamp>,
    /// The branch that has its work, when it had a worktree of its own.
    pub branch: Option<String>,
}

/// How a round of a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskEnd {
    /// What became of it.
    pub state: TaskState,
    /// Tokens that this round spent.
    pub n_tokens: u64,
    /// The branch that has its work; without one, an earlier round's stands.
    pub branch: Option<String>,
    /// What the parent is told of it, when it does not wait for it.
    pub delivery: Option<String>,
    /// When it ended.
    pub now: Timestamp,
}

/// Names a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeliveryId(pub(crate) i64);

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The end of a round that waits for the session that gave the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Its name.
    pub id: DeliveryId,
    /// The task.
    pub task: SessionId,
    /// What the parent is told.
    pub text: String,
    /// When the round ended.
    pub created: Timestamp,
}
