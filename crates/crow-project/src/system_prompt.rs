//! Renders the system prompt and the compaction prompt from the user's own template or the built-in one.

use std::path::{Path, PathBuf};

use crow_core::{Failure, FailureKind, SessionId, escape_hidden};
use minijinja::{Environment, UndefinedBehavior, context};
use sha2::{Digest as _, Sha256};

use crow_files::{AllowedRoot, read_bounded_text};

use crate::instructions;
use crate::scan::RepositoryLocation;
use crate::survey::{ConfigSources, known_skills};

const TEMPLATE: &str = include_str!("../prompts/system.jinja2");
/// For models with the core tools: small models do worse with more rules.
const CORE_TEMPLATE: &str = include_str!("../prompts/system_core.jinja2");
const TEMPLATE_NAME: &str = "system.jinja2";
/// Name in earlier versions.
const LEGACY_NAME: &str = "system_prompt.jinja2";

/// SHA-256 of the default templates that earlier versions wrote to disk, trimmed; such a file is not the user's own.
const LEGACY_DEFAULT_HASHES: [&str; 8] = [
    "3a475a6528e4d93accfd17fd723a9653bb952cd65d38689f2fcbae7248ca699b",
    "cb9c802960de827994fae385b16792ad1a14ea10a6f3995c9f62bde3d393c261",
    "0855015650e2b46d8b40fbda738b8df0e37944140835aea817f8cd2d65469748",
    "202d46ea7c74b94f7255715acf66efe5a4b59fe9617899efa7a91edc6387c46b",
    "c1de465073969218d27de871db114a7dc5eba0b8f91bd67f8b15cb1f4f8a9f54",
    "cc90419a972a5c6d855a625e5ab9c4704ce8d0d4c319e3bfaaa3fb280971c207",
    "83280c7d467575223b0916f5a6a7f7d240d1616a8222f72582ad144a20ee23ad",
    "1eb6a4a2d1cdfe4c4807e33afdf1a4bcd493e99353b1496dfad2fbd4e15946c9",
];

const COMPACT: &str = include_str!("../prompts/compact.jinja2");
const COMPACT_NAME: &str = "compact.jinja2";

/// Size of a user's template.
const TEMPLATE_BYTES_MAX: u64 = 1024 * 1024;

/// A system prompt with its template.
#[derive(Debug)]
pub struct RenderedPrompt {
    /// The text.
    pub text: String,
    /// The template that it was rendered from.
    pub template: String,
}

/// The facts of a system prompt.
#[derive(Debug)]
pub struct SystemPromptFacts<'a> {
    /// The places of the configuration.
    pub sources: &'a ConfigSources,
    /// Whether the model gets the core tools, for which there is a short built-in prompt.
    pub has_core_tools: bool,
    /// The configured template, as in earlier versions.
    pub legacy_template: Option<&'a Path>,
    /// Text after the rendered template.
    pub addition: Option<&'a str>,
    /// The session's name.
    pub session: &'a SessionId,
    /// The working directory.
    pub cwd: &'a Path,
    /// The additional directories.
    pub more_roots: &'a [PathBuf],
    /// Draws the files of a directory as a tree.
    pub draw_tree: fn(&Path) -> String,
    /// Finds the files named [`INSTRUCTIONS_FILE`](crate::INSTRUCTIONS_FILE) below a directory, by their paths there.
    pub find_nested_instructions: fn(&Path) -> Vec<String>,
    /// The address of the database, without the password.
    pub db_uri: &'a str,
    /// The tables that may be queried.
    pub table_schemas: &'a str,
    /// Today's date.
    pub date: &'a str,
}

/// Renders the system prompt for a session. Blocks. The built-in ones are equal in all sessions, so that providers find
/// them in their caches; the user's own may contain every fact.
pub fn render_system_prompt(facts: &SystemPromptFacts<'_>) -> Result<RenderedPrompt, Failure> {
    let prompts_dir = &facts.sources.prompts_dir;
    let (path, template, variables) = match find_own_template(prompts_dir, facts.legacy_template)? {
        Some((path, template)) => (path, template, template_variables(facts)),
        None => {
            let template = if facts.has_core_tools { CORE_TEMPLATE } else { TEMPLATE };
            (prompts_dir.join(TEMPLATE_NAME), template.to_owned(), context! {})
        }
    };
    // In a template of an earlier version an unknown name is empty, as it was.
    let unknown_names = match path == prompts_dir.join(TEMPLATE_NAME) {
        true => UndefinedBehavior::SemiStrict,
        false => UndefinedBehavior::Lenient,
    };
    let mut text = render_template(&path, &template, variables, unknown_names)?;
    if let Some(addition) = facts.addition {
        text = format!("{}\n\n{addition}\n", text.trim_end());
    }
    Ok(RenderedPrompt { text, template })
}

/// Returns the variables of the user's own template.
fn template_variables(facts: &SystemPromptFacts<'_>) -> minijinja::Value {
    let SystemPromptFacts { sources, cwd, more_roots, .. } = facts;
    let (display_tree, nested) = ((facts.draw_tree)(cwd), (facts.find_nested_instructions)(cwd));
    let agents_content =
        instructions::read_instructions(&RepositoryLocation::find(cwd), &sources.config_dir).text;
    // As in later Python versions, one entry per file.
    let agents_full = match agents_content.is_empty() {
        true => Vec::new(),
        false => vec![context! { path => "AGENTS.md", content => &agents_content }],
    };
    let agents_catalog: Vec<_> = nested.iter().map(|path| context! { path => path, preview => "" }).collect();
    let skills_dir = sources.config_dir.join("skills");
    let skills = known_skills(sources, cwd);
    let skills = skills.iter().map(|skill| {
        context! {
            name => &skill.name, description => escape_hidden(&skill.description), path => display_path(&skill.path),
        }
    });
    context! {
        workspace => display_path(cwd),
        additional_directories => more_roots.iter().map(|root| display_path(root)).collect::<Vec<_>>(),
        display_tree,
        agents_content,
        nested_agents => nested,
        agents_full,
        agents_catalog,
        skills => skills.collect::<Vec<_>>(),
        db_uri => facts.db_uri,
        table_schemas => facts.table_schemas,
        table_schema => facts.table_schemas,
        session_id => facts.session.as_str(),
        skills_dir => display_path(&skills_dir),
        skills_roots => vec![display_path(&skills_dir)],
        date => facts.date,
        platform => std::env::consts::OS,
    }
}

/// Finds the user's own template of the system prompt, under its current or an earlier name.
fn find_own_template(
    prompts_dir: &Path,
    legacy_template: Option<&Path>,
) -> Result<Option<(PathBuf, String)>, Failure> {
    let path = prompts_dir.join(TEMPLATE_NAME);
    if let Some(template) = read_template(&path)? {
        return Ok((template != TEMPLATE).then_some((path, template)));
    }
    let legacy_template = legacy_template.map(Path::to_owned);
    for path in legacy_template.into_iter().chain([prompts_dir.join(LEGACY_NAME)]) {
        match read_template(&path)? {
            Some(template) if !has_known_hash(&LEGACY_DEFAULT_HASHES, &template) => {
                return Ok(Some((path, template)));
            }
            Some(_) | None => {}
        }
    }
    Ok(None)
}

/// Whether a template has one of these hashes.
fn has_known_hash(hashes: &[&str], template: &str) -> bool {
    let hash: String = Sha256::digest(template.trim()).iter().map(|byte| format!("{byte:02x}")).collect();
    hashes.contains(&hash.as_str())
}

/// Renders the prompt for a compaction. Blocks.
pub fn render_compaction_prompt(prompts_dir: &Path, focus: &str) -> Result<String, Failure> {
    let path = prompts_dir.join(COMPACT_NAME);
    let template = read_template(&path)?.unwrap_or_else(|| COMPACT.to_owned());
    render_template(&path, &template, context! { focus }, UndefinedBehavior::SemiStrict)
}

/// Reads the user's own template, if there is one.
fn read_template(path: &Path) -> Result<Option<String>, Failure> {
    read_bounded_text(path, AllowedRoot::Anywhere, TEMPLATE_BYTES_MAX).map_err(|error| {
        let reason = format!("could not read the prompt template {}: {error}", path.display());
        Failure::new(FailureKind::Config, reason)
    })
}

/// Renders a template; the path is for errors. A misspelled name must not lose the project's instructions in silence.
fn render_template(
    path: &Path,
    template: &str,
    variables: minijinja::Value,
    unknown_names: UndefinedBehavior,
) -> Result<String, Failure> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(unknown_names);
    minijinja_contrib::add_to_environment(&mut environment);
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.render_str(template, variables).map_err(|error| {
        let reason = format!("could not render the prompt template {}: {error}", path.display());
        Failure::new(FailureKind::Config, reason)
    })
}

/// Formats a path as one line.
fn display_path(path: &Path) -> String {
    escape_hidden(&path.to_string_lossy())
}

#[cfg(test)]
mod tests;
