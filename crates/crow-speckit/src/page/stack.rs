//! The layers of a page or a prompt, the strongest first: where each is, and how it goes with what is below it.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::confined;
use crate::registry::{self, InstalledPackage, LayerStrategy, ProvidedKind};
use crate::{SpeckitError, SpeckitProject};

/// Where a layer comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayerOrigin {
    /// The project's prompts for Crow.
    Project,
    /// The project's own change of what was installed.
    Override,
    /// A command file of an integration, edited since it was installed.
    Edited,
    /// A preset, by its id.
    Preset(String),
    /// An extension, by its id.
    Extension(String),
    /// What the project was begun with.
    Core,
    /// The person's folder.
    Own,
    /// Crow itself.
    BuiltIn,
}

impl fmt::Display for LayerOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Project => write!(f, "this project's prompts for Crow"),
            Self::Override => write!(f, "this project's override"),
            Self::Edited => write!(f, "an edited command file"),
            Self::Preset(id) => write!(f, "preset {id}"),
            Self::Extension(id) => write!(f, "extension {id}"),
            Self::Core => write!(f, "this project's templates"),
            Self::Own => write!(f, "your own folder"),
            Self::BuiltIn => write!(f, "Crow"),
        }
    }
}

/// A layer, as people are shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerInfo {
    /// Where it comes from.
    pub place: LayerOrigin,
    /// How it goes with what is below it.
    pub strategy: LayerStrategy,
    /// Its file, from the project's root where it is in the project; ours has none.
    pub file: Option<PathBuf>,
    /// Whether what it says is part of the outcome.
    pub is_used: bool,
}

/// A layer that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TemplateLayer {
    pub(crate) place: LayerOrigin,
    pub(crate) strategy: LayerStrategy,
    pub(crate) source: LayerSource,
}

/// Where a layer's text is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LayerSource {
    /// In the project: not to be followed out of it.
    Project(PathBuf),
    /// In a folder that the person named.
    Own(PathBuf),
    BuiltIn(&'static str),
}

impl TemplateLayer {
    /// Reads what it says.
    pub(crate) fn read(&self, project: &SpeckitProject) -> Result<String, SpeckitError> {
        let (path, text) = match &self.source {
            LayerSource::Project(path) => (path, confined::read_file_in(project, project.root(), path)?),
            LayerSource::Own(path) => (path, SpeckitProject::read_file(path)?),
            LayerSource::BuiltIn(text) => return Ok((*text).to_owned()),
        };
        text.ok_or_else(|| SpeckitError::broken(path, "it is gone"))
    }
}

/// How far down layers are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SearchDepth {
    /// To the first that replaces what is below it: what is further down has no say, not even a broken manifest.
    Base,
    /// To the end.
    All,
}

/// Layers, while they are being looked for.
pub(crate) struct LayerStack<'a> {
    project: &'a SpeckitProject,
    reach: SearchDepth,
    found: Vec<TemplateLayer>,
}

impl<'a> LayerStack<'a> {
    pub(crate) fn new(project: &'a SpeckitProject, reach: SearchDepth) -> Self {
        Self { project, reach, found: Vec::new() }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.reach == SearchDepth::Base
            && self.found.last().is_some_and(|last| last.strategy == LayerStrategy::Replace)
    }

    pub(crate) fn into_layers(self) -> Vec<TemplateLayer> {
        self.found
    }

    /// Adds a file of `.specify/` where it is there; it replaces what is below it.
    pub(crate) fn add_file(&mut self, place: LayerOrigin, path: PathBuf) -> Result<(), SpeckitError> {
        if !self.is_done() && confined::is_specify_file(self.project, &path)? {
            self.push_layer(place, LayerStrategy::Replace, LayerSource::Project(path));
        }
        Ok(())
    }

    /// Adds what the presets say of a name.
    pub(crate) fn add_presets(
        &mut self,
        kind: ProvidedKind,
        name: &str,
        conventional: &[&str],
    ) -> Result<(), SpeckitError> {
        if self.is_done() {
            return Ok(());
        }
        for preset in registry::list_presets(self.project)? {
            if let Some((strategy, path)) =
                find_preset_layer(self.project, &preset, (kind, name), conventional)?
            {
                self.push_layer(LayerOrigin::Preset(preset.id), strategy, LayerSource::Project(path));
            }
            if self.is_done() {
                break;
            }
        }
        Ok(())
    }

    /// Adds a file of the person's where it is there.
    pub(crate) fn add_user_file(&mut self, path: PathBuf) {
        if !self.is_done() && path.is_file() {
            self.push_layer(LayerOrigin::Own, LayerStrategy::Replace, LayerSource::Own(path));
        }
    }

    pub(crate) fn add_built_in(&mut self, text: &'static str) {
        if !self.is_done() {
            self.push_layer(LayerOrigin::BuiltIn, LayerStrategy::Replace, LayerSource::BuiltIn(text));
        }
    }

    pub(crate) fn push_layer(&mut self, place: LayerOrigin, strategy: LayerStrategy, source: LayerSource) {
        self.found.push(TemplateLayer { place, strategy, source });
    }
}

/// Finds what a preset says of a name: what its manifest names, or else a file at one of the usual places.
fn find_preset_layer(
    project: &SpeckitProject,
    preset: &InstalledPackage,
    (kind, name): (ProvidedKind, &str),
    conventional: &[&str],
) -> Result<Option<(LayerStrategy, PathBuf)>, SpeckitError> {
    let provided = registry::read_provided_entries(project, preset)?;
    if let Some(entry) = provided.into_iter().find(|entry| entry.kind == kind && entry.name == name) {
        if !confined::is_below(&entry.file) {
            let why = format!("the file {:?} of {name} leads out of the preset", entry.file);
            return Err(SpeckitError::broken(&preset.folder.join("preset.yml"), why));
        }
        let path = preset.folder.join(&entry.file);
        // A manifest that names a file which is not there hides the usual places too.
        if !confined::is_specify_file(project, &path)? {
            return Ok(None);
        }
        let strategy = match (entry.strategy, kind) {
            (Some(strategy), _) => strategy,
            (None, ProvidedKind::Command) => front_matter_strategy(project, &path)?,
            (None, ProvidedKind::Page | ProvidedKind::Script) => LayerStrategy::Replace,
        };
        return Ok(Some((strategy, path)));
    }
    for place in conventional {
        let path = preset.folder.join(place);
        if confined::is_specify_file(project, &path)? {
            let strategy = match kind {
                ProvidedKind::Command => front_matter_strategy(project, &path)?,
                ProvidedKind::Page | ProvidedKind::Script => LayerStrategy::Replace,
            };
            return Ok(Some((strategy, path)));
        }
    }
    Ok(None)
}

/// The strategy in the front matter of a command, where older presets have it.
fn front_matter_strategy(project: &SpeckitProject, path: &Path) -> Result<LayerStrategy, SpeckitError> {
    let text = confined::read_specify_file(project, path)?.unwrap_or_default();
    let front = super::split_front_matter(&text).0.and_then(|front| confined::parse_yaml(path, front).ok());
    let said =
        front.as_ref().and_then(|front| front.get("strategy")?.as_str()).and_then(LayerStrategy::parse);
    Ok(said.unwrap_or(LayerStrategy::Replace))
}

/// What people are shown of layers that were looked for to the end.
pub(crate) fn describe_layers(project: &SpeckitProject, found: &[TemplateLayer]) -> Vec<LayerInfo> {
    let base = found.iter().position(|layer| layer.strategy == LayerStrategy::Replace);
    let layer = |(n, found): (usize, &TemplateLayer)| LayerInfo {
        place: found.place.clone(),
        strategy: found.strategy,
        file: match &found.source {
            LayerSource::Project(path) => Some(project.relative_path(path)),
            LayerSource::Own(path) => Some(path.clone()),
            LayerSource::BuiltIn(_) => None,
        },
        is_used: base.is_some_and(|base| n <= base),
    };
    found.iter().enumerate().map(layer).collect()
}
