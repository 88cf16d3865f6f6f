//! What the model is told first: the facts of the place, or how to sum a conversation up, in the person's own template
//! or ours.

use std::path::{Path, PathBuf};

use crow_core::{Failure, FailureKind, visible};
use minijinja::{Environment, context};

use crate::instructions;
use crate::kit::KitSettings;
use crate::supplies::{Inside, known_skills, read_text};

const TEMPLATE: &str = include_str!("../prompts/system.jinja2");
const TEMPLATE_NAME: &str = "system.jinja2";

const COMPACT: &str = include_str!("../prompts/compact.jinja2");
const COMPACT_NAME: &str = "compact.jinja2";

/// Bytes of a person's own template.
const TEMPLATE_BYTES_MAX: u64 = 1024 * 1024;

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
            name => &skill.name, description => visible(&skill.description), path => shown(&skill.path),
        }
    });
    let facts = context! {
        workspace => shown(cwd),
        additional_directories => more_roots.iter().map(|root| shown(root)).collect::<Vec<_>>(),
        display_tree => crow_tools::draw_tree(cwd),
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
    let template = read_text(own, Inside::Anywhere, TEMPLATE_BYTES_MAX).map_err(|error| {
        let why = format!("The prompt template {} cannot be read: {error}.", own.display());
        Failure::new(FailureKind::Config, why)
    })?;
    let template = template.unwrap_or_else(|| ours.to_owned());
    let mut environment = Environment::new();
    minijinja_contrib::add_to_environment(&mut environment);
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.render_str(&template, facts).map_err(|error| {
        let why = format!("The prompt template {} does not render: {error}.", own.display());
        Failure::new(FailureKind::Config, why)
    })
}

/// Spells a path as one line.
fn shown(path: &Path) -> String {
    visible(&path.to_string_lossy())
}

#[cfg(test)]
mod tests;
