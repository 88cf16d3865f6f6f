//! What Crow does itself of the bundled `agent-context` extension: the block about Spec Kit in files such as `AGENTS.md`.
//! Writes nothing.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::plain::is_safe_to_display;
use crate::project::follow_links;
use crate::registry::EXTENSIONS;
use crate::{SpeckitError, SpeckitProject, confined};

/// Where the extension is.
const FOLDER: &str = "agent-context";

/// What the block stands between where nobody said otherwise.
const START: &str = "<!-- SPECKIT START -->";
const END: &str = "<!-- SPECKIT END -->";

/// A marker is a comment.
const MARKER_BYTES_MAX: usize = 200;

/// Files that name the file for each agent, and the agent.
const DEFAULTS: &str = "agent-context-defaults.json";
const OPTIONS: &str = "init-options.json";

/// Rules that have no ending.
const CONTEXT_NAMES: [&str; 4] = [".cursorrules", ".windsurfrules", ".clinerules", ".goosehints"];

/// Folders in which a file can become a command.
const NOBODYS: [&str; 3] = [".git", ".crow", ".specify"];

/// A project keeps a file for each of its agents.
const FILES_MAX: usize = 16;

/// Where the block is kept, and what marks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentContext {
    /// The files, from the project's root. None of them leads out of it.
    pub files: Vec<PathBuf>,
    start: String,
    end: String,
}

impl AgentContext {
    /// The command that has the block kept.
    pub(crate) const COMMAND: &str = "speckit.agent-context.update";

    /// Reads the settings; `None` where the extension is not there.
    pub fn read(project: &SpeckitProject) -> Result<Option<Self>, SpeckitError> {
        let text = confined::read_specify_file(project, &Self::config_path(project))?;
        text.map(|text| Self::parse(project, &text)).transpose()
    }

    /// The file they stand in.
    pub fn config_path(project: &SpeckitProject) -> PathBuf {
        project.specify_path(EXTENSIONS).join(FOLDER).join("agent-context-config.yml")
    }

    /// The files that say where the block goes, the settings first.
    pub(crate) fn source_files(project: &SpeckitProject) -> [PathBuf; 3] {
        let defaults = project.specify_path(EXTENSIONS).join(FOLDER).join(DEFAULTS);
        [Self::config_path(project), project.specify_path(OPTIONS), defaults]
    }

    /// Reads the settings from the text of their file.
    pub fn parse(project: &SpeckitProject, text: &str) -> Result<Self, SpeckitError> {
        let path = Self::config_path(project);
        let said = confined::parse_yaml(&path, text)?;
        let marker = |place: &str, otherwise: &str| {
            let marker = said.pointer(place).and_then(Value::as_str).filter(|marker| !marker.is_empty());
            let marker = marker.unwrap_or(otherwise);
            if marker.len() > MARKER_BYTES_MAX || marker.trim().is_empty() || !is_safe_to_display(marker) {
                let why = format!("a marker is one line of at most {MARKER_BYTES_MAX} bytes");
                return Err(SpeckitError::broken(&path, why));
            }
            Ok(marker.to_owned())
        };
        let mut files = Vec::new();
        for name in context_file_names(project, &said)? {
            let file = PathBuf::from(&name);
            if !confined::is_below(&name) || !stays_inside(project, &file)? {
                let why = format!("the context file {name:?} is not in this project");
                return Err(SpeckitError::broken(&path, why));
            }
            if !is_context_file(project, &file) {
                let why = format!("{name:?} is no file in which agents look for rules, such as AGENTS.md");
                return Err(SpeckitError::broken(&path, why));
            }
            if !files.contains(&file) {
                files.push(file);
            }
        }
        if files.len() > FILES_MAX {
            return Err(SpeckitError::broken(&path, format!("it names more than {FILES_MAX} context files")));
        }
        let (start, end) = (marker("/context_markers/start", START)?, marker("/context_markers/end", END)?);
        Ok(Self { files, start, end })
    }

    /// Puts the block into a file's text, in place of the one that is there. Half a block is taken for the whole rest.
    pub fn upsert_block(&self, text: &str, plan: Option<&str>) -> String {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let block = self.render_block(plan);
        let start = text.find(&self.start);
        let end = text[start.unwrap_or(0)..].find(&self.end).map(|at| at + start.unwrap_or(0));
        let behind = |end: usize| {
            let rest = &text[end + self.end.len()..];
            let rest = rest.strip_prefix('\r').unwrap_or(rest);
            rest.strip_prefix('\n').unwrap_or(rest)
        };
        let whole = match (start, end) {
            (Some(start), Some(end)) if end > start => format!("{}{block}{}", &text[..start], behind(end)),
            (Some(start), _) => format!("{}{block}", &text[..start]),
            (None, Some(end)) => format!("{block}{}", behind(end)),
            (None, None) if text.is_empty() => block,
            (None, None) if text.ends_with('\n') => format!("{text}\n{block}"),
            (None, None) => format!("{text}\n\n{block}"),
        };
        whole.replace("\r\n", "\n").replace('\r', "\n")
    }

    fn render_block(&self, plan: Option<&str>) -> String {
        let words = "Before you change code, read the plan of the feature that is being built: it says what it is\n\
                     built with, where things are and which commands check it.";
        let plan = plan.map(|plan| format!("\nThe plan: {plan}")).unwrap_or_default();
        format!("{}\n{words}{plan}\n{}\n", self.start, self.end)
    }
}

/// The files that the settings name, or else the one that the project's integration reads.
fn context_file_names(project: &SpeckitProject, said: &Value) -> Result<Vec<String>, SpeckitError> {
    let word =
        |value: &Value| value.as_str().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
    let listed = said.get("context_files").and_then(Value::as_array);
    let names: Vec<String> = listed.into_iter().flatten().filter_map(word).collect();
    if !names.is_empty() {
        return Ok(names);
    }
    if let Some(name) = said.get("context_file").and_then(word) {
        return Ok(vec![name]);
    }
    let json = |path: &Path| -> Result<Value, SpeckitError> {
        let text = confined::read_specify_file(project, path)?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
    };
    let options = json(&project.specify_path(OPTIONS))?;
    let integration = options.get("integration").and_then(word).or_else(|| options.get("ai").and_then(word));
    let Some(integration) = integration else { return Ok(Vec::new()) };
    let defaults = json(&project.specify_path(EXTENSIONS).join(FOLDER).join(DEFAULTS))?;
    Ok(defaults
        .get("agents")
        .and_then(|agents| agents.get(&integration))
        .and_then(word)
        .into_iter()
        .collect())
}

/// Tells whether agents may look for rules in a file: by its name, by where it leads, and because nobody runs it.
fn is_context_file(project: &SpeckitProject, file: &Path) -> bool {
    let Some(real) = follow_links(&project.resolve_path(file)) else { return false };
    let Some(inside) =
        follow_links(project.root()).and_then(|root| Some(real.strip_prefix(root).ok()?.to_owned()))
    else {
        return false;
    };
    let is_named = |file: &Path| {
        let ending = file.extension().is_some_and(|ending| ending == "md" || ending == "mdc");
        let is_known =
            ending || CONTEXT_NAMES.iter().any(|name| file.file_name().is_some_and(|of| of == *name));
        let is_kept = file.iter().any(|part| NOBODYS.iter().any(|name| part.eq_ignore_ascii_case(name)));
        is_known && !is_kept && file.to_str().is_some_and(is_safe_to_display)
    };
    is_named(file)
        && is_named(&inside)
        && real.metadata().map_or(true, |found| found.is_file() && !is_executable(&found))
}

#[cfg(unix)]
fn is_executable(found: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    found.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_found: &std::fs::Metadata) -> bool {
    false
}

/// Tells whether a file that may not be there yet stays in the project, whatever links are on the way.
fn stays_inside(project: &SpeckitProject, file: &Path) -> Result<bool, SpeckitError> {
    let failed = |error| SpeckitError::io(project.root(), error);
    let root = project.root().canonicalize().map_err(failed)?;
    for place in root.join(file).ancestors() {
        match place.symlink_metadata() {
            // A link that leads nowhere would be written through.
            Ok(_) => return Ok(place.canonicalize().is_ok_and(|real| real.starts_with(&root))),
            Err(_) => continue,
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests;
