//! Renders the system prompt of a session: gathers what the template may show.

use std::path::{Path, PathBuf};

use crow_core::{Failure, SessionId};
use crow_project::{INSTRUCTIONS_FILE, RenderedPrompt, SystemPromptFacts};

use crate::runtime::AgentConfig;

/// Nested instructions listed in a system prompt: every request contains their names.
const NESTED_MAX: usize = 50;

/// Renders the system prompt for a session; the working directory comes before the additional ones. Blocks.
pub(crate) fn render_system_prompt(
    cwd: &Path,
    more_roots: &[PathBuf],
    session: &SessionId,
    config: &AgentConfig,
    date: &str,
) -> Result<RenderedPrompt, Failure> {
    crow_project::render_system_prompt(&SystemPromptFacts {
        sources: &config.config_sources(),
        legacy_template: config.system_prompt_path.as_deref(),
        addition: config.system_prompt_addition.as_deref(),
        session,
        cwd,
        more_roots,
        draw_tree: crow_tools::draw_tree,
        find_nested_instructions: |cwd| crow_tools::find_files_below(cwd, INSTRUCTIONS_FILE, NESTED_MAX),
        db_uri: &config.db_uri,
        table_schemas: crow_store::TABLES,
        date,
    })
}

#[cfg(test)]
mod tests;
