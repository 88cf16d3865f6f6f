//! Rewrites a command's file for a model: removes the front matter, makes paths relative to the project's root, and
//! inserts command names. The arguments are inserted later, when the prompt is rendered.

use crate::page_template::split_front_matter;
use crate::registry::EXTENSIONS_DIR;
use crate::{SpeckitError, SpeckitProject, confined_files};

/// The placeholder for the command's script.
const SCRIPT: &str = "{SCRIPT}";

/// The placeholder for the agent's name.
const AGENT: &str = "__AGENT__";

/// The beginning and the end of a reference to a command.
const COMMAND: &str = "__SPECKIT_COMMAND_";
const COMMAND_END: &str = "__";

/// Directories that command files reference relative to themselves.
const SPECIFY_DIRS: [&str; 3] = ["scripts", "memory", "templates"];

/// Directories of an extension that commands do not reference.
const SKIPPED_DIRS: [&str; 2] = ["commands", "specs"];

/// Returns the line that runs a command's script, in the project's preferred shell; `None` if the front matter has
/// none.
pub(super) fn script_line(
    project: &SpeckitProject,
    text: &str,
    extension: Option<&str>,
) -> Result<Option<String>, SpeckitError> {
    let Some(front_matter) = split_front_matter(text).0 else { return Ok(None) };
    let path = project.specify_path("templates");
    // Broken front matter only disables the script.
    let Ok(front_matter) = confined_files::parse_yaml(&path, front_matter) else { return Ok(None) };
    let Some(scripts) = front_matter.get("scripts").and_then(|scripts| scripts.as_object()) else {
        return Ok(None);
    };
    let options = confined_files::read_specify_file(project, &project.specify_path("init-options.json"))?;
    let options: serde_json::Value =
        options.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let preferred = options.get("script").and_then(|script| script.as_str()).unwrap_or_default();
    let native = if cfg!(windows) { ["ps", "sh"] } else { ["sh", "ps"] };
    for variant in [preferred, native[0], native[1], "py"] {
        if let Some(line) = scripts.get(variant).and_then(|line| line.as_str()) {
            let line = rewrite_paths(line.trim(), &scripts_dir(extension));
            return Ok(Some(if variant == "py" { format!("python3 {line}") } else { line }));
        }
    }
    Ok(None)
}

/// Returns the text of a command's file for a model.
pub(super) fn prompt_body(
    project: &SpeckitProject,
    text: &str,
    extension: Option<&str>,
    script: Option<&str>,
) -> Result<String, SpeckitError> {
    let mut body = split_front_matter(text).1.to_owned();
    if let Some(id) = extension {
        let directory = project.specify_path(EXTENSIONS_DIR).join(id);
        for name in confined_files::list_dirs(project, &directory)? {
            if !SKIPPED_DIRS.contains(&name.as_str()) {
                body =
                    rewrite_extension_paths(&body, &name, &format!(".specify/{EXTENSIONS_DIR}/{id}/{name}/"));
            }
        }
    }
    if let Some(script) = script {
        body = body.replace(SCRIPT, script);
    }
    let body = rewrite_paths(&body.replace(AGENT, "crow"), &scripts_dir(extension));
    Ok(rewrite_command_names(&body))
}

fn scripts_dir(extension: Option<&str>) -> String {
    match extension {
        Some(id) => format!(".specify/{EXTENSIONS_DIR}/{id}/scripts/"),
        None => ".specify/scripts/".to_owned(),
    }
}

/// Makes paths such as `scripts/x` and `../../templates/x` relative to the project's root.
fn rewrite_paths(text: &str, scripts_dir: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((offset, target)) = find_target(rest) {
        let before = &rest[..offset];
        let end = offset + target.len() + 1;
        match classify_path_start(before, result.is_empty()) {
            PathStart::Other => result.push_str(&rest[..end]),
            PathStart::ProjectRoot(start) => {
                result.push_str(&before[..start]);
                result.push_str(&format!(".specify/{target}/"));
            }
            PathStart::CommandRoot(start) => {
                result.push_str(&before[..start]);
                let specify_dir = format!(".specify/{target}/");
                result.push_str(if target == "scripts" { scripts_dir } else { &specify_dir });
            }
        }
        rest = &rest[end..];
    }
    result + rest
}

/// The base of a path, with the offset of its beginning.
enum PathStart {
    /// Two or more levels up: the project's root.
    ProjectRoot(usize),
    /// The parent of the command's directories.
    CommandRoot(usize),
    /// Part of a longer path or word.
    Other,
}

fn find_target(text: &str) -> Option<(usize, &'static str)> {
    SPECIFY_DIRS.iter().filter_map(|target| Some((text.find(&format!("{target}/"))?, *target))).min()
}

fn classify_path_start(prefix: &str, is_at_start: bool) -> PathStart {
    let without_parents = prefix.trim_end_matches("../");
    if prefix.len() - without_parents.len() >= 2 * "../".len()
        && !without_parents.ends_with(|char: char| char == '.' || char == '_' || char.is_alphanumeric())
    {
        return PathStart::ProjectRoot(without_parents.len());
    }
    for relative in ["./", "/", ""] {
        if let Some(before_path) = prefix.strip_suffix(relative)
            && ((before_path.is_empty() && is_at_start) || before_path.ends_with(is_boundary))
        {
            return PathStart::CommandRoot(before_path.len());
        }
    }
    PathStart::Other
}

fn is_boundary(char: char) -> bool {
    char.is_whitespace() || matches!(char, '`' | '"' | '\'' | '(' | '[' | '{' | '<' | '=')
}

/// Makes paths into an extension's directory relative to the project's root.
fn rewrite_extension_paths(text: &str, name: &str, replacement: &str) -> String {
    let searched = format!("{name}/");
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(offset) = rest.find(&searched) {
        let before = &rest[..offset];
        let before_path = before.strip_suffix("./").unwrap_or(before);
        let is_start = (before_path.is_empty() && result.is_empty())
            || before_path
                .ends_with(|char: char| char.is_whitespace() || matches!(char, '`' | '"' | '\'' | '('));
        result.push_str(if is_start { before_path } else { before });
        result.push_str(if is_start { replacement } else { &searched });
        rest = &rest[offset + searched.len()..];
    }
    result + rest
}

/// Replaces references to commands with the names that users type.
fn rewrite_command_names(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(offset) = rest.find(COMMAND) {
        let name = &rest[offset + COMMAND.len()..];
        let is_name_char = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_' || c == '-';
        let n_bytes = name.find(|c| !is_name_char(c)).unwrap_or(name.len());
        let end =
            name[..n_bytes].rfind(COMMAND_END).filter(|_| name.starts_with(|c: char| c.is_ascii_uppercase()));
        result.push_str(&rest[..offset]);
        match end {
            Some(end) => {
                result.push_str("/speckit.");
                result.push_str(&name[..end].to_ascii_lowercase().replace('_', "."));
                rest = &name[end + COMMAND_END.len()..];
            }
            None => {
                result.push_str(COMMAND);
                rest = name;
            }
        }
    }
    result + rest
}

#[cfg(test)]
mod tests;
