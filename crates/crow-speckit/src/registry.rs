//! What is installed in a project: presets and extensions, which of them count, and in which order. Knows no template.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::confined::{self, is_truthy};
use crate::{SpeckitError, SpeckitProject};

/// Where presets are.
pub(crate) const PRESETS: &str = "presets";

/// Where extensions are.
pub(crate) const EXTENSIONS: &str = "extensions";

/// The file that says what is installed.
pub(crate) const REGISTRY: &str = ".registry";

/// What counts where nobody said how much.
pub(crate) const PRIORITY_DEFAULT: i64 = 10;

/// Projects have a handful; what lists more was not made by installing.
const INSTALLED_MAX: usize = 128;

/// A preset or an extension that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InstalledPackage {
    pub(crate) id: String,
    pub(crate) folder: PathBuf,
}

/// How a layer goes with what is below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerStrategy {
    /// It stands instead of it.
    Replace,
    /// It stands before it.
    Prepend,
    /// It stands after it.
    Append,
    /// It stands around it.
    Wrap,
}

impl LayerStrategy {
    /// The word for it in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Replace => "replace",
            Self::Prepend => "prepend",
            Self::Append => "append",
            Self::Wrap => "wrap",
        }
    }

    /// Reads the word, in any case.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        [Self::Replace, Self::Prepend, Self::Append, Self::Wrap]
            .into_iter()
            .find(|strategy| word.eq_ignore_ascii_case(strategy.as_str()))
    }
}

/// What a preset provides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProvidedKind {
    Page,
    Command,
    Script,
}

/// One thing that a preset's manifest names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProvidedEntry {
    pub(crate) kind: ProvidedKind,
    pub(crate) name: String,
    pub(crate) file: String,
    /// What the manifest says; nothing means to replace.
    pub(crate) strategy: Option<LayerStrategy>,
}

/// The presets that count, the strongest first. Without a registry that can be read, every folder is one.
pub(crate) fn list_presets(project: &SpeckitProject) -> Result<Vec<InstalledPackage>, SpeckitError> {
    let folder = project.specify_path(PRESETS);
    let registry = folder.join(REGISTRY);
    let entries =
        confined::read_specify_file(project, &registry)?.and_then(|text| parse_entries(&text, PRESETS));
    let ids = match entries {
        Some(entries) => read_priorities(&registry, &entries)?,
        None => confined::list_folders(project, &folder)?
            .into_iter()
            .map(|name| (PRIORITY_DEFAULT, name))
            .collect(),
    };
    sort_installed(project, PRESETS, ids)
}

/// The extensions that count, the strongest first: those of the registry, and folders that it does not name.
pub(crate) fn list_extensions(project: &SpeckitProject) -> Result<Vec<InstalledPackage>, SpeckitError> {
    let folder = project.specify_path(EXTENSIONS);
    let registry = folder.join(REGISTRY);
    let entries = extension_entries(project)?;
    let mut ids = read_priorities(&registry, &entries)?;
    for name in confined::list_folders(project, &folder)? {
        if !entries.contains_key(&name) {
            ids.push((PRIORITY_DEFAULT, name));
        }
    }
    ids.sort_unstable();
    sort_installed(project, EXTENSIONS, ids)
}

/// What the registry of extensions says, by id; nothing where there is none.
pub(crate) fn extension_entries(project: &SpeckitProject) -> Result<Map<String, Value>, SpeckitError> {
    let registry = project.specify_path(EXTENSIONS).join(REGISTRY);
    match confined::read_specify_file(project, &registry)? {
        Some(text) => parse_entries(&text, EXTENSIONS)
            .ok_or_else(|| SpeckitError::broken(&registry, "it is not a registry of extensions")),
        None if registry.symlink_metadata().is_ok() => {
            Err(SpeckitError::broken(&registry, "it is not a file"))
        }
        None => Ok(Map::new()),
    }
}

/// What a preset's manifest names; nothing where it has none.
pub(crate) fn read_provided_entries(
    project: &SpeckitProject,
    preset: &InstalledPackage,
) -> Result<Vec<ProvidedEntry>, SpeckitError> {
    let path = preset.folder.join("preset.yml");
    let Some(text) = confined::read_specify_file(project, &path)? else { return Ok(Vec::new()) };
    let manifest = confined::parse_yaml(&path, &text)?;
    let broken = |why: &str| SpeckitError::broken(&path, why);
    let templates = manifest.pointer("/provides/templates").and_then(Value::as_array);
    let templates = templates.filter(|list| !list.is_empty()).ok_or_else(|| broken("it provides nothing"))?;
    templates
        .iter()
        .map(|entry| {
            parse_provided_entry(entry).ok_or_else(|| {
                broken("each template needs a type, a name, a file, and a strategy that exists, if any")
            })
        })
        .collect()
}

fn parse_provided_entry(entry: &Value) -> Option<ProvidedEntry> {
    let word = |key: &str| entry.get(key)?.as_str();
    let kind = match word("type")? {
        "template" => ProvidedKind::Page,
        "command" => ProvidedKind::Command,
        "script" => ProvidedKind::Script,
        _ => return None,
    };
    let strategy = match entry.get("strategy") {
        Some(said) => Some(LayerStrategy::parse(said.as_str()?)?),
        None => None,
    };
    if kind == ProvidedKind::Script
        && matches!(strategy, Some(LayerStrategy::Prepend | LayerStrategy::Append))
    {
        return None;
    }
    Some(ProvidedEntry { kind, name: word("name")?.to_owned(), file: word("file")?.to_owned(), strategy })
}

/// Reads a priority as the real tool does: what is none counts as the usual one.
pub(crate) fn parse_priority(said: Option<&Value>) -> i64 {
    let number = match said {
        Some(Value::Number(number)) => {
            number.as_i64().or_else(|| number.as_f64().map(|float| float.trunc() as i64))
        }
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => None,
    };
    number.filter(|number| *number >= 1).unwrap_or(PRIORITY_DEFAULT)
}

fn parse_entries(text: &str, key: &str) -> Option<Map<String, Value>> {
    let Value::Object(mut fields) = serde_json::from_str(text).ok()? else { return None };
    match fields.remove(key) {
        Some(Value::Object(entries)) => Some(entries),
        Some(_) => None,
        None => Some(Map::new()),
    }
}

fn read_priorities(
    registry: &Path,
    entries: &Map<String, Value>,
) -> Result<Vec<(i64, String)>, SpeckitError> {
    let mut ids = Vec::new();
    for (id, said) in entries {
        // It becomes a part of a path.
        if !confined::is_name(id) {
            let why = format!("{id:?} is not an id: ids have small letters, digits and hyphens");
            return Err(SpeckitError::broken(registry, why));
        }
        if said.is_object() && said.get("enabled").is_none_or(is_truthy) {
            ids.push((parse_priority(said.get("priority")), id.clone()));
        }
    }
    ids.sort_unstable();
    Ok(ids)
}

fn sort_installed(
    project: &SpeckitProject,
    place: &str,
    ids: Vec<(i64, String)>,
) -> Result<Vec<InstalledPackage>, SpeckitError> {
    let folder = project.specify_path(place);
    if ids.len() > INSTALLED_MAX {
        return Err(SpeckitError::broken(&folder, format!("more than {INSTALLED_MAX} are installed")));
    }
    Ok(ids.into_iter().map(|(_, id)| InstalledPackage { folder: folder.join(&id), id }).collect())
}

#[cfg(test)]
mod tests;
