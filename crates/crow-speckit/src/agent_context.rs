//! Crow's own implementation of the bundled `agent-context` extension: the block about Spec Kit in files such as
//! `AGENTS.md`. Writes nothing.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::project::follow_links;
use crate::registry::EXTENSIONS_DIR;
use crate::safe_text::is_safe_to_display;
use crate::{SpeckitError, SpeckitProject, confined_files};

/// The extension's directory.
const EXTENSION_DIR: &str = "agent-context";

/// The default markers around the block.
const DEFAULT_START: &str = "<!-- SPECKIT START -->";
const DEFAULT_END: &str = "<!-- SPECKIT END -->";

/// A marker is an HTML comment on one line.
const MARKER_BYTES_MAX: usize = 200;

/// Files that give the project's agent, and the context file of each agent.
const DEFAULTS: &str = "agent-context-defaults.json";
const OPTIONS: &str = "init-options.json";

/// Context files without an extension.
const CONTEXT_NAMES: [&str; 4] = [".cursorrules", ".windsurfrules", ".clinerules", ".goosehints"];

/// Directories in which a file can become a command.
const EXCLUDED_DIRS: [&str; 3] = [".git", ".crow", ".specify"];

/// A project has one context file for each of its agents.
const FILES_MAX: usize = 16;

/// The files that contain the block, and its markers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentContext {
    /// The context files, relative to the project's root. All of them are inside the project.
    pub files: Vec<PathBuf>,
    start_marker: String,
    end_marker: String,
}

impl AgentContext {
    /// The hook command that updates the block.
    pub(crate) const COMMAND: &str = "speckit.agent-context.update";

    /// Reads the settings; `None` if the extension is not installed.
    pub fn read(project: &SpeckitProject) -> Result<Option<Self>, SpeckitError> {
        let text = confined_files::read_specify_file(project, &Self::config_path(project))?;
        text.map(|text| Self::parse(project, &text)).transpose()
    }

    /// The path of the settings.
    pub fn config_path(project: &SpeckitProject) -> PathBuf {
        project.specify_path(EXTENSIONS_DIR).join(EXTENSION_DIR).join("agent-context-config.yml")
    }

    /// The files that decide where the block goes, the settings first.
    pub(crate) fn source_files(project: &SpeckitProject) -> [PathBuf; 3] {
        let defaults = project.specify_path(EXTENSIONS_DIR).join(EXTENSION_DIR).join(DEFAULTS);
        [Self::config_path(project), project.specify_path(OPTIONS), defaults]
    }

    /// Parses the settings.
    pub fn parse(project: &SpeckitProject, text: &str) -> Result<Self, SpeckitError> {
        let path = Self::config_path(project);
        let settings = confined_files::parse_yaml(&path, text)?;
        let marker = |pointer: &str, default: &str| {
            let marker =
                settings.pointer(pointer).and_then(Value::as_str).filter(|marker| !marker.is_empty());
            let marker = marker.unwrap_or(default);
            if marker.len() > MARKER_BYTES_MAX || marker.trim().is_empty() || !is_safe_to_display(marker) {
                let reason = format!("a marker is one line of at most {MARKER_BYTES_MAX} bytes");
                return Err(SpeckitError::invalid_file(&path, reason));
            }
            Ok(marker.to_owned())
        };
        let mut files = Vec::new();
        for name in context_file_names(project, &settings)? {
            let file = PathBuf::from(&name);
            if !confined_files::is_below(&name) || !stays_in_project(project, &file)? {
                let reason = format!("the context file {name:?} is not in this project");
                return Err(SpeckitError::invalid_file(&path, reason));
            }
            if !is_context_file(project, &file) {
                let reason = format!("{name:?} is not a context file such as AGENTS.md");
                return Err(SpeckitError::invalid_file(&path, reason));
            }
            if !files.contains(&file) {
                files.push(file);
            }
        }
        if files.len() > FILES_MAX {
            return Err(SpeckitError::invalid_file(
                &path,
                format!("it lists more than {FILES_MAX} context files"),
            ));
        }
        let (start, end) =
            (marker("/context_markers/start", DEFAULT_START)?, marker("/context_markers/end", DEFAULT_END)?);
        Ok(Self { files, start_marker: start, end_marker: end })
    }

    /// Inserts the block into a file's text, replacing an existing one. A start marker without an end marker replaces
    /// the rest of the text.
    pub fn upsert_block(&self, text: &str, plan: Option<&str>) -> String {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let block = self.render_block(plan);
        let start = text.find(&self.start_marker);
        let end = text[start.unwrap_or(0)..].find(&self.end_marker).map(|offset| offset + start.unwrap_or(0));
        let text_after = |end: usize| {
            let rest = &text[end + self.end_marker.len()..];
            let rest = rest.strip_prefix('\r').unwrap_or(rest);
            rest.strip_prefix('\n').unwrap_or(rest)
        };
        let updated = match (start, end) {
            (Some(start), Some(end)) if end > start => {
                format!("{}{block}{}", &text[..start], text_after(end))
            }
            (Some(start), _) => format!("{}{block}", &text[..start]),
            (None, Some(end)) => format!("{block}{}", text_after(end)),
            (None, None) if text.is_empty() => block,
            (None, None) if text.ends_with('\n') => format!("{text}\n{block}"),
            (None, None) => format!("{text}\n\n{block}"),
        };
        updated.replace("\r\n", "\n").replace('\r', "\n")
    }

    fn render_block(&self, plan: Option<&str>) -> String {
        let instructions = "Before you change code, read the plan of the feature that is being built: it says what it is\n\
                     built with, where things are and which commands check it.";
        let plan = plan.map(|plan| format!("\nThe plan: {plan}")).unwrap_or_default();
        format!("{}\n{instructions}{plan}\n{}\n", self.start_marker, self.end_marker)
    }
}

/// Returns the files given by the settings, or else the one that the project's integration reads.
fn context_file_names(project: &SpeckitProject, settings: &Value) -> Result<Vec<String>, SpeckitError> {
    let non_empty_text =
        |value: &Value| value.as_str().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
    let context_files = settings.get("context_files").and_then(Value::as_array);
    let names: Vec<String> = context_files.into_iter().flatten().filter_map(non_empty_text).collect();
    if !names.is_empty() {
        return Ok(names);
    }
    if let Some(name) = settings.get("context_file").and_then(non_empty_text) {
        return Ok(vec![name]);
    }
    let read_json = |path: &Path| -> Result<Value, SpeckitError> {
        let text = confined_files::read_specify_file(project, path)?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
    };
    let options = read_json(&project.specify_path(OPTIONS))?;
    let integration = options
        .get("integration")
        .and_then(non_empty_text)
        .or_else(|| options.get("ai").and_then(non_empty_text));
    let Some(integration) = integration else { return Ok(Vec::new()) };
    let defaults = read_json(&project.specify_path(EXTENSIONS_DIR).join(EXTENSION_DIR).join(DEFAULTS))?;
    Ok(defaults
        .get("agents")
        .and_then(|agents| agents.get(&integration))
        .and_then(non_empty_text)
        .into_iter()
        .collect())
}

/// Whether a file is a context file: by its name, by the target of its links, and because it is not executable.
fn is_context_file(project: &SpeckitProject, file: &Path) -> bool {
    let Some(canonical) = follow_links(&project.resolve_path(file)) else { return false };
    let Some(relative) =
        follow_links(project.root()).and_then(|root| Some(canonical.strip_prefix(root).ok()?.to_owned()))
    else {
        return false;
    };
    let is_allowed_name = |file: &Path| {
        let has_rule_extension = file.extension().is_some_and(|ending| ending == "md" || ending == "mdc");
        let is_known = has_rule_extension
            || CONTEXT_NAMES.iter().any(|name| file.file_name().is_some_and(|file_name| file_name == *name));
        let is_excluded =
            file.iter().any(|part| EXCLUDED_DIRS.iter().any(|name| part.eq_ignore_ascii_case(name)));
        is_known && !is_excluded && file.to_str().is_some_and(is_safe_to_display)
    };
    is_allowed_name(file)
        && is_allowed_name(&relative)
        && canonical
            .metadata()
            .map_or(true, |metadata| metadata.is_file() && !crow_files::is_executable(&metadata))
}

/// Whether a file, which may not exist yet, is inside the project once all links are resolved.
fn stays_in_project(project: &SpeckitProject, file: &Path) -> Result<bool, SpeckitError> {
    let io_error = |error| SpeckitError::io(project.root(), error);
    let root = project.root().canonicalize().map_err(io_error)?;
    for ancestor in root.join(file).ancestors() {
        match ancestor.symlink_metadata() {
            // Writing to a dangling link would create its target.
            Ok(_) => return Ok(ancestor.canonicalize().is_ok_and(|canonical| canonical.starts_with(&root))),
            Err(_) => continue,
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests;
