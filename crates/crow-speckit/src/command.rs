//! The commands of the workflow: their names and the parser for what a user typed.

use std::fmt;
use std::path::PathBuf;

#[cfg(test)]
mod tests;

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

    /// A one-line description.
    pub fn description(self) -> &'static str {
        match self {
            Self::Constitution => "Set or amend the project's ground rules",
            Self::Specify => "Start a feature: turn an idea into a specification",
            Self::Clarify => "Clarify open questions of the current spec, one at a time",
            Self::Plan => "Design how the current spec will be built",
            Self::Checklist => "Create a checklist to review the requirements",
            Self::Tasks => "Break the plan into ordered tasks",
            Self::Analyze => "Cross-check spec, plan and tasks without changing files",
            Self::Implement => "Work through the task list",
            Self::Converge => "Compare the code with the spec and add missing tasks",
            Self::TasksToIssues => "Create a GitHub issue for each open task, with your GitHub MCP server",
        }
    }

    /// A hint for the arguments.
    pub fn argument_hint(self) -> &'static str {
        match self {
            Self::Constitution => "principles to adopt or change",
            Self::Specify => "what to build and why",
            Self::Clarify => "area to focus on (optional)",
            Self::Plan => "stack and technical limits",
            Self::Checklist => "topic, e.g. security",
            Self::Tasks => "preferences for the breakdown (optional)",
            Self::Analyze | Self::Converge => "focus (optional)",
            Self::Implement | Self::TasksToIssues => "phase, story or task ids (optional)",
        }
    }

    /// The commands that usually follow, the most likely first.
    pub fn next_commands(self) -> &'static [Self] {
        match self {
            Self::Constitution => &[Self::Specify],
            Self::Specify => &[Self::Clarify, Self::Plan],
            Self::Clarify => &[Self::Plan],
            Self::Plan => &[Self::Tasks, Self::Checklist],
            Self::Checklist => &[Self::Tasks],
            Self::Tasks => &[Self::Analyze, Self::Implement],
            Self::Analyze => &[Self::Implement],
            Self::Implement => &[Self::Converge],
            Self::Converge | Self::TasksToIssues => &[Self::Implement],
        }
    }
}

impl fmt::Display for WorkflowCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/speckit.{}", self.as_str())
    }
}

/// A parsed workflow command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpeckitRequest {
    /// A step of the workflow.
    Step(CommandInvocation),
    /// A command about the workflow.
    Action(SpeckitAction),
    /// A command of an extension, if the project has it.
    Extension {
        /// Its name, such as `speckit.git.commit`.
        name: String,
        /// The arguments, byte for byte.
        text: String,
    },
}

/// A command about the workflow itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpeckitAction {
    /// Shows the state of the workflow.
    Status,
    /// Switches to another feature, given by number, name or directory.
    Use(String),
    /// Initializes the project.
    Init,
    /// Shows the source of each template.
    Templates,
    /// Shows problems of the project.
    Doctor,
    /// Anything else.
    Unknown(String),
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

impl SpeckitRequest {
    /// Parses a command from its name without the slash; `None` if it is not one of ours, an error message if the
    /// arguments cannot be parsed.
    pub fn parse(name: &str, arguments: &str) -> Option<Result<Self, String>> {
        let rest = name.strip_prefix("speckit")?;
        if rest.is_empty() {
            return Some(Ok(Self::Action(parse_action(arguments.trim()))));
        }
        let step = rest.strip_prefix(['.', '-'])?;
        if let Some(command) = WorkflowCommand::parse(step) {
            return Some(parse_invocation(command, arguments).map(Self::Step));
        }
        let Some((extension, command)) = rest.strip_prefix('.')?.split_once('.') else {
            let names =
                WorkflowCommand::ALL.map(|command| format!("/speckit.{}", command.as_str())).join(", ");
            return Some(Err(format!(
                "There is no command /{name}. The steps are {names}; /speckit shows their state."
            )));
        };
        let is_named = !extension.is_empty() && !command.is_empty();
        is_named.then(|| Ok(Self::Extension { name: name.to_owned(), text: arguments.to_owned() }))
    }
}

fn parse_action(text: &str) -> SpeckitAction {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    match (word, rest.trim()) {
        ("" | "status", "") => SpeckitAction::Status,
        ("use", feature) if !feature.is_empty() => SpeckitAction::Use(feature.to_owned()),
        ("init", "") => SpeckitAction::Init,
        ("templates", "") => SpeckitAction::Templates,
        ("doctor", "") => SpeckitAction::Doctor,
        _ => SpeckitAction::Unknown(text.to_owned()),
    }
}

/// Parses the leading options. Text that looks like an option but is none is part of the description.
fn parse_invocation(command: WorkflowCommand, arguments: &str) -> Result<CommandInvocation, String> {
    let mut invocation =
        CommandInvocation { command, feature: None, naming: FeatureNaming::default(), text: String::new() };
    let mut rest = arguments.trim_start();
    loop {
        let (word, after) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
        if word == "--" {
            rest = after.trim_start();
            break;
        }
        let (name, inline_value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        let is_option = match name {
            "--feature" => command != WorkflowCommand::Specify && command != WorkflowCommand::Constitution,
            "--short-name" | "--number" | "--timestamp" | "--dir" => command == WorkflowCommand::Specify,
            "SPECIFY_FEATURE_DIRECTORY" => inline_value.is_some() && command != WorkflowCommand::Constitution,
            "GIT_BRANCH_NAME" => inline_value.is_some() && command == WorkflowCommand::Specify,
            _ => false,
        };
        if !is_option {
            break;
        }
        if name == "--timestamp" {
            invocation.naming.timestamp = true;
            rest = after.trim_start();
            continue;
        }
        let before = &rest[..rest.len() - after.len()];
        let value_text = match inline_value {
            Some(value) => &rest[before.len() - value.len()..],
            None => after.trim_start(),
        };
        let (value, after) = split_value(value_text).ok_or_else(|| format!("{name} needs a value."))?;
        let value = value.to_owned();
        match name {
            "--feature" => invocation.feature = Some(value),
            "--short-name" => invocation.naming.short_name = Some(value),
            "--number" => {
                let number = value.parse().map_err(|_| format!("--number needs a number, not {value}."))?;
                invocation.naming.number = Some(number);
            }
            "GIT_BRANCH_NAME" => invocation.naming.branch = Some(value),
            "SPECIFY_FEATURE_DIRECTORY" if command != WorkflowCommand::Specify => {
                invocation.feature = Some(value);
            }
            _ => invocation.naming.directory = Some(PathBuf::from(value)),
        }
        rest = after.trim_start();
    }
    invocation.text = rest.to_owned();
    Ok(invocation)
}

/// Splits off the first value: quoted, or up to a space.
fn split_value(text: &str) -> Option<(&str, &str)> {
    for quote in ['"', '\''] {
        if let Some((value, after)) = text.strip_prefix(quote).and_then(|text| text.split_once(quote)) {
            return Some((value, after));
        }
    }
    let (value, after) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
    (!value.is_empty()).then_some((value, after))
}
