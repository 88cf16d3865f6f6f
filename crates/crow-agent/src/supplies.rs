//! What a session works with beside its tools: rules, MCP servers, skills and prompt files, the person's own and those of
//! the repository that the person trusts.
//!
//! Must never use what nobody trusts: what a repository brings along becomes part of [`Supplies`] by the bytes
//! that were hashed and approved, and by nothing that is read later.

mod asking;
mod found;
mod kept;
mod reading;
mod stock;
mod survey;
mod texts;
mod trusting;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fmt, slice};

use crow_core::{CommandInfo, ContentHash, CrowPart, Hook, McpServer, Part, Rules, slash};

use crow_speckit::Supplied;

use crate::kit::KitSettings;

pub(crate) use self::found::{hash, root};
pub(crate) use self::reading::{Inside, names, text as read_text};
pub(crate) use self::stock::Stock;
pub(crate) use self::survey::known_skills;
pub(crate) use self::texts::{PromptFile, Skill};
pub(crate) use self::trusting::TrustOrder;
pub use self::trusting::{
    RepositoryTrust, SuppliedFile, TrustedRepository, forget_trust, list_trust, repository_of,
};

/// Reads the configuration files of repositories, which are spelled like the person's own.
pub trait ReadRepository: fmt::Debug + Send + Sync {
    /// Reads a file's text; nothing else is looked at.
    fn read(&self, path: &Path, text: &str, variables: Variables<'_>) -> RepositoryConfig;
}

/// What becomes of `${NAME}` in a repository's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variables<'a> {
    /// It stays as it is written: nobody trusts the file yet.
    AsWritten,
    /// It is replaced by its value where it is one of these, which a person was shown, and no key.
    Listed(&'a BTreeSet<String>),
}

/// What a configuration file of a repository says.
#[derive(Debug, Clone, Default)]
pub struct RepositoryConfig {
    /// The MCP servers it brings along.
    pub servers: Vec<McpServer>,
    /// What it would allow and deny.
    pub rules: Rules,
    /// The commands that it would have run at moments of a turn.
    pub hooks: Vec<Hook>,
    /// The variables that it gets the values of.
    pub variables: BTreeSet<String>,
    /// Variables that it names and that hold keys: no repository gets those.
    pub keys: BTreeSet<String>,
    /// Keys that a repository cannot set.
    pub refused: Vec<String>,
    /// What is odd or wrong in it, a sentence each.
    pub problems: Vec<String>,
}

impl RepositoryConfig {
    /// Tells whether it brings nothing that anyone would have to approve.
    pub(crate) fn is_empty(&self) -> bool {
        self.servers.is_empty()
            && self.rules.allow.is_empty()
            && self.rules.deny.is_empty()
            && self.hooks.is_empty()
    }
}

/// What a session may use at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Supplies {
    /// The repository's servers, beside those that the session was opened with.
    pub(crate) servers: Vec<McpServer>,
    /// What is allowed and denied, by the configuration and by the repository.
    pub(crate) rules: Rules,
    /// The person's own before the repository's.
    pub(crate) hooks: Vec<Hook>,
    /// The person's own before the repository's.
    pub(crate) skills: Vec<Skill>,
    /// The person's own before the repository's.
    pub(crate) prompts: Vec<PromptFile>,
    /// What counts of the project's Spec Kit files.
    pub(crate) approved: Approved,
}

/// The Spec Kit files of a project that the person approved, by their bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Approved {
    files: BTreeSet<(PathBuf, ContentHash)>,
    /// The commands that stand in them.
    commands: Vec<CommandInfo>,
}

impl Approved {
    fn add(&mut self, path: PathBuf, hash: ContentHash, supplied: Supplied) {
        self.files.insert((path, hash));
        self.commands.extend(supplied.command.map(|command| CommandInfo {
            name: command.name,
            description: command.description,
            hint: None,
        }));
    }

    /// Tells whether a file says what was approved.
    pub(crate) fn has(&self, path: &Path, bytes: &[u8]) -> bool {
        self.files.contains(&(path.to_owned(), found::hash(bytes)))
    }
}

impl Supplies {
    /// What the configuration alone says.
    pub(crate) fn configured(settings: &KitSettings) -> Self {
        Self { rules: settings.rules.clone(), hooks: settings.hooks.clone(), ..Self::default() }
    }

    /// The commands that stand for prompt files and skills.
    pub(crate) fn commands(&self) -> Vec<CommandInfo> {
        let prompts = self.prompts.iter().map(|prompt| CommandInfo {
            name: prompt.name.clone(),
            description: prompt.description.clone(),
            hint: prompt.hint.clone(),
        });
        let skills = self.skills.iter().filter(|skill| self.prompt(&skill.name).is_none());
        let skills = skills.map(|skill| CommandInfo {
            name: skill.name.clone(),
            description: skill.description.clone(),
            hint: skill.hint.clone(),
        });
        prompts.chain(skills).chain(self.approved.commands.iter().cloned()).collect()
    }

    /// The folders of the skills, which hold what their texts speak of, as they were when they were looked at.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &Path> {
        self.skills.iter().filter_map(|skill| skill.folder.as_deref())
    }

    /// Adds to a prompt what its command stands for; what the person typed stays as it is.
    pub(crate) fn expand(&self, mut parts: Vec<Part>) -> Vec<Part> {
        let meaning = match parts.first() {
            Some(Part::Text(text)) => slash::parse(text).and_then(|command| self.meaning(command)),
            Some(Part::Image { .. } | Part::Link { .. } | Part::Resource { .. } | Part::FromCrow { .. })
            | None => None,
        };
        // After the text that names it, before what it is about.
        if let Some(meaning) = meaning {
            parts.insert(1, meaning);
        }
        parts
    }

    fn meaning(&self, command: slash::Command<'_>) -> Option<Part> {
        let slash::Command { name, arguments } = command;
        let text = match (self.prompt(name), self.skills.iter().find(|skill| skill.name == name)) {
            (Some(prompt), _) => {
                let text = slash::fill(&prompt.body, arguments);
                format!("The command /{name} stands for this:\n\n{}", text.trim())
            }
            (None, Some(skill)) => {
                let folder = skill.path.parent().unwrap_or(&skill.path).display();
                let text = slash::fill_whole(&skill.body, arguments);
                format!(
                    "The command /{name} asks for this skill. Paths in it start in {folder}.\n\n{}",
                    text.trim()
                )
            }
            (None, None) => return None,
        };
        Some(Part::FromCrow { what: CrowPart::Command(name.to_owned()), text })
    }

    fn prompt(&self, name: &str) -> Option<&PromptFile> {
        self.prompts.iter().find(|prompt| prompt.name == name)
    }
}

/// Tells the model of skills that its system prompt does not name.
pub(crate) fn skills_part(skills: &[&Skill]) -> Part {
    let lines = skills
        .iter()
        .map(|skill| format!("\n- {}: {} ({})", skill.name, skill.description, skill.path.display()));
    let text = format!(
        "There are more skills. When the work fits a description, read the file first and follow it; paths in it \
         start in its folder.{}",
        lines.collect::<String>()
    );
    Part::FromCrow { what: CrowPart::Skills, text }
}

/// Finds a skill among those that the model was told of in prompts.
pub(crate) fn is_told(parts: &[Part], skill: &Skill) -> bool {
    let path = skill.path.display().to_string();
    parts.iter().any(|part| match part {
        Part::FromCrow { text, .. } => text.contains(&path),
        Part::Text(_) | Part::Image { .. } | Part::Link { .. } | Part::Resource { .. } => false,
    })
}

/// Keeps the first of each name.
fn first_of_each<T>(items: &mut Vec<T>, name: impl Fn(&T) -> String) {
    let mut names = std::collections::BTreeSet::new();
    items.retain(|item| names.insert(name(item)));
}

/// Counts things in words.
fn counted(n: usize, what: &str) -> Option<String> {
    match n {
        0 => None,
        1 => Some(format!("1 {what}")),
        n => Some(format!("{n} {what}s")),
    }
}

/// Joins sentences' parts; nothing when there are none.
fn listed(items: slice::Iter<'_, String>, n_max: usize) -> String {
    let n_more = items.len().saturating_sub(n_max);
    let mut shown: Vec<String> = items.take(n_max).cloned().collect();
    shown.extend((n_more > 0).then(|| format!("{n_more} more")));
    shown.join(", ")
}

#[cfg(test)]
pub(crate) use self::tests::bare_settings;

#[cfg(test)]
mod tests;
