//! What a command's prompt is made of: the project's own, Spec Kit's layers, the person's, ours. Text of a repository is
//! never template source unless it is a `.jinja2` file, and every file of it that is used is handed out, so that the
//! person can be asked to trust exactly those. Renders nothing.

mod rewrite;

use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::choosing::Choosers;
use crate::confined;
use crate::page::{Found, Reach, Source, Stack, compose, shown};
use crate::registry::Kind;
use crate::{
    Command, ExtensionCommand, Layer, Part, Place, Project, PromptKind, SpeckitError, Strategy, built_in,
    extension_commands,
};

/// Where a project keeps prompts for Crow.
const PROMPTS: &str = ".crow/prompts";

/// What the generic integration put into the project, with hashes.
pub(crate) const MANIFEST: &str = "integrations/generic.manifest.json";

/// A command's prompt, before it is rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptSource {
    /// Its stretches, each to be rendered as it is written; the prompt is what they give one after another.
    pub parts: Vec<Part>,
    /// The layers that have a part in it, the strongest first.
    pub layers: Vec<Layer>,
    /// The files of the repository that are in it, and those that chose them, from the project's root, and what they say.
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

/// Finds the prompt of a command. `own` is the person's folder of prompts.
pub fn command_prompt(
    project: &Project,
    own: Option<&Path>,
    command: Command,
) -> Result<PromptSource, SpeckitError> {
    let choosers = Choosers::read(project);
    let found = found(project, own, command, Reach::Base)?;
    source(project, &name_of(command), &found, choosers)
}

/// Names every layer of a command's prompt, the strongest first, and whether it has a part in it.
pub fn prompt_layers(
    project: &Project,
    own: Option<&Path>,
    command: Command,
) -> Result<Vec<Layer>, SpeckitError> {
    Ok(shown(project, &found(project, own, command, Reach::All)?))
}

/// Finds the prompt of an extension's command; overrides and presets of the project may change it.
pub fn extension_prompt(project: &Project, command: &ExtensionCommand) -> Result<PromptSource, SpeckitError> {
    let choosers = Choosers::read(project);
    if !extension_commands(project)?.commands.contains(command) {
        let why = format!("the extension {} names it otherwise now; try again", command.extension);
        return Err(SpeckitError::broken(&command.file, why));
    }
    let mut stack = Stack::new(project, Reach::Base);
    stack.file(Place::Override, overriding(project, &command.name))?;
    stack.presets(Kind::Command, &command.name, &[&conventional(&command.name)])?;
    stack.file(Place::Extension(command.extension.clone()), project.root().join(&command.file))?;
    let found = stack.found();
    if found.is_empty() {
        let why = "it is not there; install the extension again";
        return Err(SpeckitError::broken(&command.file, why));
    }
    source(project, &command.name, &found, choosers)
}

fn name_of(command: Command) -> String {
    format!("speckit.{}", command.as_str())
}

fn overriding(project: &Project, name: &str) -> PathBuf {
    project.specify("templates/overrides").join(format!("{name}.md"))
}

fn conventional(name: &str) -> String {
    format!("commands/{name}.md")
}

fn found(
    project: &Project,
    own: Option<&Path>,
    command: Command,
    reach: Reach,
) -> Result<Vec<Found>, SpeckitError> {
    let file = format!("speckit_{}.jinja2", command.as_str());
    let name = name_of(command);
    let mut stack = Stack::new(project, reach);
    let ours = project.root().join(PROMPTS).join(&file);
    if confined::read_in(project, project.root(), &ours)?.is_some() {
        stack.push(Place::Project, Strategy::Replace, Source::Project(ours));
    }
    stack.file(Place::Override, overriding(project, &name))?;
    if !stack.is_done()
        && let Some(path) = edited(project, command)?
    {
        stack.push(Place::Edited, Strategy::Replace, Source::Project(path));
    }
    stack.presets(Kind::Command, &name, &[&conventional(&name)])?;
    if let Some(own) = own {
        stack.own(own.join(&file));
    }
    stack.built_in(built_in(command));
    Ok(stack.found())
}

/// Finds the command file that the generic integration put into the project, if somebody edited it since: unedited, it is
/// the stock text for agents that know nothing of Spec Kit.
fn edited(project: &Project, command: Command) -> Result<Option<PathBuf>, SpeckitError> {
    let manifest = project.specify(MANIFEST);
    let Some(text) = confined::read(project, &manifest)? else { return Ok(None) };
    let broken = |_| SpeckitError::broken(&manifest, "it is not a manifest of installed files");
    let manifest: Value = serde_json::from_str(&text).map_err(broken)?;
    let name = command.as_str();
    let ends = [format!("speckit.{name}.md"), format!("speckit-{name}/SKILL.md")];
    let is_it = |path: &&String| ends.iter().any(|end| Path::new(path.as_str()).ends_with(end));
    let files = manifest.get("files").and_then(Value::as_object);
    let Some((path, hash)) = files.and_then(|files| files.iter().find(|(path, _)| is_it(path))) else {
        return Ok(None);
    };
    if !confined::is_below(path) {
        let why = format!("the file {path:?} leads out of the project");
        return Err(SpeckitError::broken(&project.specify(MANIFEST), why));
    }
    let path = project.root().join(path);
    let Some(text) = confined::read_in(project, project.root(), &path)? else { return Ok(None) };
    let is_stock = hash.as_str().is_some_and(|hash| hash.eq_ignore_ascii_case(&sha256(text.as_bytes())));
    Ok(if is_stock { None } else { Some(path) })
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads and composes what was found, down to the base.
fn source(
    project: &Project,
    name: &str,
    found: &[Found],
    choosers: Choosers,
) -> Result<PromptSource, SpeckitError> {
    let mut texts = Vec::new();
    let mut files = Vec::new();
    for layer in found {
        let text = layer.read(project)?;
        if let Source::Project(path) = &layer.source {
            files.push((project.inside(path), text.clone().into_bytes()));
        }
        texts.push((layer, text));
    }
    let mut script = None;
    for (layer, text) in texts.iter().filter(|(layer, _)| kind(&layer.place) == PromptKind::Markdown) {
        script = rewrite::script(project, text, extension_of(layer))?;
        if script.is_some() {
            break;
        }
    }
    let mut parts = Vec::new();
    for (layer, text) in texts {
        let kind = kind(&layer.place);
        let text = match kind {
            PromptKind::Jinja => text,
            PromptKind::Markdown => rewrite::body(project, &text, extension_of(layer), script.as_deref())?,
        };
        parts.push((layer, Part { kind, text }));
    }
    files.extend(choosers.of(project, found, script.is_some())?);
    Ok(PromptSource { parts: compose(name, parts)?, layers: shown(project, found), files })
}

fn kind(place: &Place) -> PromptKind {
    match place {
        Place::Project | Place::Own | Place::BuiltIn => PromptKind::Jinja,
        Place::Override | Place::Edited | Place::Preset(_) | Place::Extension(_) | Place::Core => {
            PromptKind::Markdown
        }
    }
}

fn extension_of(layer: &Found) -> Option<&str> {
    match &layer.place {
        Place::Extension(id) => Some(id),
        Place::Project
        | Place::Override
        | Place::Edited
        | Place::Preset(_)
        | Place::Core
        | Place::Own
        | Place::BuiltIn => None,
    }
}

#[cfg(test)]
mod tests;
