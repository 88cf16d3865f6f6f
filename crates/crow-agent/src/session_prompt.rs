//! Renders the system prompt of a session: gathers what the template may show.

use crow_acp::SessionLocation;
use crow_core::{Failure, SessionId};
use crow_project::{INSTRUCTIONS_FILE, RenderedPrompt, SystemPromptFacts};

use crate::runtime::AgentConfig;

/// Nested instructions listed in a system prompt: every request contains their names.
const NESTED_MAX: usize = 50;

/// Renders the system prompt for a session. Blocks.
pub(crate) fn render_system_prompt(
    location: &SessionLocation,
    session: &SessionId,
    config: &AgentConfig,
    has_core_tools: bool,
    date: &str,
) -> Result<RenderedPrompt, Failure> {
    crow_project::render_system_prompt(&SystemPromptFacts {
        sources: &config.config_sources(),
        legacy_template: config.system_prompt_path.as_deref(),
        addition: config.system_prompt_addition.as_deref(),
        has_core_tools,
        session,
        cwd: &location.cwd,
        more_roots: &location.additional_directories,
        draw_tree: crow_tools::draw_tree,
        find_nested_instructions: |cwd| crow_tools::find_files_below(cwd, INSTRUCTIONS_FILE, NESTED_MAX),
        db_uri: &config.db_uri,
        table_schemas: crow_store::TABLES,
        date,
    })
}

#[cfg(test)]
mod tests;
