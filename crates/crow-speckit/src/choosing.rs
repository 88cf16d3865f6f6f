//! The files of a project that choose: which presets and extensions count, which file is which command's, and what the
//! hooks that Crow does itself are set to. Nobody reads them as words, and whoever changes them changes what happens.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::hooks::Hooks;
use crate::page::Found;
use crate::prompt_source::MANIFEST;
use crate::registry::{self, EXTENSIONS, PRESETS, REGISTRY};
use crate::{AgentContext, GitConfig, Place, Project, SpeckitError, confined, extension};

/// How the project was begun.
const OPTIONS: &str = "init-options.json";

/// The files that chose, by their paths, with their bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Choosers(BTreeMap<PathBuf, Vec<u8>>);

impl Choosers {
    /// Reads those that choose among prompts. What cannot be read chooses nothing.
    pub(crate) fn read(project: &Project) -> Self {
        let mut all = Self::default();
        for (place, file) in [(PRESETS, "preset.yml"), (EXTENSIONS, extension::MANIFEST)] {
            let folder = project.specify(place);
            all.add(project, folder.join(REGISTRY));
            let installed = match place {
                PRESETS => registry::presets(project),
                _ => registry::extensions(project),
            };
            for one in installed.unwrap_or_default() {
                all.add(project, one.folder.join(file));
            }
        }
        all.add(project, project.specify(MANIFEST));
        all.add(project, project.specify(OPTIONS));
        all
    }

    /// Keeps those that chose these layers, if they are now as they were when these were looked for.
    pub(crate) fn of(
        mut self,
        project: &Project,
        found: &[Found],
        has_script: bool,
    ) -> Result<Vec<(PathBuf, Vec<u8>)>, SpeckitError> {
        if Self::read(project) != self {
            let why = "the presets or extensions of the project change at this moment; try again";
            return Err(SpeckitError::Invalid(why.to_owned()));
        }
        let has_preset = found.iter().any(|layer| matches!(layer.place, Place::Preset(_)));
        let is_edited = found.iter().any(|layer| layer.place == Place::Edited);
        self.0.retain(|path, _| {
            let of_extension = |id: &str| path.starts_with(project.specify(EXTENSIONS).join(id));
            found.iter().any(|layer| match &layer.place {
                Place::Extension(id) => of_extension(id) || of_extension(REGISTRY),
                Place::Project | Place::Override | Place::Edited | Place::Preset(_) | Place::Core => false,
                Place::Own | Place::BuiltIn => false,
            }) || (has_preset && path.starts_with(project.specify(PRESETS)))
                || (is_edited && *path == project.specify(MANIFEST))
                || (has_script && *path == project.specify(OPTIONS))
        });
        Ok(self.0.into_iter().map(|(path, bytes)| (project.inside(&path), bytes)).collect())
    }

    fn add(&mut self, project: &Project, path: PathBuf) {
        if let Ok(Some(text)) = confined::read(project, &path) {
            self.0.insert(path, text.into_bytes());
        }
    }
}

/// Reads every file that decides what hooks do, beside the prompts of their commands; none where no hook is enabled. Each has
/// to be approved as it is here before one of them is run.
pub fn deciding_files(project: &Project) -> Result<Vec<(PathBuf, Vec<u8>)>, SpeckitError> {
    let path = Hooks::file(project);
    let Some(text) = confined::read(project, &path)? else { return Ok(Vec::new()) };
    let hooks = Hooks::parse(project, &text)?;
    if hooks.all().next().is_none() {
        return Ok(Vec::new());
    }
    let mut files = Choosers(BTreeMap::from([(path, text.into_bytes())]));
    if hooks.all().any(|(.., hook)| hook.command.starts_with("speckit.git.")) {
        files.add(project, GitConfig::file(project));
    }
    if hooks.all().any(|(.., hook)| hook.command == AgentContext::COMMAND) {
        for file in AgentContext::sources(project) {
            files.add(project, file);
        }
    }
    for id in hooks.asks_settings_of() {
        files.add(project, project.specify(EXTENSIONS).join(REGISTRY));
        for file in extension::settings_files(&id) {
            files.add(project, project.specify(EXTENSIONS).join(&id).join(file));
        }
    }
    Ok(files.0.into_iter().collect())
}

/// Says what a file chooses; `None` for one that a model is given.
pub(crate) fn about(project: &Project, path: &Path) -> Option<Vec<String>> {
    let line = |line: String| Some(vec![line]);
    if path == GitConfig::file(project) {
        return Some(git(project));
    }
    if AgentContext::sources(project).first().is_some_and(|config| path == config) {
        let files = AgentContext::read(project).ok().flatten().map(|context| context.files);
        let files: Vec<String> = files.iter().flatten().map(|file| project.shown(file)).collect();
        return line(format!(
            "keeps a block in {}",
            if files.is_empty() { "no file".to_owned() } else { files.join(", ") }
        ));
    }
    let inside = path.strip_prefix(project.specify("")).ok()?;
    let parts: Vec<&str> = inside.iter().filter_map(|part| part.to_str()).collect();
    match parts.as_slice() {
        [place, REGISTRY] => line(format!("chooses which {place} count")),
        [PRESETS, id, "preset.yml"] => line(format!("chooses the files of the preset {id}")),
        [EXTENSIONS, id, extension::MANIFEST] => line(format!("names the commands of the extension {id}")),
        [EXTENSIONS, id, file] if !file.ends_with(".md") => {
            line(format!("settings of the extension {id}, which hooks go by"))
        }
        [OPTIONS] => line("chooses scripts, and the agent whose file names the plan".to_owned()),
        _ if inside == Path::new(MANIFEST) => line("says which prompts somebody edited".to_owned()),
        _ => None,
    }
}

fn git(project: &Project) -> Vec<String> {
    let Ok(config) = GitConfig::read(project) else { return Vec::new() };
    let mut lines = vec!["sets how branches and commits are made".to_owned()];
    for (when, command, hook) in Hooks::read(project).iter().flat_map(Hooks::all) {
        if hook.command == "speckit.git.commit" && config.commit_message(when, command).is_some() {
            lines.push(format!("git commits {when} {command}"));
        }
    }
    lines
}

#[cfg(test)]
mod tests;
