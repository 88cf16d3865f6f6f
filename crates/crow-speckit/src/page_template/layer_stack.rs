//! The layers of a page or a prompt, highest precedence first: their files and strategies.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::confined_files;
use crate::registry::{self, InstalledPackage, LayerStrategy, ProvidedKind};
use crate::{SpeckitError, SpeckitProject};

/// The origin of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayerOrigin {
    /// The project's prompts for Crow.
    Project,
    /// The project's override of an installed template.
    Override,
    /// A command file of an integration that was edited after installation.
    EditedCommand,
    /// A preset, by its id.
    Preset(String),
    /// An extension, by its id.
    Extension(String),
    /// The templates that the project was initialized with.
    Core,
    /// The user's directory.
    User,
    /// Crow itself.
    BuiltIn,
}

impl fmt::Display for LayerOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Project => write!(f, "this project's prompts for Crow"),
            Self::Override => write!(f, "this project's override"),
            Self::EditedCommand => write!(f, "an edited command file"),
            Self::Preset(id) => write!(f, "preset {id}"),
            Self::Extension(id) => write!(f, "extension {id}"),
            Self::Core => write!(f, "this project's templates"),
            Self::User => write!(f, "your own directory"),
            Self::BuiltIn => write!(f, "Crow"),
        }
    }
}

/// A layer, for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerInfo {
    /// Its origin.
    pub origin: LayerOrigin,
    /// The combination with the layers below.
    pub strategy: LayerStrategy,
    /// Its file, relative to the project's root if it is inside; `None` if built in.
    pub file: Option<PathBuf>,
    /// Whether its text is part of the result.
    pub is_used: bool,
}

/// A layer that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TemplateLayer {
    pub(crate) origin: LayerOrigin,
    pub(crate) strategy: LayerStrategy,
    pub(crate) source: LayerSource,
}

/// The text of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LayerSource {
    /// In the project: links out of it are not followed.
    Project(PathBuf),
    /// In a directory given by the user.
    User(PathBuf),
    BuiltIn(&'static str),
}

impl TemplateLayer {
    /// Reads its text.
    pub(crate) fn read(&self, project: &SpeckitProject) -> Result<String, SpeckitError> {
        let (path, text) = match &self.source {
            LayerSource::Project(path) => {
                (path, confined_files::read_file_in(project, project.root(), path)?)
            }
            LayerSource::User(path) => (path, SpeckitProject::read_file(path)?),
            LayerSource::BuiltIn(text) => return Ok((*text).to_owned()),
        };
        text.ok_or_else(|| SpeckitError::invalid_file(path, "it no longer exists"))
    }
}

/// The end of a search for layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SearchDepth {
    /// Up to the first layer that replaces those below, which are then irrelevant, even a broken manifest.
    FirstReplacement,
    /// Through all layers.
    Full,
}

/// The layers found so far.
pub(crate) struct LayerStack<'a> {
    project: &'a SpeckitProject,
    depth: SearchDepth,
    layers: Vec<TemplateLayer>,
}

impl<'a> LayerStack<'a> {
    pub(crate) fn new(project: &'a SpeckitProject, depth: SearchDepth) -> Self {
        Self { project, depth, layers: Vec::new() }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.depth == SearchDepth::FirstReplacement
            && self.layers.last().is_some_and(|last| last.strategy == LayerStrategy::Replace)
    }

    pub(crate) fn into_layers(self) -> Vec<TemplateLayer> {
        self.layers
    }

    /// Adds a file of `.specify/` if it exists; it replaces the layers below.
    pub(crate) fn add_file(&mut self, origin: LayerOrigin, path: PathBuf) -> Result<(), SpeckitError> {
        if !self.is_done() && confined_files::is_specify_file(self.project, &path)? {
            self.push_layer(origin, LayerStrategy::Replace, LayerSource::Project(path));
        }
        Ok(())
    }

    /// Adds the presets' layers for a name.
    pub(crate) fn add_presets(
        &mut self,
        kind: ProvidedKind,
        name: &str,
        default_paths: &[&str],
    ) -> Result<(), SpeckitError> {
        if self.is_done() {
            return Ok(());
        }
        for preset in registry::list_presets(self.project)? {
            if let Some((strategy, path)) =
                find_preset_layer(self.project, &preset, kind, name, default_paths)?
            {
                self.push_layer(LayerOrigin::Preset(preset.id), strategy, LayerSource::Project(path));
            }
            if self.is_done() {
                break;
            }
        }
        Ok(())
    }

    /// Adds a file of the user's if it exists.
    pub(crate) fn add_user_file(&mut self, path: PathBuf) {
        if !self.is_done() && path.is_file() {
            self.push_layer(LayerOrigin::User, LayerStrategy::Replace, LayerSource::User(path));
        }
    }

    pub(crate) fn add_built_in(&mut self, text: &'static str) {
        if !self.is_done() {
            self.push_layer(LayerOrigin::BuiltIn, LayerStrategy::Replace, LayerSource::BuiltIn(text));
        }
    }

    pub(crate) fn push_layer(&mut self, origin: LayerOrigin, strategy: LayerStrategy, source: LayerSource) {
        self.layers.push(TemplateLayer { origin, strategy, source });
    }
}

/// Returns a preset's layer for a name: the file in its manifest, or else a file at a default path.
fn find_preset_layer(
    project: &SpeckitProject,
    preset: &InstalledPackage,
    kind: ProvidedKind,
    name: &str,
    default_paths: &[&str],
) -> Result<Option<(LayerStrategy, PathBuf)>, SpeckitError> {
    let provided = registry::read_provided_entries(project, preset)?;
    if let Some(entry) = provided.into_iter().find(|entry| entry.kind == kind && entry.name == name) {
        if !confined_files::is_below(&entry.file) {
            let reason = format!("the file {:?} of {name} leads out of the preset", entry.file);
            return Err(SpeckitError::invalid_file(&preset.directory.join("preset.yml"), reason));
        }
        let path = preset.directory.join(&entry.file);
        // A manifest entry for a missing file hides the default paths too.
        if !confined_files::is_specify_file(project, &path)? {
            return Ok(None);
        }
        let strategy = match (entry.strategy, kind) {
            (Some(strategy), _) => strategy,
            (None, ProvidedKind::Command) => front_matter_strategy(project, &path)?,
            (None, ProvidedKind::Page | ProvidedKind::Script) => LayerStrategy::Replace,
        };
        return Ok(Some((strategy, path)));
    }
    for relative_path in default_paths {
        let path = preset.directory.join(relative_path);
        if confined_files::is_specify_file(project, &path)? {
            let strategy = match kind {
                ProvidedKind::Command => front_matter_strategy(project, &path)?,
                ProvidedKind::Page | ProvidedKind::Script => LayerStrategy::Replace,
            };
            return Ok(Some((strategy, path)));
        }
    }
    Ok(None)
}

/// Returns the strategy in the front matter of a command, where older presets have it.
fn front_matter_strategy(project: &SpeckitProject, path: &Path) -> Result<LayerStrategy, SpeckitError> {
    let text = confined_files::read_specify_file(project, path)?.unwrap_or_default();
    let front =
        super::split_front_matter(&text).0.and_then(|front| confined_files::parse_yaml(path, front).ok());
    let strategy =
        front.as_ref().and_then(|front| front.get("strategy")?.as_str()).and_then(LayerStrategy::parse);
    Ok(strategy.unwrap_or(LayerStrategy::Replace))
}

/// Describes the layers of a full search for display.
pub(crate) fn describe_layers(project: &SpeckitProject, layers: &[TemplateLayer]) -> Vec<LayerInfo> {
    let base = layers.iter().position(|layer| layer.strategy == LayerStrategy::Replace);
    let layer_info = |(n, layers): (usize, &TemplateLayer)| LayerInfo {
        origin: layers.origin.clone(),
        strategy: layers.strategy,
        file: match &layers.source {
            LayerSource::Project(path) => Some(project.relative_path(path)),
            LayerSource::User(path) => Some(path.clone()),
            LayerSource::BuiltIn(_) => None,
        },
        is_used: base.is_some_and(|base| n <= base),
    };
    layers.iter().enumerate().map(layer_info).collect()
}
