//! The parser for workflow commands that a user typed.

use std::path::PathBuf;

use crate::{CommandInvocation, FeatureNaming, FeatureUse, WorkflowCommand, step_definition};

#[cfg(test)]
mod tests;

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
    let feature = step_definition(command).feature;
    let is_new = feature == FeatureUse::Creates;
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
            "--feature" => feature.prerequisites().is_some(),
            "--short-name" | "--number" | "--timestamp" | "--dir" => is_new,
            "SPECIFY_FEATURE_DIRECTORY" => inline_value.is_some() && feature != FeatureUse::Unused,
            "GIT_BRANCH_NAME" => inline_value.is_some() && is_new,
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
            "SPECIFY_FEATURE_DIRECTORY" if !is_new => {
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
