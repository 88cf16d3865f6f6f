//! The commands of the workflow, and a command with its arguments.

use std::fmt;
use std::path::PathBuf;

/// A step of the workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WorkflowCommand {
    /// Principles of the project.
    Constitution,
    /// The specification: requirements and their reasons.
    Specify,
    /// Open questions of the spec.
    Clarify,
    /// The technical plan.
    Plan,
    /// A checklist to review the requirements with.
    Checklist,
    /// The ordered task list.
    Tasks,
    /// A consistency check of spec, plan and tasks.
    Analyze,
    /// Working through the task list.
    Implement,
    /// Adding tasks for what the code still lacks.
    Converge,
    /// GitHub issues for open tasks.
    TasksToIssues,
}

impl WorkflowCommand {
    /// Every command, in the order of the workflow.
    pub const ALL: [Self; 10] = [
        Self::Constitution,
        Self::Specify,
        Self::Clarify,
        Self::Plan,
        Self::Checklist,
        Self::Tasks,
        Self::Analyze,
        Self::Implement,
        Self::Converge,
        Self::TasksToIssues,
    ];

    /// The name after `speckit.`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Constitution => "constitution",
            Self::Specify => "specify",
            Self::Clarify => "clarify",
            Self::Plan => "plan",
            Self::Checklist => "checklist",
            Self::Tasks => "tasks",
            Self::Analyze => "analyze",
            Self::Implement => "implement",
            Self::Converge => "converge",
            Self::TasksToIssues => "taskstoissues",
        }
    }

    /// Parses a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|command| command.as_str() == name)
    }
}

impl fmt::Display for WorkflowCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/speckit.{}", self.as_str())
    }
}

/// A step with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandInvocation {
    /// The step.
    pub command: WorkflowCommand,
    /// The feature to work on, if given.
    pub feature: Option<String>,
    /// The name for a new feature.
    pub naming: FeatureNaming,
    /// The rest of the arguments, byte for byte.
    pub text: String,
}

/// A user's choices for the name of a new feature.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeatureNaming {
    /// The short name in its directory name.
    pub short_name: Option<String>,
    /// Its number, if that is free.
    pub number: Option<u64>,
    /// Whether to use a timestamp instead of a number.
    pub timestamp: bool,
    /// Its exact directory.
    pub directory: Option<PathBuf>,
    /// Its branch, for the extension that creates branches.
    pub branch: Option<String>,
}
