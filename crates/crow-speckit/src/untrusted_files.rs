//! Which files of a project speak to a model, or have commands run: what a person has to approve before it counts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::hooks::SpeckitHooks;
use crate::selection_files::describe_file;
use crate::{
    ExtensionCommand, PromptSource, SpeckitProject, WorkflowCommand, command_prompt, extension_prompt,
    hook_config_files, list_extension_commands,
};

/// A file of a project that counts only when a person approves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntrustedFile {
    /// The file.
    pub path: PathBuf,
    /// What it does, a line each.
    pub purposes: Vec<String>,
    /// The command it stands for.
    pub command: Option<ExtensionCommand>,
}

/// Lists them. What cannot be read is left out: nothing of it counts.
pub fn list_untrusted_files(project: &SpeckitProject) -> Vec<UntrustedFile> {
    let mut set = UntrustedFileSet { root: project.root(), files: BTreeMap::new() };
    for command in WorkflowCommand::ALL {
        if let Ok(source) = command_prompt(project, None, command) {
            set.add_source(&source, &format!("changes the prompt of {command}"), None);
        }
    }
    for command in list_extension_commands(project).map(|list| list.commands).unwrap_or_default() {
        if let Ok(source) = extension_prompt(project, &command) {
            set.add_source(
                &source,
                &format!("command /{}: {}", command.name, command.description),
                Some(&command),
            );
        }
    }
    if let Some(hooks) = describe_hooks(project) {
        set.files.insert(SpeckitHooks::config_path(project), hooks);
        for (path, _) in hook_config_files(project).unwrap_or_default() {
            set.files.entry(path).or_default();
        }
    }
    for (path, file_use) in &mut set.files {
        if let Some(description) = describe_file(project, path) {
            file_use.purposes = description;
        }
        file_use.purposes.dedup();
    }
    let untrusted = set.files.into_iter().map(|(path, FileUse { purposes, command })| UntrustedFile {
        path,
        purposes,
        command,
    });
    untrusted.collect()
}

#[derive(Default)]
struct FileUse {
    purposes: Vec<String>,
    command: Option<ExtensionCommand>,
}

struct UntrustedFileSet<'a> {
    root: &'a Path,
    files: BTreeMap<PathBuf, FileUse>,
}

impl UntrustedFileSet<'_> {
    fn add_source(&mut self, source: &PromptSource, purpose: &str, command: Option<&ExtensionCommand>) {
        for (path, _) in &source.files {
            let file_use = self.files.entry(self.root.join(path)).or_default();
            file_use.purposes.push(purpose.to_owned());
            // Of several commands the first one names it.
            if file_use.command.is_none() {
                file_use.command = command.filter(|command| command.file == *path).cloned();
            }
        }
    }
}

/// What the hooks of a project do; nothing where none is enabled.
fn describe_hooks(project: &SpeckitProject) -> Option<FileUse> {
    let hooks = SpeckitHooks::read(project).ok()?;
    let mut purposes = Vec::new();
    for (timing, command, hook) in hooks.all_hooks() {
        let condition = if hook.is_optional { ", if you say so" } else { "" };
        purposes.push(format!("hook {timing} {command} does {}{condition}", hook.command));
    }
    (!purposes.is_empty()).then_some(FileUse { purposes, command: None })
}
