//! Crow's own implementation of the bundled `git` extension: its settings and the name of a new branch. Does not run
//! git; callers pass the existing branches.

mod branch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::hooks::HookTiming;
use crate::registry::EXTENSIONS_DIR;
use crate::{SpeckitError, SpeckitProject, WorkflowCommand, confined_files};

pub use branch::{BranchFacts, BranchNumber, BranchRequest, FeatureBranch, exact_branch_name, name_branch};

/// The extension's settings, relative to the extensions.
const CONFIG_FILE: &str = "git/git-config.yml";

/// The default message of a repository's first commit.
const DEFAULT_INIT_MESSAGE: &str = "Begin the project";

/// A subject and a few lines; anything longer is a mistake.
const MESSAGE_CHARS_MAX: usize = 2000;

/// The numbering of branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BranchNumbering {
    /// With the next number.
    Sequential,
    /// With a timestamp.
    Timestamp,
}

/// The author of commit messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitStyle {
    /// By the settings.
    Fixed,
    /// By the model, from the changes.
    Conventional,
}

/// The settings of the `git` extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitExtensionConfig {
    /// The numbering of branches.
    pub numbering: BranchNumbering,
    /// The template of a branch name; empty for `{number}-{slug}`. Already includes the shorthand `branch_prefix`.
    pub branch_template: String,
    /// The message of the first commit.
    pub init_commit_message: String,
    /// The author of commit messages.
    pub commit_style: CommitStyle,
    commits_by_default: bool,
    commits: BTreeMap<String, AutoCommit>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct AutoCommit {
    is_enabled: bool,
    message: Option<String>,
}

impl GitExtensionConfig {
    /// Reads the settings; without a file nothing is committed and branches have default names.
    pub fn read(project: &SpeckitProject) -> Result<Self, SpeckitError> {
        Self::parse(
            &confined_files::read_specify_file(project, &Self::config_path(project))?.unwrap_or_default(),
        )
    }

    /// The path of the settings.
    pub fn config_path(project: &SpeckitProject) -> PathBuf {
        project.specify_path(EXTENSIONS_DIR).join(CONFIG_FILE)
    }

    /// Parses the settings.
    pub fn parse(text: &str) -> Result<Self, SpeckitError> {
        Ok(Self::from_yaml(&confined_files::parse_yaml(Path::new(CONFIG_FILE), text)?))
    }

    /// Returns the message of the commit at this event; `None` if none is made.
    pub fn commit_message(&self, timing: HookTiming, command: WorkflowCommand) -> Option<String> {
        let commit = self.commits.get(&timing.event_name(command));
        let is_enabled = commit.map_or(self.commits_by_default, |commit| commit.is_enabled);
        let message = commit.and_then(|commit| commit.message.clone());
        is_enabled.then(|| message.unwrap_or_else(|| format!("Save the work {timing} {command}")))
    }

    fn from_yaml(value: &Value) -> Self {
        let text_value = |key: &str| message_text(value.get(key)).unwrap_or_default();
        let template = text_value("branch_template");
        let prefix = text_value("branch_prefix");
        let auto_commit = value.get("auto_commit").and_then(Value::as_object);
        let events = auto_commit.into_iter().flatten().filter(|(event, _)| *event != "default");
        Self {
            numbering: match text_value("branch_numbering").as_str() {
                "timestamp" => BranchNumbering::Timestamp,
                _ => BranchNumbering::Sequential,
            },
            branch_template: match (template.is_empty(), prefix.is_empty()) {
                (true, false) => {
                    format!("{}/{{number}}-{{slug}}", prefix.strip_suffix('/').unwrap_or(&prefix))
                }
                (true, true) | (false, _) => template,
            },
            init_commit_message: message_text(value.get("init_commit_message"))
                .unwrap_or_else(|| DEFAULT_INIT_MESSAGE.to_owned()),
            commit_style: match text_value("commit_style").as_str() {
                "conventional" => CommitStyle::Conventional,
                _ => CommitStyle::Fixed,
            },
            commits_by_default: value.pointer("/auto_commit/default") == Some(&Value::Bool(true)),
            commits: events.map(|(event, value)| (event.clone(), AutoCommit::from_yaml(value))).collect(),
        }
    }
}

impl AutoCommit {
    /// Parses `true` or a section. A section without `enabled` is disabled, regardless of the default.
    fn from_yaml(value: &Value) -> Self {
        let is_enabled = value.get("enabled").unwrap_or(value) == &Value::Bool(true);
        Self { is_enabled, message: message_text(value.get("message")) }
    }
}

fn message_text(value: Option<&Value>) -> Option<String> {
    let text = value?.as_str()?.trim();
    (!text.is_empty()).then(|| text.chars().filter(|c| *c != '\0').take(MESSAGE_CHARS_MAX).collect())
}

#[cfg(test)]
mod tests;
