//! What Crow does itself of the bundled `git` extension: its settings, and the name of a new branch. Runs no git: who asks
//! says which branches there are.

mod branch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::hooks::HookTiming;
use crate::registry::EXTENSIONS_DIR;
use crate::{SpeckitError, SpeckitProject, WorkflowCommand, confined_files};

pub use branch::{BranchFacts, BranchNumber, BranchRequest, FeatureBranch, exact_branch_name, name_branch};

/// The extension's settings.
const CONFIG_FILE: &str = "git/git-config.yml";

/// The first commit of a repository, where the settings do not say.
const DEFAULT_INIT_MESSAGE: &str = "Begin the project";

/// The subject of a commit and a few lines; what is longer is a file in the wrong place.
const MESSAGE_CHARS_MAX: usize = 2000;

/// How branches are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BranchNumbering {
    /// By the next number.
    Sequential,
    /// By the time.
    Timestamp,
}

/// Who words a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitStyle {
    /// The settings.
    Fixed,
    /// The model, by what changed.
    Conventional,
}

/// The settings of the `git` extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitExtensionConfig {
    /// How branches are told apart.
    pub numbering: BranchNumbering,
    /// What a branch is called; empty for `{number}-{slug}`. The shorthand `branch_prefix` is in it already.
    pub branch_template: String,
    /// What the first commit says.
    pub init_commit_message: String,
    /// Who words a commit.
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
    /// Reads them; without a file nothing is committed and branches are called as usual.
    pub fn read(project: &SpeckitProject) -> Result<Self, SpeckitError> {
        Self::parse(
            &confined_files::read_specify_file(project, &Self::config_path(project))?.unwrap_or_default(),
        )
    }

    /// The file they stand in.
    pub fn config_path(project: &SpeckitProject) -> PathBuf {
        project.specify_path(EXTENSIONS_DIR).join(CONFIG_FILE)
    }

    /// Reads them from the text of that file.
    pub fn parse(text: &str) -> Result<Self, SpeckitError> {
        Ok(Self::from_yaml(&confined_files::parse_yaml(Path::new(CONFIG_FILE), text)?))
    }

    /// What a commit at this event says; `None` where nothing is to be committed.
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
    /// Reads `true`, or a section. A section that does not say so is not enabled, whatever the default is.
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
