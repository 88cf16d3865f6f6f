//! The pointer: one line in `.specify/feature.json` with the feature that a checkout works on. Shared with other
//! programs, so it is read and written in their format. Knows no sessions.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::{SpeckitError, SpeckitProject, git, project::follow_links};

const KEY: &str = "feature_directory";

/// Reads the directory that the project works on; `None` if it is not set. The directory need not exist.
pub fn read_pointer(project: &SpeckitProject) -> Result<Option<PathBuf>, SpeckitError> {
    let file = pointer_path(project);
    let Some(text) = SpeckitProject::read_file(&file)? else { return Ok(None) };
    // PowerShell writes a byte order mark and backslashes.
    let text = text.trim_start_matches('\u{feff}');
    let pointer_error = |reason: &str| {
        let advice = "select a feature with /speckit use, or delete the file";
        SpeckitError::invalid_file(&file, format!("{reason}; {advice}"))
    };
    let value: Value = serde_json::from_str(text).map_err(|_| pointer_error("it is not JSON"))?;
    match value.get(KEY) {
        Some(Value::String(path_text)) if !path_text.is_empty() => {
            Ok(Some(project.resolve_path(path_text.replace('\\', "/"))))
        }
        Some(_) => Err(pointer_error("its feature_directory is not the name of a directory")),
        None => Err(pointer_error("it has no feature_directory")),
    }
}

/// Points to a directory; returns whether the pointer changed. Excludes the pointer from git if the project does not.
pub fn write_pointer(project: &SpeckitProject, dir: &Path) -> Result<bool, SpeckitError> {
    let file = pointer_path(project);
    if read_pointer(project).ok().flatten().is_some_and(|pointed_dir| pointed_dir == dir) {
        return Ok(false);
    }
    let path_text = pointer_text(project, dir)?;
    project.create_dir(&project.specify_path(""))?;
    SpeckitProject::write_file(&file, &format!("{}\n", json!({ KEY: path_text })))?;
    if !project.specify_path(".gitignore").exists() {
        git::exclude_file(project.root(), ".specify/feature.json")?;
    }
    Ok(true)
}

fn pointer_path(project: &SpeckitProject) -> PathBuf {
    project.specify_path("feature.json")
}

/// Formats a directory relative to the root if it is inside, with slashes on every system.
fn pointer_text(project: &SpeckitProject, dir: &Path) -> Result<String, SpeckitError> {
    let relative = dir.strip_prefix(project.root()).map(Path::to_owned).ok();
    let relative = relative
        .or_else(|| Some(follow_links(dir)?.strip_prefix(follow_links(project.root())?).ok()?.to_owned()));
    let parts: Option<Vec<&str>> = relative
        .as_deref()
        .map(|relative| relative.iter().map(|part| part.to_str()).collect())
        .unwrap_or_default();
    let path_text = match (&relative, parts) {
        (Some(_), parts) => parts.map(|parts| parts.join("/")),
        (None, _) => dir.to_str().map(str::to_owned),
    };
    let encoding_error =
        || SpeckitError::Invalid(format!("the name of {} is not text; rename it", dir.display()));
    path_text.filter(|path_text| !path_text.is_empty()).ok_or_else(encoding_error)
}
