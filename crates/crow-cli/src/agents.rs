//! `crow-cli agents`: lists the agents that can be driven and checks that their programs exist.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use crow_children::OWN_AGENT;
use crow_core::{AgentServer, AgentTransport};
use serde_json::{Value, json};

use crate::{
    cli::AgentsArgs,
    failure::{CliError, CliExitCode},
    settings::{Environment, Settings, nearest_name},
    table,
};

/// The system's search path if `PATH` is not set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The environment and directory in which a program is looked up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProgramLookup<'a> {
    pub(crate) env: &'a Environment,
    pub(crate) cwd: &'a Path,
}

/// Lists Crow itself and the configured agents.
pub(crate) fn run(
    args: &AgentsArgs,
    settings: &Settings,
    env: &Environment,
    cwd: &Path,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let lookup = &ProgramLookup { env, cwd };
    let is_replaced = settings.agent_servers.iter().any(|server| server.name == OWN_AGENT);
    if args.json {
        let crow = (!is_replaced).then(|| json!({"name": OWN_AGENT, "kind": "built-in"}));
        let configured = settings.agent_servers.iter().map(|server| {
            let description = &settings.agent_descriptions[&server.name];
            match locate_program(server, lookup) {
                Some(found) => {
                    let found = found.is_some();
                    json!({"name": server.name, "kind": "program", "command": description, "found": found})
                }
                None if server.is_farm() => json!({"name": server.name, "kind": "queue", "url": description}),
                None => json!({"name": server.name, "kind": "socket", "url": description}),
            }
        });
        let agents: Vec<Value> = crow.into_iter().chain(configured).collect();
        return Ok(writeln!(out, "{}", json!({ "agents": agents }))?);
    }
    let header = ["NAME", "COMMAND OR URL", ""].map(str::to_owned);
    let crow = (!is_replaced).then(|| [OWN_AGENT, "(built in)", ""].map(str::to_owned));
    let configured = settings.agent_servers.iter().map(|server| {
        let note = match locate_program(server, lookup) {
            Some(None) => "not found",
            Some(Some(_)) | None => "",
        };
        [server.name.clone(), settings.agent_descriptions[&server.name].clone(), note.to_owned()]
    });
    table::write_table(out, std::iter::once(header).chain(crow).chain(configured))?;
    Ok(())
}

/// Finds a configured agent by name. `None` is Crow itself.
pub(crate) fn find_agent<'a>(
    name: &str,
    settings: &'a Settings,
) -> Result<Option<&'a AgentServer>, CliError> {
    let servers = &settings.agent_servers;
    match servers.iter().find(|server| server.name == name) {
        Some(server) => Ok(Some(server)),
        None if name == OWN_AGENT => Ok(None),
        None => {
            let names = std::iter::once(OWN_AGENT).chain(servers.iter().map(|server| server.name.as_str()));
            let suggestion = nearest_name(name, names.clone());
            let suggestion = suggestion.map(|name| format!("did you mean {name}? ")).unwrap_or_default();
            let error = CliError::new(CliExitCode::Usage, format!("unknown agent {name:?}"));
            Err(error.with_hint(format!(
                "{suggestion}configured agents: {}",
                names.collect::<Vec<_>>().join(", ")
            )))
        }
    }
}

/// Looks up the program of an agent; `None` if the agent is an address or a queue.
pub(crate) fn locate_program(server: &AgentServer, lookup: &ProgramLookup<'_>) -> Option<Option<PathBuf>> {
    match &server.transport {
        AgentTransport::Program { command, env, .. } => {
            let own_path = env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path);
            let path = own_path.or_else(|| lookup.env.get("PATH")).map_or(DEFAULT_PATH, String::as_str);
            Some(find_program(command, path, lookup.cwd))
        }
        AgentTransport::Socket { .. } | AgentTransport::Farm(_) => None,
    }
}

/// Finds a program as the system does: a plain name in the directories of `PATH`, a path with a slash as it is.
fn find_program(program: &str, path: &str, cwd: &Path) -> Option<PathBuf> {
    let is_program = |file: &PathBuf| crow_files::is_program(file);
    if program.contains('/') {
        return Some(cwd.join(program)).filter(is_program);
    }
    path.split(':').map(|dir| cwd.join(dir).join(program)).find(is_program)
}
