//! Drives an agent of `agent_servers`: starts its program or connects to its address, reports how it ended, and cleans
//! up.

use std::time::Duration;

use crow_acp::{AgentExit, AgentLauncher};
use crow_core::{AgentServer, AgentTransport, Failure, FailureKind};
use crow_process::{CommandSpec, ExitReason};
use tokio::time::{Instant, timeout};

use super::{
    conversation::{ConnectionLoss, ConversationEnd, run_conversation},
    interrupts::listen_for_signals,
    plain::to_one_line,
    plan::RunPlan,
};
use crate::{
    agent,
    agents::{self, ProgramLookup},
    failure::{CliError, CliExitCode},
    settings::Settings,
};

/// Time an agent has to exit after closing its output: the exit code says more than the closed pipe.
const EXIT_WAIT: Duration = Duration::from_millis(500);

/// Timeout for connecting to an agent on another machine.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Lines of an agent's stderr in an error; the log has the rest.
const STDERR_LINES_SHOWN: usize = 3;

/// Runs the plan with another agent.
pub(super) async fn drive_external_agent(
    plan: RunPlan,
    server: &AgentServer,
    lookup: &ProgramLookup<'_>,
    settings: &Settings,
) -> Result<(), CliError> {
    match &server.transport {
        AgentTransport::Program { command, args, env } => {
            if agents::locate_program(server, lookup).flatten().is_none() {
                return Err(missing_program_error(server, command));
            }
            let command = CommandSpec {
                program: command.clone(),
                args: args.clone(),
                cwd: lookup.cwd.to_owned(),
                env: env.clone(),
                env_removed: settings.secret_variables.clone(),
            };
            drive_program(plan, &server.name, command, &AgentLauncher::new(agent::sandbox_wrapper(settings)))
                .await
        }
        AgentTransport::Socket { url, headers } => drive_over_socket(plan, &server.name, url, headers).await,
    }
}

/// Drives an agent over WebSocket or HTTP. Its exit is not visible here; the failure has its last message.
async fn drive_over_socket(
    plan: RunPlan,
    name: &str,
    url: &str,
    headers: &[(String, String)],
) -> Result<(), CliError> {
    let mut early_signals = listen_for_signals()?;
    let transport = tokio::select! {
        biased;
        lines = crow_acp::connect_socket(url, headers, Instant::now() + CONNECT_TIMEOUT) => lines,
        _ = early_signals.next_request() => return Err(CliError::without_message(CliExitCode::Interrupted)),
    };
    let transport = transport.map_err(|error| {
        CliError::new(CliExitCode::Failed, format!("the agent {name} cannot be reached: {error}"))
    })?;
    match run_conversation(plan, transport, early_signals).await? {
        ConversationEnd::Completed(result) => result,
        ConversationEnd::Disconnected(loss) => {
            let (phase, reason) = (loss.phase(), to_clause(&loss.failure().message));
            Err(CliError::new(
                CliExitCode::Failed,
                to_one_line(&format!("the connection to the agent {name} was lost {phase}: {reason}")),
            ))
        }
    }
}

fn missing_program_error(server: &AgentServer, command: &str) -> CliError {
    let name = &server.name;
    let error = CliError::new(
        CliExitCode::Failed,
        format!("the agent {name} could not be started: {command} was not found"),
    );
    error.with_hint(format!("install it, or give its path in agent_servers.{name}.command"))
}

async fn drive_program(
    plan: RunPlan,
    name: &str,
    command: CommandSpec,
    launcher: &AgentLauncher,
) -> Result<(), CliError> {
    let early_signals = listen_for_signals()?;
    let started = launcher.start(name, command).await;
    let (transport, mut program) = started.map_err(|error| {
        CliError::new(CliExitCode::Failed, format!("the agent {name} could not be started: {error}"))
    })?;
    let loss = match run_conversation(plan, transport, early_signals).await? {
        ConversationEnd::Completed(result) => {
            program.shut_down().await;
            return result;
        }
        ConversationEnd::Disconnected(loss) => loss,
    };
    // If we disconnect first, the exit code means nothing.
    let exit_reason = match loss.failure().kind == FailureKind::Connection {
        true => timeout(EXIT_WAIT, program.wait_for_exit()).await.ok().flatten(),
        false => None,
    };
    let exit = program.shut_down().await;
    Err(agent_lost_error(name, &loss, exit_reason, &exit))
}

/// Describes on one line how an agent ended and its last output.
fn agent_lost_error(
    name: &str,
    loss: &ConnectionLoss,
    exit_reason: Option<ExitReason>,
    exit: &AgentExit,
) -> CliError {
    let phase = loss.phase();
    let mut text = match exit_reason {
        Some(ExitReason::Exited(code)) => format!("the agent {name} exited {phase} with code {code}"),
        Some(ExitReason::Signalled(signal)) => {
            format!("the agent {name} was killed {phase} by signal {signal}")
        }
        Some(ExitReason::TimedOut | ExitReason::Cancelled) | None => {
            let reason = to_clause(&loss.failure().message);
            format!("the agent {name} cannot be used: {reason}")
        }
    };
    let lines: Vec<&str> = exit.stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last_lines = &lines[lines.len().saturating_sub(STDERR_LINES_SHOWN)..];
    let is_in_message = |stray: &str| {
        let Failure { kind, message: sentence } = loss.failure();
        *kind == FailureKind::Protocol && sentence.contains(stray)
    };
    match (last_lines, &exit.stray_line) {
        ([], Some(stray)) if !is_in_message(stray) => {
            text += &format!("; it printed {stray:?}, which is not a protocol message");
        }
        ([], _) => {}
        (last_lines, _) => text += &format!("; its stderr: {}", last_lines.join("; ")),
    }
    let error = CliError::new(CliExitCode::Failed, to_one_line(&text));
    error.with_hint(format!(
        "check that agent_servers.{name} starts an ACP agent; `crow-cli -v` shows all of its output"
    ))
}

/// Turns a sentence into a clause.
fn to_clause(sentence: &str) -> String {
    let mut letters = sentence.trim_end_matches('.').chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}
