//! What the model is told first: the facts of the place, or how to sum a conversation up, in the person's own template
//! or ours.

use std::fs;
use std::path::{Path, PathBuf};

use crow_core::{Failure, FailureKind};
use ignore::WalkBuilder;
use minijinja::{Environment, context};

use crate::instructions;
use crate::kit::KitSettings;
use crate::supplies::known_skills;

const TEMPLATE: &str = include_str!("../prompts/system.jinja2");
const TEMPLATE_NAME: &str = "system.jinja2";

const COMPACT: &str = include_str!("../prompts/compact.jinja2");
const COMPACT_NAME: &str = "compact.jinja2";

/// Levels of the tree shown; deeper ones cost tokens in every request and are found by searching.
const TREE_DEPTH: usize = 3;

/// Entries of the tree shown, for the same reason.
const TREE_ENTRIES_MAX: usize = 200;

/// Renders the system prompt for a session that works in these folders, the first before the others. Reads files: keep
/// it off the loop.
pub(crate) fn render(
    (cwd, more_roots): (&Path, &[PathBuf]),
    settings: &KitSettings,
    date: &str,
) -> Result<String, Failure> {
    let skills = known_skills(settings, cwd);
    let skills = skills.iter().map(|skill| {
        context! {
            name => &skill.name, description => &skill.description, path => skill.path.display().to_string(),
        }
    });
    let facts = context! {
        workspace => cwd.display().to_string(),
        additional_directories => more_roots.iter().map(|root| root.display().to_string()).collect::<Vec<_>>(),
        display_tree => tree(cwd),
        agents_content => instructions::content(cwd, &settings.config_dir),
        nested_agents => instructions::nested(cwd),
        skills => skills.collect::<Vec<_>>(),
        db_uri => &settings.db_uri,
        table_schemas => crow_store::TABLES,
        date,
        platform => std::env::consts::OS,
    };
    rendered(&settings.prompts_dir.join(TEMPLATE_NAME), TEMPLATE, facts)
}

/// Renders what the model is told before it sums a conversation up. Reads files: keep it off the loop.
pub(crate) fn render_compact(settings: &KitSettings, focus: &str) -> Result<String, Failure> {
    rendered(&settings.prompts_dir.join(COMPACT_NAME), COMPACT, context! { focus })
}

/// Renders the person's own template, or ours where there is none.
fn rendered(own: &Path, ours: &str, facts: minijinja::Value) -> Result<String, Failure> {
    let template = fs::read_to_string(own).unwrap_or_else(|_| ours.to_owned());
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

#[cfg(test)]
mod tests;
