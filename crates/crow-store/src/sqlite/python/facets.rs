//! What is shown of an old call: nothing of it was stored, so it is told from its name and its arguments.

use std::path::Path;

use crow_core::{FileLocation, ToolAccess, ToolCallInfo, ToolKind};
use serde_json::{Map, Value};

/// A title is one line in a list.
const TITLE_CHARS_MAX: usize = 100;

/// The tools the Python version brought: name, kind, what its title begins with, and the arguments that say what it is
/// about.
const TOOLS: [(&str, ToolKind, &str, &[&str]); 8] = [
    ("web_search", ToolKind::Search, "Search the web: ", &["queries", "query"]),
    ("web_fetch", ToolKind::Fetch, "Fetch ", &["url"]),
    ("read_image_file", ToolKind::Read, "Read ", PATHS),
    ("read", ToolKind::Read, "Read ", PATHS),
    ("write", ToolKind::Edit, "Write ", PATHS),
    ("edit", ToolKind::Edit, "Edit ", PATHS),
    ("terminal", ToolKind::Execute, "", &["command"]),
    ("execute", ToolKind::Execute, "", &["code"]),
];
const PATHS: &[&str] = &["file_path", "path"];

/// Shows a call. What it touched is no longer to be judged.
pub(super) fn tool_call_info(name: &str, arguments: &Map<String, Value>, cwd: &str) -> ToolCallInfo {
    let known = TOOLS.iter().find(|(tool, ..)| is_named(name, tool));
    let about = known.and_then(|(.., keys)| keys.iter().find_map(|key| argument_text(arguments.get(*key)?)));
    let Some(((_, kind, verb, keys), about)) = known.zip(about) else {
        let kind = known.map_or(ToolKind::Other, |(_, kind, ..)| *kind);
        return ToolCallInfo {
            title: one_line(name),
            kind,
            locations: Vec::new(),
            touch: ToolAccess::Nothing,
        };
    };
    let location = || FileLocation { path: Path::new(cwd).join(&about).display().to_string(), line: None };
    let locations = if *keys == PATHS { vec![location()] } else { Vec::new() };
    ToolCallInfo {
        title: one_line(&format!("{verb}{about}")),
        kind: *kind,
        locations,
        touch: ToolAccess::Nothing,
    }
}

/// Tells a tool by its name, before which older versions put that of its server.
fn is_named(name: &str, tool: &str) -> bool {
    name.strip_suffix(tool).is_some_and(|server| server.is_empty() || server.ends_with(['_', '-', '.', '/']))
}

fn argument_text(value: &Value) -> Option<String> {
    let words = match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" · "),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    };
    Some(words).filter(|words| !words.trim().is_empty())
}

/// Makes a title of one line out of anything: its first line that says something.
pub(super) fn one_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let is_whole = line.len() == text.trim().len() && line.chars().count() <= TITLE_CHARS_MAX;
    let shown = line.chars().map(|c| if c.is_control() { ' ' } else { c });
    if is_whole { shown.collect() } else { shown.take(TITLE_CHARS_MAX - 1).chain(['…']).collect() }
}
