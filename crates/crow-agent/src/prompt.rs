//! The system prompt: the facts of the place, in the person's own template or ours.

use std::fs;
use std::path::{Path, PathBuf};

use crow_core::{Failure, FailureKind};
use ignore::WalkBuilder;
use minijinja::{Environment, context};

const TEMPLATE: &str = include_str!("../prompts/system.jinja2");
const TEMPLATE_NAME: &str = "system.jinja2";

/// Levels of the tree shown; deeper ones cost tokens in every request and are found by searching.
const TREE_DEPTH: usize = 3;

/// Entries of the tree shown, for the same reason.
const TREE_ENTRIES_MAX: usize = 200;

/// Bytes of all AGENTS.md files together; longer ones are cut, since every request carries them.
const AGENTS_BYTES_MAX: usize = 64 * 1024;

/// Renders the system prompt for a session that works in these folders, the first before the others. Reads files: keep
/// it off the loop.
pub(crate) fn render(
    (cwd, more_roots): (&Path, &[PathBuf]),
    prompts_dir: &Path,
    date: &str,
) -> Result<String, Failure> {
    let own = prompts_dir.join(TEMPLATE_NAME);
    let template = fs::read_to_string(&own).unwrap_or_else(|_| TEMPLATE.to_owned());
    let facts = context! {
        workspace => cwd.display().to_string(),
        additional_directories => more_roots.iter().map(|root| root.display().to_string()).collect::<Vec<_>>(),
        display_tree => tree(cwd),
        agents_content => agents_content(cwd),
        date,
        platform => std::env::consts::OS,
    };
    let mut environment = Environment::new();
    minijinja_contrib::add_to_environment(&mut environment);
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.render_str(&template, facts).map_err(|error| {
        let why = format!("The prompt template {} does not render: {error}.", own.display());
        Failure::new(FailureKind::Config, why)
    })
}

/// Draws the folder, two spaces a level, folders with a slash.
fn tree(cwd: &Path) -> String {
    let mut walk = WalkBuilder::new(cwd);
    walk.max_depth(Some(TREE_DEPTH)).require_git(false).sort_by_file_name(std::cmp::Ord::cmp);
    let entries = walk.build().filter_map(Result::ok).skip(1);
    let mut lines: Vec<String> = entries
        .take(TREE_ENTRIES_MAX + 1)
        .map(|entry| {
            let slash = if entry.file_type().is_some_and(|kind| kind.is_dir()) { "/" } else { "" };
            let name = entry.file_name().to_string_lossy();
            format!("{}{name}{slash}", "  ".repeat(entry.depth().saturating_sub(1)))
        })
        .collect();
    if lines.len() > TREE_ENTRIES_MAX {
        lines.truncate(TREE_ENTRIES_MAX);
        lines.push("… and more".into());
    }
    lines.join("\n")
}

/// Gathers AGENTS.md from the repository's root down to `cwd`, the nearest last so that it has the last word.
fn agents_content(cwd: &Path) -> String {
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in cwd.ancestors() {
        files.push(folder.join("AGENTS.md"));
        if folder.join(".git").exists() {
            break;
        }
    }
    let is_repository =
        files.last().and_then(|file| file.parent()).is_some_and(|root| root.join(".git").exists());
    if !is_repository {
        files.truncate(1);
    }
    let texts = files.iter().rev().filter_map(|file| fs::read_to_string(file).ok());
    let mut content = texts.collect::<Vec<_>>().join("\n\n");
    if content.len() > AGENTS_BYTES_MAX {
        content.truncate(content.floor_char_boundary(AGENTS_BYTES_MAX));
        content.push_str("\n… cut");
    }
    content
}

#[cfg(test)]
mod tests;
