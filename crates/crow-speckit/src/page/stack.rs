//! The layers of a page or a prompt, the strongest first: where each is, and how it goes with what is below it.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::confined;
use crate::registry::{self, Installed, Kind, Strategy};
use crate::{Project, SpeckitError};

/// Where a layer comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
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

impl fmt::Display for Place {
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
pub struct Layer {
    /// Where it comes from.
    pub place: Place,
    /// How it goes with what is below it.
    pub strategy: Strategy,
    /// Its file, from the project's root where it is in the project; ours has none.
    pub file: Option<PathBuf>,
    /// Whether what it says is part of the outcome.
    pub is_used: bool,
}

/// A layer that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) place: Place,
    pub(crate) strategy: Strategy,
    pub(crate) source: Source,
}

/// Where a layer's text is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// In the project: not to be followed out of it.
    Project(PathBuf),
    /// In a folder that the person named.
    Own(PathBuf),
    BuiltIn(&'static str),
}

impl Found {
    /// Reads what it says.
    pub(crate) fn read(&self, project: &Project) -> Result<String, SpeckitError> {
        let (path, text) = match &self.source {
            Source::Project(path) => (path, confined::read_in(project, project.root(), path)?),
            Source::Own(path) => (path, Project::read(path)?),
            Source::BuiltIn(text) => return Ok((*text).to_owned()),
        };
        text.ok_or_else(|| SpeckitError::broken(path, "it is gone"))
    }
}

/// How far down layers are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// To the first that replaces what is below it: what is further down has no say, not even a broken manifest.
    Base,
    /// To the end.
    All,
}

/// Layers, while they are being looked for.
pub(crate) struct Stack<'a> {
    project: &'a Project,
    reach: Reach,
    found: Vec<Found>,
}

impl<'a> Stack<'a> {
    pub(crate) fn new(project: &'a Project, reach: Reach) -> Self {
        Self { project, reach, found: Vec::new() }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.reach == Reach::Base && self.found.last().is_some_and(|last| last.strategy == Strategy::Replace)
    }

    pub(crate) fn found(self) -> Vec<Found> {
        self.found
    }

    /// Adds a file of `.specify/` where it is there; it replaces what is below it.
    pub(crate) fn file(&mut self, place: Place, path: PathBuf) -> Result<(), SpeckitError> {
        if !self.is_done() && confined::is_file(self.project, &path)? {
            self.push(place, Strategy::Replace, Source::Project(path));
        }
        Ok(())
    }

    /// Adds what the presets say of a name.
    pub(crate) fn presets(
        &mut self,
        kind: Kind,
        name: &str,
        conventional: &[&str],
    ) -> Result<(), SpeckitError> {
        if self.is_done() {
            return Ok(());
        }
        for preset in registry::presets(self.project)? {
            if let Some((strategy, path)) = preset_layer(self.project, &preset, (kind, name), conventional)? {
                self.push(Place::Preset(preset.id), strategy, Source::Project(path));
            }
            if self.is_done() {
                break;
            }
        }
        Ok(())
    }

    /// Adds a file of the person's where it is there.
    pub(crate) fn own(&mut self, path: PathBuf) {
        if !self.is_done() && path.is_file() {
            self.push(Place::Own, Strategy::Replace, Source::Own(path));
        }
    }

    pub(crate) fn built_in(&mut self, text: &'static str) {
        if !self.is_done() {
            self.push(Place::BuiltIn, Strategy::Replace, Source::BuiltIn(text));
        }
    }

    pub(crate) fn push(&mut self, place: Place, strategy: Strategy, source: Source) {
        self.found.push(Found { place, strategy, source });
    }
}

/// Finds what a preset says of a name: what its manifest names, or else a file at one of the usual places.
fn preset_layer(
    project: &Project,
    preset: &Installed,
    (kind, name): (Kind, &str),
    conventional: &[&str],
) -> Result<Option<(Strategy, PathBuf)>, SpeckitError> {
    let provided = registry::provided(project, preset)?;
    if let Some(entry) = provided.into_iter().find(|entry| entry.kind == kind && entry.name == name) {
        if !confined::is_below(&entry.file) {
            let why = format!("the file {:?} of {name} leads out of the preset", entry.file);
            return Err(SpeckitError::broken(&preset.folder.join("preset.yml"), why));
        }
        let path = preset.folder.join(&entry.file);
        // A manifest that names a file which is not there hides the usual places too.
        if !confined::is_file(project, &path)? {
            return Ok(None);
        }
        let strategy = match (entry.strategy, kind) {
            (Some(strategy), _) => strategy,
            (None, Kind::Command) => written_strategy(project, &path)?,
            (None, Kind::Page | Kind::Script) => Strategy::Replace,
        };
        return Ok(Some((strategy, path)));
    }
    for place in conventional {
        let path = preset.folder.join(place);
        if confined::is_file(project, &path)? {
            let strategy = match kind {
                Kind::Command => written_strategy(project, &path)?,
                Kind::Page | Kind::Script => Strategy::Replace,
            };
            return Ok(Some((strategy, path)));
        }
    }
    Ok(None)
}

/// The strategy in the front matter of a command, where older presets have it.
fn written_strategy(project: &Project, path: &Path) -> Result<Strategy, SpeckitError> {
    let text = confined::read(project, path)?.unwrap_or_default();
    let front = super::split(&text).0.and_then(|front| confined::yaml(path, front).ok());
    let said = front.as_ref().and_then(|front| front.get("strategy")?.as_str()).and_then(Strategy::parse);
    Ok(said.unwrap_or(Strategy::Replace))
}

/// What people are shown of layers that were looked for to the end.
pub(crate) fn shown(project: &Project, found: &[Found]) -> Vec<Layer> {
    let base = found.iter().position(|layer| layer.strategy == Strategy::Replace);
    let layer = |(n, found): (usize, &Found)| Layer {
        place: found.place.clone(),
        strategy: found.strategy,
        file: match &found.source {
            Source::Project(path) => Some(project.inside(path)),
            Source::Own(path) => Some(path.clone()),
            Source::BuiltIn(_) => None,
        },
        is_used: base.is_some_and(|base| n <= base),
    };
    found.iter().enumerate().map(layer).collect()
}
