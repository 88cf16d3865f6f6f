//! What becomes of a command's file before a model is given it: no front matter, paths from the project's root, commands
//! by their names. The person's words are put in last, by whoever renders.

use crate::page::split_front_matter;
use crate::registry::EXTENSIONS;
use crate::{SpeckitError, SpeckitProject, confined};

/// Where the script of a command stands.
const SCRIPT: &str = "{SCRIPT}";

/// Where the agent's name stands.
const AGENT: &str = "__AGENT__";

/// What a reference to a command begins with, and how it ends.
const COMMAND: &str = "__SPECKIT_COMMAND_";
const COMMAND_END: &str = "__";

/// Folders that commands name from where they were written.
const TARGETS: [&str; 3] = ["scripts", "memory", "templates"];

/// Folders of an extension that are not what a command names.
const NOT_OF_COMMANDS: [&str; 2] = ["commands", "specs"];

/// The line that runs a command's script, as the project wants scripts; `None` where the front matter has none.
pub(super) fn script_line(
    project: &SpeckitProject,
    text: &str,
    extension: Option<&str>,
) -> Result<Option<String>, SpeckitError> {
    let Some(front) = split_front_matter(text).0 else { return Ok(None) };
    let path = project.specify_path("templates");
    // A broken header costs its script and nothing else.
    let Ok(front) = confined::parse_yaml(&path, front) else { return Ok(None) };
    let Some(scripts) = front.get("scripts").and_then(|scripts| scripts.as_object()) else { return Ok(None) };
    let options = confined::read_specify_file(project, &project.specify_path("init-options.json"))?;
    let options: serde_json::Value =
        options.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let wanted = options.get("script").and_then(|script| script.as_str()).unwrap_or_default();
    let native = if cfg!(windows) { ["ps", "sh"] } else { ["sh", "ps"] };
    for variant in [wanted, native[0], native[1], "py"] {
        if let Some(line) = scripts.get(variant).and_then(|line| line.as_str()) {
            let line = rewrite_paths(line.trim(), &scripts_folder(extension));
            return Ok(Some(if variant == "py" { format!("python3 {line}") } else { line }));
        }
    }
    Ok(None)
}

/// What a model is given of a command's file.
pub(super) fn prompt_body(
    project: &SpeckitProject,
    text: &str,
    extension: Option<&str>,
    script: Option<&str>,
) -> Result<String, SpeckitError> {
    let mut body = split_front_matter(text).1.to_owned();
    if let Some(id) = extension {
        let folder = project.specify_path(EXTENSIONS).join(id);
        for name in confined::list_folders(project, &folder)? {
            if !NOT_OF_COMMANDS.contains(&name.as_str()) {
                body = rewrite_extension_paths(&body, &name, &format!(".specify/{EXTENSIONS}/{id}/{name}/"));
            }
        }
    }
    if let Some(script) = script {
        body = body.replace(SCRIPT, script);
    }
    let body = rewrite_paths(&body.replace(AGENT, "crow"), &scripts_folder(extension));
    Ok(rewrite_command_names(&body))
}

fn scripts_folder(extension: Option<&str>) -> String {
    match extension {
        Some(id) => format!(".specify/{EXTENSIONS}/{id}/scripts/"),
        None => ".specify/scripts/".to_owned(),
    }
}

/// Makes paths such as `scripts/x` and `../../templates/x` begin at the project's root.
fn rewrite_paths(text: &str, scripts: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, target)) = find_target(rest) {
        let before = &rest[..at];
        let end = at + target.len() + 1;
        match classify_path_start(before, out.is_empty()) {
            PathStart::Elsewhere => out.push_str(&rest[..end]),
            PathStart::Above(start) => {
                out.push_str(&before[..start]);
                out.push_str(&format!(".specify/{target}/"));
            }
            PathStart::Here(start) => {
                out.push_str(&before[..start]);
                let place = format!(".specify/{target}/");
                out.push_str(if target == "scripts" { scripts } else { &place });
            }
        }
        rest = &rest[end..];
    }
    out + rest
}

/// Where a path of a command begins, as seen from the folder it names.
enum PathStart {
    /// Two folders or more above the command's: the project's root.
    Above(usize),
    /// Where the command's folders are.
    Here(usize),
    /// In a longer path or word.
    Elsewhere,
}

fn find_target(text: &str) -> Option<(usize, &'static str)> {
    TARGETS.iter().filter_map(|target| Some((text.find(&format!("{target}/"))?, *target))).min()
}

fn classify_path_start(before: &str, is_first: bool) -> PathStart {
    let above = before.trim_end_matches("../");
    if before.len() - above.len() >= 2 * "../".len()
        && !above.ends_with(|last: char| last == '.' || last == '_' || last.is_alphanumeric())
    {
        return PathStart::Above(above.len());
    }
    for relative in ["./", "/", ""] {
        if let Some(head) = before.strip_suffix(relative)
            && ((head.is_empty() && is_first) || head.ends_with(is_boundary))
        {
            return PathStart::Here(head.len());
        }
    }
    PathStart::Elsewhere
}

fn is_boundary(last: char) -> bool {
    last.is_whitespace() || matches!(last, '`' | '"' | '\'' | '(' | '[' | '{' | '<' | '=')
}

/// Makes what stands in an extension's own folder begin at the project's root.
fn rewrite_extension_paths(text: &str, name: &str, place: &str) -> String {
    let folder = format!("{name}/");
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(&folder) {
        let before = &rest[..at];
        let head = before.strip_suffix("./").unwrap_or(before);
        let is_start = (head.is_empty() && out.is_empty())
            || head.ends_with(|last: char| last.is_whitespace() || matches!(last, '`' | '"' | '\'' | '('));
        out.push_str(if is_start { head } else { before });
        out.push_str(if is_start { place } else { &folder });
        rest = &rest[at + folder.len()..];
    }
    out + rest
}

/// Names commands as people type them.
fn rewrite_command_names(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(COMMAND) {
        let name = &rest[at + COMMAND.len()..];
        let is_of_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_' || c == '-';
        let n_bytes = name.find(|c| !is_of_name(c)).unwrap_or(name.len());
        let end =
            name[..n_bytes].rfind(COMMAND_END).filter(|_| name.starts_with(|c: char| c.is_ascii_uppercase()));
        out.push_str(&rest[..at]);
        match end {
            Some(end) => {
                out.push_str("/speckit.");
                out.push_str(&name[..end].to_ascii_lowercase().replace('_', "."));
                rest = &name[end + COMMAND_END.len()..];
            }
            None => {
                out.push_str(COMMAND);
                rest = name;
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests;
