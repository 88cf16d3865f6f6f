//! `crow-cli agents`: the agents that can be driven, and whether the programs of those are there.

use std::{
    fs,
    io::Write,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use crow_core::{AgentServer, AgentTransport};
use serde_json::{Value, json};

use crate::{
    cli::AgentsArgs,
    failure::{CliError, CliExitCode},
    settings::{Environment, Settings, nearest_name},
    table,
};

/// What Crow itself is called among the agents.
pub(crate) const OURSELVES: &str = "crow";

/// Where the system looks for programs when nobody says.
const PATH_UNSAID: &str = "/bin:/usr/bin";

/// From where a program is looked for.
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
    let place = &ProgramLookup { env, cwd };
    let is_replaced = settings.agent_servers.iter().any(|server| server.name == OURSELVES);
    if args.json {
        let ourselves = (!is_replaced).then(|| json!({"name": OURSELVES, "kind": "built-in"}));
        let others = settings.agent_servers.iter().map(|server| {
            let written = &settings.agents_written[&server.name];
            match locate_program(server, place) {
                Some(found) => {
                    let found = found.is_some();
                    json!({"name": server.name, "kind": "program", "command": written, "found": found})
                }
                None => json!({"name": server.name, "kind": "socket", "url": written}),
            }
        });
        let agents: Vec<Value> = ourselves.into_iter().chain(others).collect();
        return Ok(writeln!(out, "{}", json!({ "agents": agents }))?);
    }
    let header = ["NAME", "REACHED BY", ""].map(str::to_owned);
    let ourselves = (!is_replaced).then(|| [OURSELVES, "itself", "built in"].map(str::to_owned));
    let others = settings.agent_servers.iter().map(|server| {
        let note = match locate_program(server, place) {
            Some(None) => "not found",
            Some(Some(_)) | None => "",
        };
        [server.name.clone(), settings.agents_written[&server.name].clone(), note.to_owned()]
    });
    table::write_table(out, std::iter::once(header).chain(ourselves).chain(others))?;
    Ok(())
}

/// Finds a configured agent. Nothing stands for Crow itself.
pub(crate) fn find_agent<'a>(
    name: &str,
    settings: &'a Settings,
) -> Result<Option<&'a AgentServer>, CliError> {
    let servers = &settings.agent_servers;
    match servers.iter().find(|server| server.name == name) {
        Some(server) => Ok(Some(server)),
        None if name == OURSELVES => Ok(None),
        None => {
            let known = std::iter::once(OURSELVES).chain(servers.iter().map(|server| server.name.as_str()));
            let meant = nearest_name(name, known.clone());
            let meant = meant.map(|name| format!("did you mean {name}? ")).unwrap_or_default();
            let exit =
                CliError::new(CliExitCode::Usage, format!("there is no agent {name:?} in agent_servers"));
            Err(exit.with_hint(format!("{meant}there is: {}", known.collect::<Vec<_>>().join(", "))))
        }
    }
}

/// Looks for the program of an agent that is one.
pub(crate) fn locate_program(server: &AgentServer, place: &ProgramLookup<'_>) -> Option<Option<PathBuf>> {
    match &server.reach {
        AgentTransport::Program { command, env, .. } => {
            let own = env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path);
            let path = own.or_else(|| place.env.get("PATH")).map_or(PATH_UNSAID, String::as_str);
            Some(find_program(command, path, place.cwd))
        }
        AgentTransport::Socket { .. } => None,
    }
}

/// Finds a program as the system does: a name in the folders of `PATH`, anything with a slash where it says.
fn find_program(program: &str, path: &str, cwd: &Path) -> Option<PathBuf> {
    let runs = |file: &PathBuf| {
        fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return Some(cwd.join(program)).filter(runs);
    }
    path.split(':').map(|folder| cwd.join(folder).join(program)).find(runs)
}
