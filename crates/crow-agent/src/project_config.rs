//! The configuration of a session besides its tools: rules, MCP servers, skills and prompt files, of the user and of a
//! trusted repository.
//!
//! Untrusted content must never be used: content of a repository becomes part of [`ProjectConfig`] only from the bytes
//! that were hashed and approved, never from a later read.

mod bounded_read;
mod loader;
mod scan;
mod skill_files;
mod survey;
mod trust_command;
mod trust_question;
mod trust_records;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fmt, slice};

use crow_core::{
    CommandInfo, ContentHash, ContentPart, CrowPart, HookConfig, McpServer, PermissionRules, slash,
};

use crow_speckit::UntrustedFile;

use crate::runtime::AgentConfig;

pub(crate) use self::bounded_read::{AllowedRoot, list_names, read_bounded_text as read_text};
pub(crate) use self::loader::ProjectConfigLoader;
pub(crate) use self::scan::{hash_content, repository_root};
pub(crate) use self::skill_files::{PromptFile, Skill};
pub(crate) use self::survey::known_skills;
pub(crate) use self::trust_command::TrustAction;
pub use self::trust_command::{
    RepositoryFileTrust, RepositoryTrust, TrustedRepository, find_repository_root, forget_trust, list_trust,
};

/// Reads the configuration files of repositories, which have the format of the user's own.
pub trait RepositoryConfigReader: fmt::Debug + Send + Sync {
    /// Parses a file's text; nothing else is read.
    fn read_config(&self, path: &Path, text: &str, variables: VariableExpansion<'_>) -> RepositoryConfig;
}

/// The expansion of `${NAME}` in a repository's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableExpansion<'a> {
    /// Not at all: the file is not trusted yet.
    AsWritten,
    /// Only these variables, which the user was shown, and never a key.
    Only(&'a BTreeSet<String>),
}

/// The content of a repository's configuration file.
#[derive(Debug, Clone, Default)]
pub struct RepositoryConfig {
    /// Its MCP servers.
    pub servers: Vec<McpServer>,
    /// Its permission rules.
    pub rules: PermissionRules,
    /// Its hooks.
    pub hooks: Vec<HookConfig>,
    /// The variables whose values it gets.
    pub variables: BTreeSet<String>,
    /// The variables in it that hold keys: a repository never gets these.
    pub secret_variables: BTreeSet<String>,
    /// Keys that a repository cannot set.
    pub rejected_keys: Vec<String>,
    /// Problems of the file, one sentence each.
    pub problems: Vec<String>,
}

impl RepositoryConfig {
    /// Whether it has nothing that needs approval.
    pub(crate) fn is_empty(&self) -> bool {
        self.servers.is_empty()
            && self.rules.allow.is_empty()
            && self.rules.deny.is_empty()
            && self.hooks.is_empty()
    }
}

/// The current configuration of a session.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProjectConfig {
    /// The repository's servers, in addition to those of the session.
    pub(crate) servers: Vec<McpServer>,
    /// Rules of the configuration and of the repository.
    pub(crate) rules: PermissionRules,
    /// The user's before the repository's.
    pub(crate) hooks: Vec<HookConfig>,
    /// The user's before the repository's.
    pub(crate) skills: Vec<Skill>,
    /// The user's before the repository's.
    pub(crate) prompts: Vec<PromptFile>,
    /// The approved Spec Kit files of the project.
    pub(crate) approved: ApprovedFiles,
}

/// The Spec Kit files of a project that the user approved, by their bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct ApprovedFiles {
    files: BTreeSet<(PathBuf, ContentHash)>,
    /// The commands in these files.
    commands: Vec<CommandInfo>,
}

impl ApprovedFiles {
    fn add_file(&mut self, path: PathBuf, hash: ContentHash, file: UntrustedFile) {
        self.files.insert((path, hash));
        self.commands.extend(file.command.map(|command| CommandInfo {
            name: command.name,
            description: command.description,
            hint: None,
        }));
    }

    /// Whether a file has the approved content.
    pub(crate) fn is_approved(&self, path: &Path, bytes: &[u8]) -> bool {
        self.files.contains(&(path.to_owned(), scan::hash_content(bytes)))
    }
}

impl ProjectConfig {
    /// Returns the configuration without a repository.
    pub(crate) fn from_config(config: &AgentConfig) -> Self {
        Self { rules: config.rules.clone(), hooks: config.hooks.clone(), ..Self::default() }
    }

    /// Returns the commands of prompt files and skills.
    pub(crate) fn slash_commands(&self) -> Vec<CommandInfo> {
        let prompts = self.prompts.iter().map(|prompt| CommandInfo {
            name: prompt.name.clone(),
            description: prompt.description.clone(),
            hint: prompt.hint.clone(),
        });
        let skills = self.skills.iter().filter(|skill| self.find_prompt(&skill.name).is_none());
        let skills = skills.map(|skill| CommandInfo {
            name: skill.name.clone(),
            description: skill.description.clone(),
            hint: skill.hint.clone(),
        });
        prompts.chain(skills).chain(self.approved.commands.iter().cloned()).collect()
    }

    /// Returns the directories of the skills, with links resolved at the time of the scan.
    pub(crate) fn skill_folders(&self) -> impl Iterator<Item = &Path> {
        self.skills.iter().filter_map(|skill| skill.directory.as_deref())
    }

    /// Adds the expansion of its command to a prompt; the user's text is unchanged.
    pub(crate) fn expand_prompt(&self, mut parts: Vec<ContentPart>) -> Vec<ContentPart> {
        let expansion = match parts.first() {
            Some(ContentPart::Text(text)) => {
                slash::parse_command(text).and_then(|command| self.command_expansion(command))
            }
            Some(
                ContentPart::Image { .. }
                | ContentPart::Link { .. }
                | ContentPart::Resource { .. }
                | ContentPart::FromCrow { .. },
            )
            | None => None,
        };
        // After the text with the command, before its attachments.
        if let Some(expansion) = expansion {
            parts.insert(1, expansion);
        }
        parts
    }

    fn command_expansion(&self, command: slash::SlashCommand<'_>) -> Option<ContentPart> {
        let slash::SlashCommand { name, arguments } = command;
        let text = match (self.find_prompt(name), self.skills.iter().find(|skill| skill.name == name)) {
            (Some(prompt), _) => {
                let text = slash::fill_arguments(&prompt.body, arguments);
                format!("The command /{name} stands for this:\n\n{}", text.trim())
            }
            (None, Some(skill)) => {
                let directory = skill.path.parent().unwrap_or(&skill.path).display();
                let text = slash::fill_all_arguments(&skill.body, arguments);
                format!(
                    "The command /{name} asks for this skill. Paths in it start in {directory}.\n\n{}",
                    text.trim()
                )
            }
            (None, None) => return None,
        };
        Some(ContentPart::FromCrow { kind: CrowPart::Command(name.to_owned()), text })
    }

    fn find_prompt(&self, name: &str) -> Option<&PromptFile> {
        self.prompts.iter().find(|prompt| prompt.name == name)
    }
}

/// Returns a part about skills that are not in the system prompt.
pub(crate) fn skills_part(skills: &[&Skill]) -> ContentPart {
    let lines = skills
        .iter()
        .map(|skill| format!("\n- {}: {} ({})", skill.name, skill.description, skill.path.display()));
    let text = format!(
        "There are more skills. When the work fits a description, read the file first and follow it; paths in it \
         start in its folder.{}",
        lines.collect::<String>()
    );
    ContentPart::FromCrow { kind: CrowPart::Skills, text }
}

/// Whether a prompt mentions a skill.
pub(crate) fn mentions_skill(parts: &[ContentPart], skill: &Skill) -> bool {
    let path = skill.path.display().to_string();
    parts.iter().any(|part| match part {
        ContentPart::FromCrow { text, .. } => text.contains(&path),
        ContentPart::Text(_)
        | ContentPart::Image { .. }
        | ContentPart::Link { .. }
        | ContentPart::Resource { .. } => false,
    })
}

/// Keeps the first item of each name.
fn dedup_by_name<T>(items: &mut Vec<T>, name: impl Fn(&T) -> String) {
    let mut names = std::collections::BTreeSet::new();
    items.retain(|item| names.insert(name(item)));
}

/// Formats a number of things.
fn count_text(n: usize, noun: &str) -> Option<String> {
    match n {
        0 => None,
        1 => Some(format!("1 {noun}")),
        n => Some(format!("{n} {noun}s")),
    }
}

/// Joins items with commas, at most `n_max` of them.
fn join_items(items: slice::Iter<'_, String>, n_max: usize) -> String {
    let n_more = items.len().saturating_sub(n_max);
    let mut shown_items: Vec<String> = items.take(n_max).cloned().collect();
    shown_items.extend((n_more > 0).then(|| format!("{n_more} more")));
    shown_items.join(", ")
}

#[cfg(test)]
pub(crate) use self::tests::bare_settings;

#[cfg(test)]
mod tests;
