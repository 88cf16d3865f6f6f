//! Which files of a project speak to a model, or have commands run: what a person has to approve before it counts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::choosing::about;
use crate::hooks::Hooks;
use crate::{
    Command, ExtensionCommand, Project, PromptSource, command_prompt, deciding_files, extension_commands,
    extension_prompt,
};

/// A file of a project that counts only when a person approves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supplied {
    /// The file.
    pub path: PathBuf,
    /// What it does, a line each.
    pub about: Vec<String>,
    /// The command it stands for.
    pub command: Option<ExtensionCommand>,
}

/// Lists them. What cannot be read is left out: nothing of it counts.
pub fn supplied(project: &Project) -> Vec<Supplied> {
    let mut all = Files { root: project.root(), found: BTreeMap::new() };
    for command in Command::ALL {
        if let Ok(source) = command_prompt(project, None, command) {
            all.add(&source, &format!("changes the prompt of {command}"), None);
        }
    }
    for command in extension_commands(project).map(|all| all.commands).unwrap_or_default() {
        if let Ok(source) = extension_prompt(project, &command) {
            all.add(&source, &format!("command /{}: {}", command.name, command.description), Some(&command));
        }
    }
    if let Some(hooks) = hooks(project) {
        all.found.insert(Hooks::file(project), hooks);
        for (path, _) in deciding_files(project).unwrap_or_default() {
            all.found.entry(path).or_default();
        }
    }
    for (path, (lines, _)) in &mut all.found {
        if let Some(about) = about(project, path) {
            *lines = about;
        }
        lines.dedup();
    }
    let supplied = all.found.into_iter().map(|(path, (about, command))| Supplied { path, about, command });
    supplied.collect()
}

type About = (Vec<String>, Option<ExtensionCommand>);

struct Files<'a> {
    root: &'a Path,
    found: BTreeMap<PathBuf, About>,
}

impl Files<'_> {
    fn add(&mut self, source: &PromptSource, about: &str, command: Option<&ExtensionCommand>) {
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
fn hooks(project: &Project) -> Option<About> {
    let hooks = Hooks::read(project).ok()?;
    let mut lines = Vec::new();
    for (when, command, hook) in hooks.all() {
        let asked = if hook.is_optional { ", if you say so" } else { "" };
        lines.push(format!("hook {when} {command} does {}{asked}", hook.command));
    }
    (!lines.is_empty()).then_some((lines, None))
}
