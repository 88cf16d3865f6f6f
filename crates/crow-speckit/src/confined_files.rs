//! Reads what a repository brought along: never through a link out of it, never deeper or longer than a bound. Knows what
//! YAML and JSON are, and not what they say.

use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::{SpeckitError, SpeckitProject};

/// Configuration that people write has four or five levels.
const LEVELS_MAX: usize = 32;

/// The largest manifests of public extensions have some hundred values.
const VALUES_MAX: usize = 20_000;

/// Anchors are rare in such files; many of them are an attack.
const ALIASES_MAX: usize = 200;

/// Names become parts of paths, and lists are shown to people.
const NAME_BYTES_MAX: usize = 64;

/// A folder of presets or extensions has a few entries; what is beyond is not looked at one by one.
const ENTRIES_MAX: usize = 512;

/// Reads a file of `.specify/`; `None` where there is none.
pub(crate) fn read_specify_file(
    project: &SpeckitProject,
    path: &Path,
) -> Result<Option<String>, SpeckitError> {
    read_file_in(project, &project.specify_path(""), path)
}

/// Reads a file below a folder of the project; `None` where there is none.
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

/// Tells whether a file of `.specify/` is there.
pub(crate) fn is_specify_file(project: &SpeckitProject, path: &Path) -> Result<bool, SpeckitError> {
    Ok(resolve_in_dir(project, &project.specify_path(""), path)?.is_some_and(|real| real.is_file()))
}

/// Names the folders in a folder of `.specify/`, sorted; only those whose names may stand in a path.
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

/// Tells whether this is a name as Spec Kit's things have them: letters, digits and hyphens.
pub(crate) fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(is_plain)
}

/// Tells whether a path that a file names stays below where it begins.
pub(crate) fn is_below(path: &str) -> bool {
    !path.is_empty()
        && !path.contains(['\\', '\0'])
        && Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// Reads YAML. Nothing at all is `null`.
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
        // As the parser of the real tool has it.
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::LastWins,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let line = error.location().map_or(1, |location| location.line());
        let message = error.without_snippet().to_string();
        let problem = message.split(" at line ").next().unwrap_or_default();
        // What follows is advice to whoever calls the parser.
        let problem = problem.split(", set ").next().unwrap_or_default();
        SpeckitError::invalid_file(path, format!("line {line}: {problem}"))
    })
}

/// Tells whether a value counts as yes, where the real tool asks for its truth.
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

/// Where a path really is; `None` where nothing is.
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
