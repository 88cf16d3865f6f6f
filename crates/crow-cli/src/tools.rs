//! `crow-cli tools`: lists the tools that are available without any MCP server.

use std::io::Write;

use crow_tools::ToolRegistry;
use serde_json::json;

use crate::{agent, cli::ToolsArgs, failure::CliError, settings::Settings, table};

/// Lists the built-in tools.
pub(crate) fn run(args: &ToolsArgs, settings: &Settings, out: &mut impl Write) -> Result<(), CliError> {
    let builtin = ToolRegistry::with_builtin_tools(agent::builtin_tool_config(settings));
    let mut specs = builtin.tool_specs();
    specs.extend(crow_history::memory_specs());
    specs.extend(crow_children::task_specs(&settings.agent_servers));
    specs.extend(builtin.alternative_specs().into_iter().cloned());
    if args.json {
        let tools = specs.iter().map(
            |spec| json!({"name": spec.name, "description": spec.description, "parameters": spec.parameters}),
        );
        return Ok(writeln!(out, "{}", json!({ "tools": tools.collect::<Vec<_>>() }))?);
    }
    let header = ["NAME", "DESCRIPTION"].map(str::to_owned);
    let rows = specs.iter().map(|spec| [spec.name.clone(), first_sentence(&spec.description).to_owned()]);
    table::write_table(out, std::iter::once(header).chain(rows))?;
    Ok(())
}

fn first_sentence(text: &str) -> &str {
    text.split_once(". ").map_or(text.trim_end_matches('.'), |(first, _)| first)
}
