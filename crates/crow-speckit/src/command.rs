//! The commands of the workflow: their names, and how what a person typed becomes one.

use std::fmt;

/// A step of the workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Command {
    /// Ground rules.
    Constitution,
    /// What to build, and why.
    Specify,
    /// Open points of the spec.
    Clarify,
    /// How it is built.
    Plan,
    /// A list to review the requirements with.
    Checklist,
    /// What is to be done, in order.
    Tasks,
    /// Whether spec, plan and tasks agree.
    Analyze,
    /// The doing.
    Implement,
    /// What the code still lacks.
    Converge,
}

impl Command {
    /// Every command, in the order of the workflow.
    pub const ALL: [Self; 9] = [
        Self::Constitution,
        Self::Specify,
        Self::Clarify,
        Self::Plan,
        Self::Checklist,
        Self::Tasks,
        Self::Analyze,
        Self::Implement,
        Self::Converge,
    ];

    /// The name behind `speckit.`.
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
        }
    }

    /// Reads a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|command| command.as_str() == name)
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/speckit.{}", self.as_str())
    }
}

/// A command with what was said to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// Which.
    pub command: Command,
    /// What stands behind the name, without the options, byte for byte.
    pub text: String,
}
