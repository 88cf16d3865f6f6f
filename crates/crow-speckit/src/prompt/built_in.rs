//! The built-in prompts by situation.

/// A situation in or before a command that has its own prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuxiliaryPrompt {
    /// The next task of a list.
    Task,
    /// A task for a child agent.
    Child,
    /// The problems found by a check.
    Repair,
    /// An answer that arrived as the user's next prompt.
    Answer,
    /// A short name for a new feature.
    ShortName,
}

impl AuxiliaryPrompt {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Task, Self::Child, Self::Repair, Self::Answer, Self::ShortName];

    /// The name after `speckit_` in the file name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Child => "child",
            Self::Repair => "repair",
            Self::Answer => "answer",
            Self::ShortName => "short_name",
        }
    }

    /// Returns the built-in prompt.
    pub fn built_in_text(self) -> &'static str {
        match self {
            Self::Task => include_str!("../../prompts/speckit_task.jinja2"),
            Self::Child => include_str!("../../prompts/speckit_child.jinja2"),
            Self::Repair => include_str!("../../prompts/speckit_repair.jinja2"),
            Self::Answer => include_str!("../../prompts/speckit_answer.jinja2"),
            Self::ShortName => include_str!("../../prompts/speckit_short_name.jinja2"),
        }
    }
}
