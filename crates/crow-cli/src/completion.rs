//! Shell completion. The static script knows commands and options; the dynamic one runs this program for each
//! completion, which also lists sessions, models and agents. Never creates a file and never waits for a network.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, CompletionCandidate, Shell};
use crow_store::{CreatorFilter, DatabaseAddress, ListQuery, SessionRow};

use crate::agent;
use crate::cli::{Cli, CompletionsArgs};
use crate::database::own_store_options;
use crate::failure::{CliError, CliExitCode};
use crate::settings::{self, Settings};

/// The variable by which the dynamic script asks for candidates.
const REQUEST_VARIABLE: &str = "CROW_COMPLETE";

const PROGRAM: &str = "crow-cli";

/// Sessions to offer. People continue recent ones, and a longer list cannot be read in a shell.
const SESSIONS_MAX: u32 = 50;

/// Writes the script of a shell.
pub(crate) fn write_script(args: &CompletionsArgs, out: &mut impl Write) -> Result<(), CliError> {
    // The generators panic on write errors.
    let mut script = Vec::new();
    match args.dynamic {
        true => write_dynamic_script(args.shell, &mut script)?,
        false => clap_complete::generate(args.shell, &mut Cli::command(), PROGRAM, &mut script),
    }
    Ok(out.write_all(&script)?)
}

fn write_dynamic_script(shell: Shell, script: &mut Vec<u8>) -> Result<(), CliError> {
    let name = shell.to_string();
    let shells = Shells::builtins();
    let Some(completer) = shells.completer(&name) else {
        let error = CliError::new(CliExitCode::Usage, format!("{name} has no dynamic completion"));
        return Err(error.with_hint("leave out --dynamic"));
    };
    Ok(completer.write_registration(REQUEST_VARIABLE, PROGRAM, PROGRAM, PROGRAM, script)?)
}

/// Answers a request of the dynamic script, if this process was started for one.
pub(crate) fn answer_request() -> Option<ExitCode> {
    let request = CompleteEnv::with_factory(Cli::command).var(REQUEST_VARIABLE).bin(PROGRAM);
    match request.try_complete(std::env::args_os(), None) {
        Ok(false) => None,
        Ok(true) => Some(ExitCode::SUCCESS),
        Err(error) => {
            // A closed stderr is not an error.
            let _ = writeln!(io::stderr(), "error: could not complete: {error}");
            Some(ExitCode::FAILURE)
        }
    }
}

/// Returns the newest sessions, described by their titles.
pub(crate) fn list_sessions() -> Vec<CompletionCandidate> {
    let rows = load_settings().and_then(|settings| read_sessions(&settings.database)).unwrap_or_default();
    let candidate =
        |row: SessionRow| CompletionCandidate::new(row.id.as_str()).help(row.title.map(Into::into));
    rows.into_iter().map(candidate).collect()
}

/// Returns the configured models.
pub(crate) fn list_models() -> Vec<CompletionCandidate> {
    let names =
        |settings: Settings| settings.models.into_iter().map(|model| CompletionCandidate::new(model.name));
    load_settings().map(|settings| names(settings).collect()).unwrap_or_default()
}

/// Returns Crow and the configured agents.
pub(crate) fn list_agents() -> Vec<CompletionCandidate> {
    let servers = load_settings().map(|settings| settings.agent_servers).unwrap_or_default();
    let names = servers.into_iter().map(|server| server.name).filter(|name| name != crow_children::OWN_AGENT);
    std::iter::once(crow_children::OWN_AGENT.to_owned()).chain(names).map(CompletionCandidate::new).collect()
}

/// Loads the settings in silence: a shell that completes has no place for a warning.
fn load_settings() -> Option<Settings> {
    let env = settings::read_environment();
    let requested = env.get("CROW_CONFIG_DIR").map(Into::into);
    let dir = settings::config_dir(requested, &env).ok()?;
    Some(Settings::load(&dir, &env).ok()?.0)
}

/// Reads the newest sessions of a file; a database server could keep the shell waiting.
fn read_sessions(database: &DatabaseAddress) -> Option<Vec<SessionRow>> {
    let DatabaseAddress::File(_) = database else { return None };
    let query = ListQuery { cwd: None, creator: CreatorFilter::User, before: None, limit: SESSIONS_MAX };
    let read =
        async { own_store_options().open_existing(database).await.ok()??.list_sessions(query).await.ok() };
    agent::tokio_runtime().ok()?.block_on(read)
}
