//! `crow-cli acp-bridge`: any agent that speaks on stdin and stdout, for clients over WebSocket; one program for each.

mod words;

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use crow_acp::{AgentEnd, Farewell, Launcher, Left, Lines, splice};
use crow_process::{Command, Ended, StandingRules, Warden};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::Level;

use crate::{
    agent,
    cli::BridgeArgs,
    failure::{Code, Exit},
    log::{self, Complaints, Volume},
    settings::Environment,
    socket::{self, Entrance, PATH, Place},
    token::Key,
};

/// Where only this machine reaches it.
const HOST: &str = "127.0.0.1";

/// How long a client may take to read what an agent said last, when something of the agent holds its output open.
const LAST_LINES: Duration = Duration::from_secs(10);

/// Serves until the system asks for the end.
pub(crate) fn run(
    args: BridgeArgs,
    (dir, volume): (&Path, Volume),
    env: &Environment,
    here: &Path,
) -> Result<(), Exit> {
    let (options, words) = words::sorted(args).unwrap_or_else(|wrong| wrong.exit());
    let command = Command { env: options.env, ..command(words, options.cwd, env, here)? };
    let log = match options.log_file {
        Some(file) => usable(&here.join(file))?,
        None => log::usual_file(dir),
    };
    log::start_in(log, volume, Complaints::OfPrograms(options.log.unwrap_or(Level::INFO)));
    let key = match options.no_token {
        true => None,
        false => Some(Key::of(dir, "acp-bridge", options.token_file.as_deref())?),
    };
    let path = match options.path.as_deref() {
        Some("*") => None,
        path => Some(path.unwrap_or(PATH).to_owned()),
    };
    let entrance = Entrance { key, path, origins: options.allow_origin };
    let host = options.host.unwrap_or_else(|| HOST.to_owned());
    let place = Place { host, port: options.port.unwrap_or_default() };
    // What the person typed may do what the person may; only its end is watched over.
    let warden = agent::about().program.map(|exe| Warden::new(exe, StandingRules::default()));
    let launcher = Launcher::new(warden);
    let agents = launcher.clone();
    let runtime = agent::runtime()?;
    let served = runtime.block_on(socket::serve(&place, &entrance, move |lines, cut| {
        serve(lines, agents.clone(), command.clone(), cut)
    }));
    launcher.stop();
    runtime.shutdown_background();
    served
}

/// Makes sure of the program before anybody is told where to come.
fn command(
    words: Vec<String>,
    cwd: Option<PathBuf>,
    env: &Environment,
    here: &Path,
) -> Result<Command, Exit> {
    let cwd = cwd.map_or_else(|| here.to_owned(), |cwd| here.join(cwd));
    if !cwd.is_dir() {
        return Err(Exit::new(Code::Usage, format!("there is no folder {}", cwd.display())));
    }
    let cwd = crate::text_folder(crow_tools::resolve(&cwd)).map(|_| cwd)?;
    let mut args = words.into_iter();
    let program = args.next().unwrap_or_default();
    let found = if program.contains('/') {
        Some(here.join(&program))
    } else {
        let folders = env.get("PATH").map(String::as_str).unwrap_or_default();
        std::env::split_paths(folders).map(|folder| here.join(folder).join(&program)).find(is_program)
    };
    let found = found.filter(is_program).and_then(|path| path.into_os_string().into_string().ok());
    let Some(found) = found else {
        let exit = Exit::new(Code::Usage, format!("there is no program {program}"));
        return Err(exit.with_hint("name the command that starts the agent, such as `acp-bridge codex-acp`"));
    };
    Ok(Command { program: found, args: args.collect(), cwd, env: Vec::new(), env_removed: Vec::new() })
}

fn is_program(path: &PathBuf) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Makes sure that the log can be written.
fn usable(log: &Path) -> Result<PathBuf, Exit> {
    match OpenOptions::new().append(true).create(true).mode(0o600).open(log) {
        Ok(_) => Ok(log.to_owned()),
        Err(error) => {
            Err(Exit::new(Code::Failed, format!("could not write the log {}: {error}", log.display())))
        }
    }
}

/// Starts an agent for one client and passes on what they say until either leaves.
async fn serve(lines: Lines, launcher: Launcher, command: Command, cut: CancellationToken) -> Farewell {
    let name = command.program.rsplit('/').next().unwrap_or_default().to_owned();
    let (agent_lines, mut program) = match launcher.start(&name, command).await {
        Ok(started) => started,
        Err(error) => {
            tracing::warn!(%error, "could not start the agent");
            let how = "the agent could not be started".to_owned();
            return Farewell::AgentEnded { how, words: error.to_string() };
        }
    };
    tracing::info!(name, "a client came");
    let left = {
        let mut passing_on = Box::pin(splice(lines, agent_lines));
        tokio::select! {
            left = &mut passing_on => Some(left),
            _ = program.ended() => Some(timeout(LAST_LINES, passing_on).await.unwrap_or(Left::Agent)),
            () = cut.cancelled() => None,
        }
    };
    let end = program.end().await;
    let farewell = match left {
        Some(Left::Client) => Farewell::Over,
        Some(Left::Agent) => Farewell::AgentEnded { how: how(&end), words: words(end) },
        None => Farewell::GoingAway,
    };
    tracing::info!(name, ?left, "a client is done");
    farewell
}

fn how(end: &AgentEnd) -> String {
    match end.ended {
        Some(Ended::Exited(code)) => format!("the agent ended with exit code {code}"),
        Some(Ended::Signalled(signal)) => format!("the agent was ended by signal {signal}"),
        Some(Ended::TimedOut | Ended::Cancelled) | None => "the agent ended".to_owned(),
    }
}

/// What tells most about why it ended.
fn words(end: AgentEnd) -> String {
    if end.stderr.is_empty() { end.stray.unwrap_or_default() } else { end.stderr }
}
