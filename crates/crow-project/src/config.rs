//! The configuration of a session, and the files that the user approved.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crow_core::{
    CommandInfo, ContentHash, ContentPart, CrowPart, HookConfig, McpServer, PermissionRules, slash,
};
use crow_files::hash_content;
use crow_speckit::{FileApprovals, UntrustedFile};

use crate::skill_files::{PromptFile, Skill};
use crate::survey::ConfigSources;

/// The current configuration of a session.
#[derive(Debug, Clone, Default)]
pub struct ProjectConfig {
    /// The repository's servers, in addition to those of the session.
    pub servers: Vec<McpServer>,
    /// Rules of the configuration and of the repository.
    pub rules: PermissionRules,
    /// The user's before the repository's.
    pub hooks: Vec<HookConfig>,
    /// The user's before the repository's.
    pub skills: Vec<Skill>,
    /// The user's before the repository's.
    pub prompts: Vec<PromptFile>,
    /// The instructions of the user and the project; `None` before they were read.
    pub instructions: Option<Arc<str>>,
    /// The approved Spec Kit files of the project.
    pub approved: ApprovedFiles,
}

/// The Spec Kit files of a project that the user approved, by their bytes.
#[derive(Debug, Clone, Default)]
pub struct ApprovedFiles {
    files: BTreeSet<(PathBuf, ContentHash)>,
    /// The commands in these files.
    commands: Vec<CommandInfo>,
}

impl ApprovedFiles {
    pub(crate) fn add_file(&mut self, path: PathBuf, hash: ContentHash, file: UntrustedFile) {
        self.files.insert((path, hash));
        self.commands.extend(file.command.map(|command| CommandInfo {
            name: command.name,
            description: command.description,
            hint: None,
        }));
    }
}

impl FileApprovals for ApprovedFiles {
    fn is_approved(&self, path: &Path, bytes: &[u8]) -> bool {
        self.files.contains(&(path.to_owned(), hash_content(bytes)))
    }
}

impl ProjectConfig {
    /// Returns the configuration without a repository.
    pub fn without_repository(sources: &ConfigSources) -> Self {
        Self { rules: sources.rules.clone(), hooks: sources.hooks.clone(), ..Self::default() }
    }

    /// Returns the commands of prompt files and skills.
    pub fn slash_commands(&self) -> Vec<CommandInfo> {
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
    pub fn skill_folders(&self) -> impl Iterator<Item = &Path> {
        self.skills.iter().filter_map(|skill| skill.directory.as_deref())
    }

    /// Adds the expansion of its command to a prompt; the user's text is unchanged.
    pub fn expand_prompt(&self, mut parts: Vec<ContentPart>) -> Vec<ContentPart> {
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

/// Returns a part about skills.
pub(crate) fn skills_part(skills: &[&Skill]) -> ContentPart {
    let lines = skills
        .iter()
        .map(|skill| format!("\n- {}: {} ({})", skill.name, skill.description, skill.path.display()));
    let text = format!(
        "Skills. When the work fits a description, read the file first and follow it; paths in it \
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
