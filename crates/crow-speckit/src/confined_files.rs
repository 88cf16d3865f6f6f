//! Reads files that came with a repository: never follows a link out of it, and limits depth and size. Knows the syntax
//! of YAML and JSON, not their meaning.

use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::{SpeckitError, SpeckitProject};

/// Hand-written configuration has four or five levels.
const LEVELS_MAX: usize = 32;

/// The largest manifests of public extensions have a few hundred values.
const VALUES_MAX: usize = 20_000;

/// Anchors are rare in such files; many of them are an attack.
const ALIASES_MAX: usize = 200;

/// Names become parts of paths and are listed to users.
const NAME_BYTES_MAX: usize = 64;

/// A directory of presets or extensions has a few entries.
const ENTRIES_MAX: usize = 512;

/// Reads a file in `.specify/`; `None` if it does not exist.
pub(crate) fn read_specify_file(
    project: &SpeckitProject,
    path: &Path,
) -> Result<Option<String>, SpeckitError> {
    read_file_in(project, &project.specify_path(""), path)
}

/// Reads a file below a directory of the project; `None` if it does not exist.
pub(crate) fn read_file_in(
    project: &SpeckitProject,
    directory: &Path,
    path: &Path,
) -> Result<Option<String>, SpeckitError> {
    match resolve_in_dir(project, directory, path)? {
        Some(real) if real.is_file() => SpeckitProject::read_resolved(&real),
        _ => Ok(None),
    }
}

/// Whether a file exists in `.specify/`.
pub(crate) fn is_specify_file(project: &SpeckitProject, path: &Path) -> Result<bool, SpeckitError> {
    Ok(resolve_in_dir(project, &project.specify_path(""), path)?.is_some_and(|real| real.is_file()))
}

/// Lists the directories in a directory of `.specify/`, sorted; only those whose names are valid in a path.
pub(crate) fn list_dirs(project: &SpeckitProject, path: &Path) -> Result<Vec<String>, SpeckitError> {
    let Some(real) = resolve_in_dir(project, &project.specify_path(""), path)? else {
        return Ok(Vec::new());
    };
    let io_error = |error| SpeckitError::io(path, error);
    let mut names = Vec::new();
    for (n, entry) in fs::read_dir(&real).map_err(io_error)?.enumerate() {
        if n == ENTRIES_MAX {
            return Err(SpeckitError::invalid_file(path, format!("it has more than {ENTRIES_MAX} entries")));
        }
        let entry = entry.map_err(io_error)?;
        if let Ok(name) = entry.file_name().into_string()
            && is_name(&name)
            && entry.path().is_dir()
        {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Whether this is a valid Spec Kit name: lower-case letters, digits and hyphens.
pub(crate) fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(is_plain)
}

/// Whether a path given by a file stays below its base.
pub(crate) fn is_below(path: &str) -> bool {
    !path.is_empty()
        && !path.contains(['\\', '\0'])
        && Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// Parses YAML. An empty text is `null`.
pub(crate) fn parse_yaml(path: &Path, text: &str) -> Result<Value, SpeckitError> {
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Value::Null);
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: LEVELS_MAX,
            flow_nesting_limit: LEVELS_MAX,
            max_nodes: VALUES_MAX,
            max_events: 3 * VALUES_MAX,
            max_aliases: ALIASES_MAX,
            max_anchors: ALIASES_MAX,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: VALUES_MAX },
        // The same as the parser of the real tool.
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::LastWins,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let line = error.location().map_or(1, |location| location.line());
        let message = error.without_snippet().to_string();
        let problem = message.split(" at line ").next().unwrap_or_default();
        // The rest is advice for callers of the parser.
        let problem = problem.split(", set ").next().unwrap_or_default();
        SpeckitError::invalid_file(path, format!("line {line}: {problem}"))
    })
}

/// Whether a value is truthy to the real tool.
pub(crate) fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(is_so) => *is_so,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(values) => !values.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

/// Resolves a path; `None` if it does not exist.
fn resolve_in_dir(
    project: &SpeckitProject,
    directory: &Path,
    path: &Path,
) -> Result<Option<PathBuf>, SpeckitError> {
    let Some(canonical) = canonicalize_if_exists(path)? else { return Ok(None) };
    for boundary in [directory, project.root()] {
        if !canonicalize_if_exists(boundary)?.is_some_and(|boundary| canonical.starts_with(boundary)) {
            let reason = format!("it leads out of {}", project.display_path(boundary));
            return Err(SpeckitError::invalid_file(path, reason));
        }
    }
    Ok(Some(canonical))
}

fn canonicalize_if_exists(path: &Path) -> Result<Option<PathBuf>, SpeckitError> {
    match fs::canonicalize(path) {
        Ok(canonical) => Ok(Some(canonical)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(SpeckitError::io(path, error)),
    }
}
