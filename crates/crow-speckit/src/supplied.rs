//! Which files of a project speak to a model, or have commands run: what a person has to approve before it counts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::choosing::describe_file;
use crate::hooks::SpeckitHooks;
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
    pub about: Vec<String>,
    /// The command it stands for.
    pub command: Option<ExtensionCommand>,
}

/// Lists them. What cannot be read is left out: nothing of it counts.
pub fn list_untrusted_files(project: &SpeckitProject) -> Vec<UntrustedFile> {
    let mut all = UntrustedFileSet { root: project.root(), found: BTreeMap::new() };
    for command in WorkflowCommand::ALL {
        if let Ok(source) = command_prompt(project, None, command) {
            all.add_source(&source, &format!("changes the prompt of {command}"), None);
        }
    }
    for command in list_extension_commands(project).map(|all| all.commands).unwrap_or_default() {
        if let Ok(source) = extension_prompt(project, &command) {
            all.add_source(
                &source,
                &format!("command /{}: {}", command.name, command.description),
                Some(&command),
            );
        }
    }
    if let Some(hooks) = describe_hooks(project) {
        all.found.insert(SpeckitHooks::config_path(project), hooks);
        for (path, _) in hook_config_files(project).unwrap_or_default() {
            all.found.entry(path).or_default();
        }
    }
    for (path, (lines, _)) in &mut all.found {
        if let Some(about) = describe_file(project, path) {
            *lines = about;
        }
        lines.dedup();
    }
    let supplied =
        all.found.into_iter().map(|(path, (about, command))| UntrustedFile { path, about, command });
    supplied.collect()
}

type FilePurpose = (Vec<String>, Option<ExtensionCommand>);

struct UntrustedFileSet<'a> {
    root: &'a Path,
    found: BTreeMap<PathBuf, FilePurpose>,
}

impl UntrustedFileSet<'_> {
    fn add_source(&mut self, source: &PromptSource, about: &str, command: Option<&ExtensionCommand>) {
        for (path, _) in &source.files {
            let (lines, stands_for) = self.found.entry(self.root.join(path)).or_default();
            lines.push(about.to_owned());
            // Of several commands the first one names it.
            if let (None, Some(command)) = (&stands_for, command.filter(|command| command.file == *path)) {
                *stands_for = Some(command.clone());
            }
        }
    }
}

/// What the hooks of a project do; nothing where none is enabled.
fn describe_hooks(project: &SpeckitProject) -> Option<FilePurpose> {
    let hooks = SpeckitHooks::read(project).ok()?;
    let mut lines = Vec::new();
    for (when, command, hook) in hooks.all_hooks() {
        let asked = if hook.is_optional { ", if you say so" } else { "" };
        lines.push(format!("hook {when} {command} does {}{asked}", hook.command));
    }
    (!lines.is_empty()).then_some((lines, None))
}
