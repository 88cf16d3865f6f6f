//! The display of an old call: it was not stored, so it is derived from the name and the arguments.

use std::path::Path;

use crow_core::{FileLocation, ToolAccess, ToolCallInfo, ToolKind};
use serde_json::{Map, Value};

/// A title is one line in a list.
const TITLE_CHARS_MAX: usize = 100;

/// The tools of the Python version: name, kind, beginning of the title, and the arguments that the title shows.
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

/// Returns the display of a call. Its access is no longer evaluated.
pub(super) fn tool_call_info(name: &str, arguments: &Map<String, Value>, cwd: &str) -> ToolCallInfo {
    let tool_row = TOOLS.iter().find(|(tool, ..)| is_named(name, tool));
    let subject =
        tool_row.and_then(|(.., keys)| keys.iter().find_map(|key| argument_text(arguments.get(*key)?)));
    let Some(((_, kind, verb, keys), subject)) = tool_row.zip(subject) else {
        let kind = tool_row.map_or(ToolKind::Other, |(_, kind, ..)| *kind);
        return ToolCallInfo {
            title: one_line(name),
            kind,
            locations: Vec::new(),
            access: ToolAccess::Nothing,
        };
    };
    let location = || FileLocation { path: Path::new(cwd).join(&subject).display().to_string(), line: None };
    let locations = if *keys == PATHS { vec![location()] } else { Vec::new() };
    ToolCallInfo {
        title: one_line(&format!("{verb}{subject}")),
        kind: *kind,
        locations,
        access: ToolAccess::Nothing,
    }
}

/// Matches a tool by its name, which older versions prefixed with that of its server.
fn is_named(name: &str, tool: &str) -> bool {
    name.strip_suffix(tool).is_some_and(|server| server.is_empty() || server.ends_with(['_', '-', '.', '/']))
}

fn argument_text(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" · "),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    };
    Some(text).filter(|words| !words.trim().is_empty())
}

/// Makes a one-line title of a text: its first line that is not empty.
pub(super) fn one_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let is_complete = line.len() == text.trim().len() && line.chars().count() <= TITLE_CHARS_MAX;
    let chars = line.chars().map(|c| if c.is_control() { ' ' } else { c });
    if is_complete { chars.collect() } else { chars.take(TITLE_CHARS_MAX - 1).chain(['…']).collect() }
}
