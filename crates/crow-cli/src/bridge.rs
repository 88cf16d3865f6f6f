//! `crow-cli acp-bridge`: serves an agent that uses stdin and stdout to clients over WebSocket and HTTP, one process per
//! client.

mod arguments;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use crow_acp::{AgentExit, AgentLauncher, CloseReason, LineTransport, SplicePeer, splice_transports};
use crow_process::{CommandSpec, ExitReason, SandboxDefaults, SandboxWrapper};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::Level;

use crate::{
    agent,
    cli::BridgeArgs,
    failure::{CliError, CliExitCode},
    log::{self, LogVerbosity, StderrLogging},
    settings::Environment,
    socket::{self, ListenAddress, ListenOptions, PATH},
    token::ServerToken,
};

/// The default address, reachable from this machine only.
const HOST: &str = "127.0.0.1";

/// Time a client has to read the rest of the output if a descendant of the agent keeps stdout open.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves until the process is told to stop.
pub(crate) fn run(
    args: BridgeArgs,
    dir: &Path,
    verbosity: LogVerbosity,
    env: &Environment,
    current_dir: &Path,
) -> Result<(), CliError> {
    let (options, command_line) = arguments::split_arguments(args).unwrap_or_else(|error| error.exit());
    let command =
        CommandSpec { env: options.env, ..agent_command(command_line, options.cwd, env, current_dir)? };
    let log = match options.log_file {
        Some(file) => check_log_file(&current_dir.join(file))?,
        None => log::default_log_file(dir),
    };
    log::start_logging_to(log, verbosity, StderrLogging::Programs(options.log.unwrap_or(Level::INFO)));
    let token = match options.no_token {
        true => None,
        false => Some(ServerToken::load_or_create(dir, "acp-bridge", options.token_file.as_deref())?),
    };
    let path = match options.path.as_deref() {
        Some("*") => None,
        path => Some(path.unwrap_or(PATH).to_owned()),
    };
    let listen_options = ListenOptions { token, path, origins: options.allow_origin };
    let host = options.host.unwrap_or_else(|| HOST.to_owned());
    let listen_address = ListenAddress { host, port: options.port.unwrap_or_default() };
    // The user typed the command, so it is not confined, only supervised.
    let sandbox = agent::agent_info().program.map(|exe| SandboxWrapper::new(exe, SandboxDefaults::default()));
    let launcher = AgentLauncher::new(sandbox);
    let client_launcher = launcher.clone();
    let runtime = agent::tokio_runtime()?;
    let result = runtime.block_on(socket::serve_clients(
        &listen_address,
        &listen_options,
        move |transport, cancel| serve_client(transport, client_launcher.clone(), command.clone(), cancel),
    ));
    launcher.kill_all();
    runtime.shutdown_background();
    result
}

/// Checks the program before the address is announced.
fn agent_command(
    command_line: Vec<String>,
    cwd: Option<PathBuf>,
    env: &Environment,
    current_dir: &Path,
) -> Result<CommandSpec, CliError> {
    let cwd = cwd.map_or_else(|| current_dir.to_owned(), |cwd| current_dir.join(cwd));
    let cwd = crate::require_existing_dir(&cwd).map(|_| cwd)?;
    let mut args = command_line.into_iter();
    let program = args.next().unwrap_or_default();
    let found = if program.contains('/') {
        Some(current_dir.join(&program))
    } else {
        let search_path = env.get("PATH").map(String::as_str).unwrap_or_default();
        std::env::split_paths(search_path)
            .map(|dir| current_dir.join(dir).join(&program))
            .find(|path| crow_files::is_program(path))
    };
    let found = found
        .filter(|path| crow_files::is_program(path))
        .and_then(|path| path.into_os_string().into_string().ok());
    let Some(found) = found else {
        let error = CliError::new(CliExitCode::Usage, format!("the program {program} was not found"));
        return Err(error.with_hint("give the command that starts the agent, such as `acp-bridge codex-acp`"));
    };
    Ok(CommandSpec { program: found, args: args.collect(), cwd, env: Vec::new(), env_removed: Vec::new() })
}

/// Checks that the log file is writable.
fn check_log_file(path: &Path) -> Result<PathBuf, CliError> {
    match crow_files::private_file_options().append(true).create(true).open(path) {
        Ok(_) => Ok(path.to_owned()),
        Err(error) => Err(CliError::new(
            CliExitCode::Failed,
            format!("could not write the log {}: {error}", path.display()),
        )),
    }
}

/// Starts an agent for one client and forwards messages until either side ends.
async fn serve_client(
    transport: LineTransport,
    launcher: AgentLauncher,
    command: CommandSpec,
    cancel: CancellationToken,
) -> CloseReason {
    let name = command.program.rsplit('/').next().unwrap_or_default().to_owned();
    let (agent_lines, mut program) = match launcher.start(&name, command).await {
        Ok(started) => started,
        Err(error) => {
            tracing::warn!(%error, "could not start the agent");
            let how = "the agent could not be started".to_owned();
            return CloseReason::AgentEnded { summary: how, stderr: error.to_string() };
        }
    };
    tracing::info!(name, "a client connected");
    let ended_by = {
        let mut splice = Box::pin(splice_transports(transport, agent_lines));
        tokio::select! {
            left = &mut splice => Some(left),
            _ = program.wait_for_exit() => Some(timeout(DRAIN_TIMEOUT, splice).await.unwrap_or(SplicePeer::Agent)),
            () = cancel.cancelled() => None,
        }
    };
    let exit = program.shut_down().await;
    let close_reason = match ended_by {
        Some(SplicePeer::Client) => CloseReason::Normal,
        Some(SplicePeer::Agent) => {
            CloseReason::AgentEnded { summary: describe_end(&exit), stderr: exit_output(exit) }
        }
        None => CloseReason::GoingAway,
    };
    tracing::info!(name, ?ended_by, "a client disconnected");
    close_reason
}

fn describe_end(exit: &AgentExit) -> String {
    match exit.exit {
        Some(ExitReason::Exited(code)) => format!("the agent exited with code {code}"),
        Some(ExitReason::Signalled(signal)) => format!("the agent was killed by signal {signal}"),
        Some(ExitReason::TimedOut | ExitReason::Cancelled) | None => "the agent exited".to_owned(),
    }
}

/// Returns the output that best explains the exit.
fn exit_output(exit: AgentExit) -> String {
    if exit.stderr.is_empty() { exit.stray_line.unwrap_or_default() } else { exit.stderr }
}
