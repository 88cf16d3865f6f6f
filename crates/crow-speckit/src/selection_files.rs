//! The project files that select prompts and settings: which presets and extensions are active, which file belongs to
//! which command, and the settings of the hooks that Crow runs itself. No model reads them, but changing them changes
//! what happens.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::hooks::SpeckitHooks;
use crate::page_template::TemplateLayer;
use crate::prompt_source::MANIFEST;
use crate::registry::{self, EXTENSIONS_DIR, PRESETS_DIR, REGISTRY_FILE};
use crate::{
    AgentContext, GitExtensionConfig, LayerOrigin, SpeckitError, SpeckitProject, confined_files, extension,
};

/// The options of the project's initialization.
const OPTIONS: &str = "init-options.json";

/// The selection files: path and content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SelectionFiles(BTreeMap<PathBuf, Vec<u8>>);

impl SelectionFiles {
    /// Reads the files that select prompts. A file that cannot be read selects nothing.
    pub(crate) fn read(project: &SpeckitProject) -> Self {
        let mut files = Self::default();
        for (package_kind, manifest) in [(PRESETS_DIR, "preset.yml"), (EXTENSIONS_DIR, extension::MANIFEST)] {
            let directory = project.specify_path(package_kind);
            files.add_file(project, directory.join(REGISTRY_FILE));
            let installed = match package_kind {
                PRESETS_DIR => registry::list_presets(project),
                _ => registry::list_extensions(project),
            };
            for package in installed.unwrap_or_default() {
                files.add_file(project, package.directory.join(manifest));
            }
        }
        files.add_file(project, project.specify_path(MANIFEST));
        files.add_file(project, project.specify_path(OPTIONS));
        files
    }

    /// Returns the files that selected these layers, if they have not changed since the layers were found.
    pub(crate) fn for_layers(
        mut self,
        project: &SpeckitProject,
        layers: &[TemplateLayer],
        has_script: bool,
    ) -> Result<Vec<(PathBuf, Vec<u8>)>, SpeckitError> {
        if Self::read(project) != self {
            let reason = "the project's presets or extensions are changing; try again";
            return Err(SpeckitError::Invalid(reason.to_owned()));
        }
        let has_preset = layers.iter().any(|layer| matches!(layer.origin, LayerOrigin::Preset(_)));
        let has_edited_layer = layers.iter().any(|layer| layer.origin == LayerOrigin::EditedCommand);
        self.0.retain(|path, _| {
            let belongs_to_extension =
                |id: &str| path.starts_with(project.specify_path(EXTENSIONS_DIR).join(id));
            layers.iter().any(|layer| match &layer.origin {
                LayerOrigin::Extension(id) => belongs_to_extension(id) || belongs_to_extension(REGISTRY_FILE),
                LayerOrigin::Project
                | LayerOrigin::Override
                | LayerOrigin::EditedCommand
                | LayerOrigin::Preset(_)
                | LayerOrigin::Core => false,
                LayerOrigin::User | LayerOrigin::BuiltIn => false,
            }) || (has_preset && path.starts_with(project.specify_path(PRESETS_DIR)))
                || (has_edited_layer && *path == project.specify_path(MANIFEST))
                || (has_script && *path == project.specify_path(OPTIONS))
        });
        Ok(self.0.into_iter().map(|(path, bytes)| (project.relative_path(&path), bytes)).collect())
    }

    fn add_file(&mut self, project: &SpeckitProject, path: PathBuf) {
        if let Ok(Some(text)) = confined_files::read_specify_file(project, &path) {
            self.0.insert(path, text.into_bytes());
        }
    }
}

/// Reads every file that decides what hooks do, apart from the prompts of their commands; empty if no hook is enabled.
/// Each file must be approved with this content before a hook runs.
pub fn hook_config_files(project: &SpeckitProject) -> Result<Vec<(PathBuf, Vec<u8>)>, SpeckitError> {
    let path = SpeckitHooks::config_path(project);
    let Some(text) = confined_files::read_specify_file(project, &path)? else { return Ok(Vec::new()) };
    let hooks = SpeckitHooks::parse(project, &text)?;
    if hooks.all_hooks().next().is_none() {
        return Ok(Vec::new());
    }
    let mut files = SelectionFiles(BTreeMap::from([(path, text.into_bytes())]));
    if hooks.all_hooks().any(|(.., hook)| hook.command.starts_with("speckit.git.")) {
        files.add_file(project, GitExtensionConfig::config_path(project));
    }
    if hooks.all_hooks().any(|(.., hook)| hook.command == AgentContext::COMMAND) {
        for file in AgentContext::source_files(project) {
            files.add_file(project, file);
        }
    }
    for id in hooks.extensions_with_conditions() {
        files.add_file(project, project.specify_path(EXTENSIONS_DIR).join(REGISTRY_FILE));
        for file in extension::settings_files(&id) {
            files.add_file(project, project.specify_path(EXTENSIONS_DIR).join(&id).join(file));
        }
    }
    Ok(files.0.into_iter().collect())
}

/// Describes what a file selects; `None` for a file whose text a model reads.
pub(crate) fn describe_file(project: &SpeckitProject, path: &Path) -> Option<Vec<String>> {
    let single_line = |line: String| Some(vec![line]);
    if path == GitExtensionConfig::config_path(project) {
        return Some(describe_git_config(project));
    }
    if AgentContext::source_files(project).first().is_some_and(|config| path == config) {
        let files = AgentContext::read(project).ok().flatten().map(|context| context.files);
        let files: Vec<String> = files.iter().flatten().map(|file| project.display_path(file)).collect();
        return single_line(format!(
            "updates a block in {}",
            if files.is_empty() { "no file".to_owned() } else { files.join(", ") }
        ));
    }
    let relative = path.strip_prefix(project.specify_path("")).ok()?;
    let parts: Vec<&str> = relative.iter().filter_map(|part| part.to_str()).collect();
    match parts.as_slice() {
        [package_kind, REGISTRY_FILE] => single_line(format!("selects the active {package_kind}")),
        [PRESETS_DIR, id, "preset.yml"] => single_line(format!("selects the files of the preset {id}")),
        [EXTENSIONS_DIR, id, extension::MANIFEST] => {
            single_line(format!("defines the commands of the extension {id}"))
        }
        [EXTENSIONS_DIR, id, file] if !file.ends_with(".md") => {
            single_line(format!("settings of the extension {id}, used by hooks"))
        }
        [OPTIONS] => single_line("selects the scripts, and the agent's context file".to_owned()),
        _ if relative == Path::new(MANIFEST) => single_line("lists the edited prompts".to_owned()),
        _ => None,
    }
}

fn describe_git_config(project: &SpeckitProject) -> Vec<String> {
    let Ok(config) = GitExtensionConfig::read(project) else { return Vec::new() };
    let mut lines = vec!["configures branches and commits".to_owned()];
    for (when, command, hook) in SpeckitHooks::read(project).iter().flat_map(SpeckitHooks::all_hooks) {
        if hook.command == "speckit.git.commit" && config.commit_message(when, command).is_some() {
            lines.push(format!("git commits {when} {command}"));
        }
    }
    lines
}

#[cfg(test)]
mod tests;
