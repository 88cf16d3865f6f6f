//! The presets and extensions installed in a project: which are active, and in which order. Knows no templates.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::confined_files::{self, is_truthy};
use crate::{SpeckitError, SpeckitProject};

/// The directory of presets.
pub(crate) const PRESETS_DIR: &str = "presets";

/// The directory of extensions.
pub(crate) const EXTENSIONS_DIR: &str = "extensions";

/// The registry of installed packages.
pub(crate) const REGISTRY_FILE: &str = ".registry";

/// The default priority.
pub(crate) const PRIORITY_DEFAULT: i64 = 10;

/// Projects have a few; a longer list was not made by installing.
const INSTALLED_MAX: usize = 128;

/// An active preset or extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InstalledPackage {
    pub(crate) id: String,
    pub(crate) directory: PathBuf,
}

/// The combination of a layer with the layers below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerStrategy {
    /// It replaces them.
    Replace,
    /// It is inserted before them.
    Prepend,
    /// It is inserted after them.
    Append,
    /// It is wrapped around them.
    Wrap,
}

impl LayerStrategy {
    /// The name used in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Replace => "replace",
            Self::Prepend => "prepend",
            Self::Append => "append",
            Self::Wrap => "wrap",
        }
    }

    /// Parses a name, ignoring case.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        [Self::Replace, Self::Prepend, Self::Append, Self::Wrap]
            .into_iter()
            .find(|strategy| word.eq_ignore_ascii_case(strategy.as_str()))
    }
}

/// The kinds of files in a preset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProvidedKind {
    Page,
    Command,
    Script,
}

/// An entry of a preset's manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProvidedEntry {
    pub(crate) kind: ProvidedKind,
    pub(crate) name: String,
    pub(crate) file: String,
    /// The strategy in the manifest; `None` means replace.
    pub(crate) strategy: Option<LayerStrategy>,
}

/// Lists the active presets, highest precedence first. Without a readable registry every directory is one.
pub(crate) fn list_presets(project: &SpeckitProject) -> Result<Vec<InstalledPackage>, SpeckitError> {
    let directory = project.specify_path(PRESETS_DIR);
    let registry = directory.join(REGISTRY_FILE);
    let entries = confined_files::read_specify_file(project, &registry)?
        .and_then(|text| parse_entries(&text, PRESETS_DIR));
    let ids = match entries {
        Some(entries) => read_priorities(&registry, &entries)?,
        None => confined_files::list_dirs(project, &directory)?
            .into_iter()
            .map(|name| (PRIORITY_DEFAULT, name))
            .collect(),
    };
    sort_installed(project, PRESETS_DIR, ids)
}

/// Lists the active extensions, highest precedence first: those of the registry, and directories not in it.
pub(crate) fn list_extensions(project: &SpeckitProject) -> Result<Vec<InstalledPackage>, SpeckitError> {
    let directory = project.specify_path(EXTENSIONS_DIR);
    let registry = directory.join(REGISTRY_FILE);
    let entries = extension_entries(project)?;
    let mut ids = read_priorities(&registry, &entries)?;
    for name in confined_files::list_dirs(project, &directory)? {
        if !entries.contains_key(&name) {
            ids.push((PRIORITY_DEFAULT, name));
        }
    }
    ids.sort_unstable();
    sort_installed(project, EXTENSIONS_DIR, ids)
}

/// Returns the registry of extensions by id; empty if there is none.
pub(crate) fn extension_entries(project: &SpeckitProject) -> Result<Map<String, Value>, SpeckitError> {
    let registry = project.specify_path(EXTENSIONS_DIR).join(REGISTRY_FILE);
    match confined_files::read_specify_file(project, &registry)? {
        Some(text) => parse_entries(&text, EXTENSIONS_DIR)
            .ok_or_else(|| SpeckitError::invalid_file(&registry, "it is not a registry of extensions")),
        None if registry.symlink_metadata().is_ok() => {
            Err(SpeckitError::invalid_file(&registry, "it is not a file"))
        }
        None => Ok(Map::new()),
    }
}

/// Returns the entries of a preset's manifest; empty if it has none.
pub(crate) fn read_provided_entries(
    project: &SpeckitProject,
    preset: &InstalledPackage,
) -> Result<Vec<ProvidedEntry>, SpeckitError> {
    let path = preset.directory.join("preset.yml");
    let Some(text) = confined_files::read_specify_file(project, &path)? else { return Ok(Vec::new()) };
    let manifest = confined_files::parse_yaml(&path, &text)?;
    let manifest_error = |reason: &str| SpeckitError::invalid_file(&path, reason);
    let templates = manifest.pointer("/provides/templates").and_then(Value::as_array);
    let templates =
        templates.filter(|list| !list.is_empty()).ok_or_else(|| manifest_error("it provides nothing"))?;
    templates
        .iter()
        .map(|entry| {
            parse_provided_entry(entry).ok_or_else(|| {
                manifest_error(
                    "each template needs a type, a name and a file, and its strategy must be valid",
                )
            })
        })
        .collect()
}

fn parse_provided_entry(entry: &Value) -> Option<ProvidedEntry> {
    let text_field = |key: &str| entry.get(key)?.as_str();
    let kind = match text_field("type")? {
        "template" => ProvidedKind::Page,
        "command" => ProvidedKind::Command,
        "script" => ProvidedKind::Script,
        _ => return None,
    };
    let strategy = match entry.get("strategy") {
        Some(value) => Some(LayerStrategy::parse(value.as_str()?)?),
        None => None,
    };
    if kind == ProvidedKind::Script
        && matches!(strategy, Some(LayerStrategy::Prepend | LayerStrategy::Append))
    {
        return None;
    }
    Some(ProvidedEntry {
        kind,
        name: text_field("name")?.to_owned(),
        file: text_field("file")?.to_owned(),
        strategy,
    })
}

/// Parses a priority as the real tool does: an invalid one counts as the default.
pub(crate) fn parse_priority(value: Option<&Value>) -> i64 {
    let number = match value {
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
    for (id, value) in entries {
        // It becomes part of a path.
        if !confined_files::is_name(id) {
            let reason = format!("{id:?} is not an id: ids have small letters, digits and hyphens");
            return Err(SpeckitError::invalid_file(registry, reason));
        }
        if value.is_object() && value.get("enabled").is_none_or(is_truthy) {
            ids.push((parse_priority(value.get("priority")), id.clone()));
        }
    }
    ids.sort_unstable();
    Ok(ids)
}

fn sort_installed(
    project: &SpeckitProject,
    kind_dir: &str,
    ids: Vec<(i64, String)>,
) -> Result<Vec<InstalledPackage>, SpeckitError> {
    let directory = project.specify_path(kind_dir);
    if ids.len() > INSTALLED_MAX {
        return Err(SpeckitError::invalid_file(
            &directory,
            format!("more than {INSTALLED_MAX} are installed"),
        ));
    }
    Ok(ids.into_iter().map(|(_, id)| InstalledPackage { directory: directory.join(&id), id }).collect())
}

#[cfg(test)]
mod tests;
