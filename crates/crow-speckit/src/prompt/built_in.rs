//! The built-in prompts by command or situation.

use crate::WorkflowCommand;

/// Returns the initial prompt of a command.
pub fn built_in_prompt(command: WorkflowCommand) -> &'static str {
    match command {
        WorkflowCommand::Constitution => include_str!("../../prompts/speckit_constitution.jinja2"),
        WorkflowCommand::Specify => include_str!("../../prompts/speckit_specify.jinja2"),
        WorkflowCommand::Clarify => include_str!("../../prompts/speckit_clarify.jinja2"),
        WorkflowCommand::Plan => include_str!("../../prompts/speckit_plan.jinja2"),
        WorkflowCommand::Checklist => include_str!("../../prompts/speckit_checklist.jinja2"),
        WorkflowCommand::Tasks => include_str!("../../prompts/speckit_tasks.jinja2"),
        WorkflowCommand::Analyze => include_str!("../../prompts/speckit_analyze.jinja2"),
        WorkflowCommand::Implement => include_str!("../../prompts/speckit_implement.jinja2"),
        WorkflowCommand::Converge => include_str!("../../prompts/speckit_converge.jinja2"),
        WorkflowCommand::TasksToIssues => include_str!("../../prompts/speckit_taskstoissues.jinja2"),
    }
}

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
