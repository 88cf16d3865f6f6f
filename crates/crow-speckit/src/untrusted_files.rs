//! The project files that a model reads or that cause commands to run, all of which need the user's approval.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::hooks::SpeckitHooks;
use crate::selection_files::describe_file;
use crate::{
    ExtensionCommand, PromptSource, SpeckitProject, WorkflowCommand, command_prompt, extension_prompt,
    hook_config_files, list_extension_commands,
};

/// The files of a repository that the user approved, by their bytes.
pub trait FileApprovals: fmt::Debug + Send + Sync {
    /// Whether a file has the approved content.
    fn is_approved(&self, path: &Path, bytes: &[u8]) -> bool;
}

/// A project file that is used only after approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntrustedFile {
    /// The file.
    pub path: PathBuf,
    /// The effects of the file, one line each.
    pub purposes: Vec<String>,
    /// The command that it defines.
    pub command: Option<ExtensionCommand>,
}

/// Lists the untrusted files. Unreadable files are omitted, because they are not used.
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
            // The first of several commands is shown.
            if file_use.command.is_none() {
                file_use.command = command.filter(|command| command.file == *path).cloned();
            }
        }
    }
}

/// Describes the hooks of a project; `None` if none is enabled.
fn describe_hooks(project: &SpeckitProject) -> Option<FileUse> {
    let hooks = SpeckitHooks::read(project).ok()?;
    let mut purposes = Vec::new();
    for (timing, command, hook) in hooks.all_hooks() {
        let condition = if hook.is_optional { ", if you approve" } else { "" };
        purposes.push(format!("hook {timing} {command} runs {}{condition}", hook.command));
    }
    (!purposes.is_empty()).then_some(FileUse { purposes, command: None })
}
