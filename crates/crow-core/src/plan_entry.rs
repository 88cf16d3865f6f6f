//! The entries of a plan.

use serde_json::Value;

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
