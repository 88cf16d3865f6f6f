//! The sources of a command's prompt: the project's own, Spec Kit's layers, the user's, the built-in one. Text of a
//! repository is template source only in a `.jinja2` file, and every repository file that is used is returned, so that
//! the user can be asked to trust exactly those. Renders nothing.

mod rewrite;

use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::confined_files;
use crate::page_template::{
    LayerSource, LayerStack, SearchDepth, TemplateLayer, compose_layers, describe_layers,
};
use crate::registry::ProvidedKind;
use crate::selection_files::SelectionFiles;
use crate::{
    ExtensionCommand, LayerInfo, LayerOrigin, LayerStrategy, PromptKind, PromptPart, SpeckitError,
    SpeckitProject, WorkflowCommand, list_extension_commands, step_definition,
};

/// The project's prompts for Crow.
const PROMPTS_DIR: &str = ".crow/prompts";

/// The files that the generic integration installed, with their hashes.
pub(crate) const MANIFEST: &str = "integrations/generic.manifest.json";

/// A command's prompt before rendering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptSource {
    /// Its parts, each rendered according to its kind and then joined.
    pub parts: Vec<PromptPart>,
    /// The layers used, highest precedence first.
    pub layers: Vec<LayerInfo>,
    /// The repository files that are used or that selected them: paths relative to the project's root, and their
    /// content.
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

/// Returns the prompt of a command. `user_dir` is the user's directory of prompts.
pub fn command_prompt(
    project: &SpeckitProject,
    user_dir: Option<&Path>,
    command: WorkflowCommand,
) -> Result<PromptSource, SpeckitError> {
    let selection_files = SelectionFiles::read(project);
    let layers = find_prompt_layers(project, user_dir, command, SearchDepth::FirstReplacement)?;
    compose_source(project, &command_name(command), &layers, selection_files)
}

/// Lists every layer of a command's prompt, highest precedence first, and whether it is used.
pub fn prompt_layers(
    project: &SpeckitProject,
    user_dir: Option<&Path>,
    command: WorkflowCommand,
) -> Result<Vec<LayerInfo>, SpeckitError> {
    Ok(describe_layers(project, &find_prompt_layers(project, user_dir, command, SearchDepth::Full)?))
}

/// Returns the prompt of an extension's command; overrides and presets of the project may change it.
pub fn extension_prompt(
    project: &SpeckitProject,
    command: &ExtensionCommand,
) -> Result<PromptSource, SpeckitError> {
    let selection_files = SelectionFiles::read(project);
    if !list_extension_commands(project)?.commands.contains(command) {
        let reason = format!("the extension {} has changed this command; try again", command.extension);
        return Err(SpeckitError::invalid_file(&command.file, reason));
    }
    let mut stack = LayerStack::new(project, SearchDepth::FirstReplacement);
    stack.add_file(LayerOrigin::Override, override_path(project, &command.name))?;
    stack.add_presets(ProvidedKind::Command, &command.name, &[&conventional_path(&command.name)])?;
    stack.add_file(LayerOrigin::Extension(command.extension.clone()), project.root().join(&command.file))?;
    let layers = stack.into_layers();
    if layers.is_empty() {
        let reason = "it is missing; install the extension again";
        return Err(SpeckitError::invalid_file(&command.file, reason));
    }
    compose_source(project, &command.name, &layers, selection_files)
}

fn command_name(command: WorkflowCommand) -> String {
    format!("speckit.{}", command.as_str())
}

fn override_path(project: &SpeckitProject, name: &str) -> PathBuf {
    project.specify_path("templates/overrides").join(format!("{name}.md"))
}

fn conventional_path(name: &str) -> String {
    format!("commands/{name}.md")
}

fn find_prompt_layers(
    project: &SpeckitProject,
    user_dir: Option<&Path>,
    command: WorkflowCommand,
    depth: SearchDepth,
) -> Result<Vec<TemplateLayer>, SpeckitError> {
    let file = format!("speckit_{}.jinja2", command.as_str());
    let name = command_name(command);
    let mut stack = LayerStack::new(project, depth);
    let project_prompt = project.root().join(PROMPTS_DIR).join(&file);
    if confined_files::read_file_in(project, project.root(), &project_prompt)?.is_some() {
        stack.push_layer(LayerOrigin::Project, LayerStrategy::Replace, LayerSource::Project(project_prompt));
    }
    stack.add_file(LayerOrigin::Override, override_path(project, &name))?;
    if !stack.is_done()
        && let Some(path) = find_edited_command(project, command)?
    {
        stack.push_layer(LayerOrigin::EditedCommand, LayerStrategy::Replace, LayerSource::Project(path));
    }
    stack.add_presets(ProvidedKind::Command, &name, &[&conventional_path(&name)])?;
    if let Some(user_dir) = user_dir {
        stack.add_user_file(user_dir.join(&file));
    }
    stack.add_built_in(step_definition(command).prompt);
    Ok(stack.into_layers())
}

/// Finds the command file that the generic integration installed, if it was edited since: unedited, it is the stock
/// text for agents without Spec Kit support.
fn find_edited_command(
    project: &SpeckitProject,
    command: WorkflowCommand,
) -> Result<Option<PathBuf>, SpeckitError> {
    let manifest = project.specify_path(MANIFEST);
    let Some(text) = confined_files::read_specify_file(project, &manifest)? else { return Ok(None) };
    let manifest_error = |_| SpeckitError::invalid_file(&manifest, "it is not a manifest of installed files");
    let manifest: Value = serde_json::from_str(&text).map_err(manifest_error)?;
    let name = command.as_str();
    let path_suffixes = [format!("speckit.{name}.md"), format!("speckit-{name}/SKILL.md")];
    let is_command_file =
        |path: &&String| path_suffixes.iter().any(|suffix| Path::new(path.as_str()).ends_with(suffix));
    let files = manifest.get("files").and_then(Value::as_object);
    let Some((path, hash)) = files.and_then(|files| files.iter().find(|(path, _)| is_command_file(path)))
    else {
        return Ok(None);
    };
    if !confined_files::is_below(path) {
        let reason = format!("the file {path:?} leads out of the project");
        return Err(SpeckitError::invalid_file(&project.specify_path(MANIFEST), reason));
    }
    let path = project.root().join(path);
    let Some(text) = confined_files::read_file_in(project, project.root(), &path)? else { return Ok(None) };
    let is_unedited =
        hash.as_str().is_some_and(|hash| hash.eq_ignore_ascii_case(&sha256_hex(text.as_bytes())));
    Ok(if is_unedited { None } else { Some(path) })
}

fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads and composes the layers down to the base.
fn compose_source(
    project: &SpeckitProject,
    name: &str,
    layers: &[TemplateLayer],
    selection_files: SelectionFiles,
) -> Result<PromptSource, SpeckitError> {
    let mut texts = Vec::new();
    let mut files = Vec::new();
    for layer in layers {
        let text = layer.read(project)?;
        if let LayerSource::Project(path) = &layer.source {
            files.push((project.relative_path(path), text.clone().into_bytes()));
        }
        texts.push((layer, text));
    }
    let mut script = None;
    for (layer, text) in texts.iter().filter(|(layer, _)| prompt_kind(&layer.origin) == PromptKind::Markdown)
    {
        script = rewrite::script_line(project, text, layer_extension(layer))?;
        if script.is_some() {
            break;
        }
    }
    let mut parts = Vec::new();
    for (layer, text) in texts {
        let kind = prompt_kind(&layer.origin);
        let text = match kind {
            PromptKind::Jinja => text,
            PromptKind::Markdown => {
                rewrite::prompt_body(project, &text, layer_extension(layer), script.as_deref())?
            }
        };
        parts.push((layer, PromptPart { kind, text }));
    }
    files.extend(selection_files.for_layers(project, layers, script.is_some())?);
    Ok(PromptSource { parts: compose_layers(name, parts)?, layers: describe_layers(project, layers), files })
}

fn prompt_kind(origin: &LayerOrigin) -> PromptKind {
    match origin {
        LayerOrigin::Project | LayerOrigin::User | LayerOrigin::BuiltIn => PromptKind::Jinja,
        LayerOrigin::Override
        | LayerOrigin::EditedCommand
        | LayerOrigin::Preset(_)
        | LayerOrigin::Extension(_)
        | LayerOrigin::Core => PromptKind::Markdown,
    }
}

fn layer_extension(layer: &TemplateLayer) -> Option<&str> {
    match &layer.origin {
        LayerOrigin::Extension(id) => Some(id),
        LayerOrigin::Project
        | LayerOrigin::Override
        | LayerOrigin::EditedCommand
        | LayerOrigin::Preset(_)
        | LayerOrigin::Core
        | LayerOrigin::User
        | LayerOrigin::BuiltIn => None,
    }
}

#[cfg(test)]
mod tests;
