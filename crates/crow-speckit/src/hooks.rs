//! The hooks that a project configures before and after a command, with their order and conditions. Runs no hook.

mod condition;

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::confined_files::{self, is_truthy};
use crate::extension::menu_line;
use crate::{SpeckitError, SpeckitProject, WorkflowCommand, registry};

use condition::HookCondition;

/// The hook configuration, relative to `.specify/`.
const CONFIG_FILE: &str = "extensions.yml";

/// All bundled extensions together have four for one event; each may be a question to the user.
const HOOKS_MAX: usize = 32;

/// Before or after a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HookTiming {
    /// Before anything is written.
    Before,
    /// After the command is done.
    After,
}

impl HookTiming {
    /// The name of the event, such as `before_plan`.
    pub fn event_name(self, command: WorkflowCommand) -> String {
        format!("{self}_{}", command.as_str())
    }
}

impl fmt::Display for HookTiming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Before => "before",
            Self::After => "after",
        })
    }
}

/// A hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpeckitHook {
    /// The extension that added it.
    pub extension: String,
    /// The command to run, such as `speckit.git.commit`.
    pub command: String,
    /// Whether to ask the user first.
    pub is_optional: bool,
    /// The question; may be empty.
    pub prompt: String,
    /// A description; may be empty.
    pub description: String,
}

/// The hooks of a project.
#[derive(Debug, Clone)]
pub struct SpeckitHooks {
    project: SpeckitProject,
    events: Map<String, Value>,
}

impl SpeckitHooks {
    /// Reads the hooks; a project without the file has none. An error does not stop a command: it is shown, and no hook
    /// runs.
    pub fn read(project: &SpeckitProject) -> Result<Self, SpeckitError> {
        match confined_files::read_specify_file(project, &Self::config_path(project))? {
            Some(text) => Self::parse(project, &text),
            None => Ok(Self { project: project.clone(), events: Map::new() }),
        }
    }

    /// The path of the settings.
    pub fn config_path(project: &SpeckitProject) -> PathBuf {
        project.specify_path(CONFIG_FILE)
    }

    /// Parses the settings.
    pub fn parse(project: &SpeckitProject, text: &str) -> Result<Self, SpeckitError> {
        let path = Self::config_path(project);
        let events = match confined_files::parse_yaml(&path, text)? {
            Value::Object(mut config) => match config.remove("hooks") {
                Some(Value::Object(events)) => events,
                _ => Map::new(),
            },
            Value::Null => Map::new(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err(SpeckitError::invalid_file(&path, "it is not a list of settings"));
            }
        };
        let is_long = |list: &Value| list.as_array().is_some_and(|list| list.len() > HOOKS_MAX);
        if let Some((event, _)) = events.iter().find(|(_, list)| is_long(list)) {
            let reason = format!("it has more than {HOOKS_MAX} hooks for {}", menu_line(event));
            return Err(SpeckitError::invalid_file(&path, reason));
        }
        Ok(Self { project: project.clone(), events })
    }

    /// Returns the hooks of an event whose conditions hold, in the order in which they run.
    pub fn matching_hooks(
        &self,
        timing: HookTiming,
        command: WorkflowCommand,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Vec<SpeckitHook> {
        self.enabled_entries(timing, command)
            .filter(|hook| self.is_condition_met(hook, env))
            .filter_map(parse_hook)
            .collect()
    }

    /// Returns the hooks of an event, regardless of their conditions.
    pub fn enabled_hooks(&self, timing: HookTiming, command: WorkflowCommand) -> Vec<SpeckitHook> {
        self.enabled_entries(timing, command).filter_map(parse_hook).collect()
    }

    /// Returns all hooks with their events.
    pub(crate) fn all_hooks(&self) -> impl Iterator<Item = (HookTiming, WorkflowCommand, SpeckitHook)> {
        let events = WorkflowCommand::ALL
            .into_iter()
            .flat_map(|command| [(HookTiming::Before, command), (HookTiming::After, command)]);
        events.flat_map(|(timing, command)| {
            self.enabled_hooks(timing, command).into_iter().map(move |hook| (timing, command, hook))
        })
    }

    /// Returns the extensions whose settings decide whether a hook runs.
    pub(crate) fn extensions_with_conditions(&self) -> BTreeSet<String> {
        let events = WorkflowCommand::ALL
            .into_iter()
            .flat_map(|command| [(HookTiming::Before, command), (HookTiming::After, command)]);
        let hooks = events.flat_map(|(timing, command)| self.enabled_entries(timing, command));
        let with_conditions = hooks.filter(|hook| {
            let condition = hook.get("condition").and_then(Value::as_str).and_then(HookCondition::parse);
            condition.is_some_and(|condition| condition.reads_settings())
        });
        let ids = with_conditions.map(|hook| string_field(hook, "extension").to_owned());
        ids.filter(|id| confined_files::is_name(id)).collect()
    }

    fn enabled_entries(&self, timing: HookTiming, command: WorkflowCommand) -> impl Iterator<Item = &Value> {
        let entries = self.events.get(&timing.event_name(command)).and_then(Value::as_array);
        let is_enabled = |hook: &&Value| hook.get("enabled").is_none_or(is_truthy);
        let mut hooks: Vec<&Value> = entries.into_iter().flatten().filter(is_enabled).collect();
        hooks.sort_by_key(|hook| registry::parse_priority(hook.get("priority")));
        hooks.into_iter()
    }

    fn is_condition_met(&self, hook: &Value, env: &dyn Fn(&str) -> Option<String>) -> bool {
        match hook.get("condition") {
            Some(condition) if is_truthy(condition) => {
                let extension = string_field(hook, "extension");
                let condition = condition.as_str().and_then(HookCondition::parse);
                condition.is_some_and(|condition| condition.is_met(&self.project, extension, env))
            }
            Some(_) | None => true,
        }
    }
}

fn parse_hook(value: &Value) -> Option<SpeckitHook> {
    let command = string_field(value, "command").trim();
    // It is looked up among commands and shown to the user.
    if !command.split('.').all(confined_files::is_name) {
        return None;
    }
    Some(SpeckitHook {
        extension: menu_line(string_field(value, "extension")),
        command: command.to_owned(),
        is_optional: value.get("optional").is_none_or(is_truthy),
        prompt: menu_line(string_field(value, "prompt")),
        description: menu_line(string_field(value, "description")),
    })
}

fn string_field<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
