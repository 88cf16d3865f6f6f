//! Drives an agent of `agent_servers` instead of our own: starts its program or goes to its address, tells how it went,
//! and leaves nothing of it behind.

use std::time::Duration;

use crow_acp::{AgentExit, AgentLauncher};
use crow_core::{AgentServer, AgentTransport, Failure, FailureKind};
use crow_process::{CommandSpec, ExitReason};
use tokio::time::{Instant, timeout};

use super::{
    ConnectionLoss, ConversationEnd, RunPlan, plain::to_one_line, run_conversation, signals::SignalListener,
};
use crate::{
    agent,
    agents::{self, ProgramLookup},
    failure::{CliError, CliExitCode},
    settings::Settings,
};

/// How long an agent that hangs up may take to end: how it ended says more than that it hung up.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How long the way to an agent elsewhere may take; beyond it nobody is there.
const CONNECT_WITHIN: Duration = Duration::from_secs(30);

/// Of what an agent complained of, so many lines stand in an error; the log has the rest.
const LINES_SHOWN: usize = 3;

/// Goes through the plan with another agent.
pub(super) async fn drive_external_agent(
    plan: RunPlan,
    server: &AgentServer,
    place: &ProgramLookup<'_>,
    settings: &Settings,
) -> Result<(), CliError> {
    match &server.reach {
        AgentTransport::Program { command, args, env } => {
            if agents::locate_program(server, place).flatten().is_none() {
                return Err(missing_program_error(server, command));
            }
            let command = CommandSpec {
                program: command.clone(),
                args: args.clone(),
                cwd: place.cwd.to_owned(),
                env: env.clone(),
                env_removed: settings.secret_variables.clone(),
            };
            drive_program(plan, &server.name, command, &AgentLauncher::new(agent::sandbox_wrapper(settings)))
                .await
        }
        AgentTransport::Socket { url, headers } => drive_over_socket(plan, &server.name, url, headers).await,
    }
}

/// Talks to an agent elsewhere. How it ended is its own affair; what it says at the end stands in the failure.
async fn drive_over_socket(
    plan: RunPlan,
    name: &str,
    url: &str,
    headers: &[(String, String)],
) -> Result<(), CliError> {
    let mut early = SignalListener::listen()?;
    let lines = tokio::select! {
        biased;
        lines = crow_acp::connect_socket(url, headers, Instant::now() + CONNECT_WITHIN) => lines,
        _ = early.next_request() => return Err(CliError::without_message(CliExitCode::Interrupted)),
    };
    let lines = lines.map_err(|error| {
        CliError::new(CliExitCode::Failed, format!("the agent {name} cannot be reached: {error}"))
    })?;
    match run_conversation(plan, lines, early).await? {
        ConversationEnd::Through(done) => done,
        ConversationEnd::Broken(broken) => {
            let (when, why) = (broken.phase(), to_clause(&broken.failure().sentence));
            Err(CliError::new(
                CliExitCode::Failed,
                to_one_line(&format!("the agent {name} was lost {when}: {why}")),
            ))
        }
    }
}

fn missing_program_error(server: &AgentServer, command: &str) -> CliError {
    let name = &server.name;
    let exit = CliError::new(
        CliExitCode::Failed,
        format!("the agent {name} cannot be started: there is no {command}"),
    );
    exit.with_hint(format!("install it, or name its path in agent_servers.{name}.command"))
}

async fn drive_program(
    plan: RunPlan,
    name: &str,
    command: CommandSpec,
    launcher: &AgentLauncher,
) -> Result<(), CliError> {
    let early = SignalListener::listen()?;
    let started = launcher.start(name, command).await;
    let (lines, mut program) = started.map_err(|error| {
        CliError::new(CliExitCode::Failed, format!("the agent {name} cannot be started: {error}"))
    })?;
    let broken = match run_conversation(plan, lines, early).await? {
        ConversationEnd::Through(done) => {
            program.shut_down().await;
            return done;
        }
        ConversationEnd::Broken(broken) => broken,
    };
    // Of what we hang up on, the end tells nothing.
    let by_itself = match broken.failure().kind == FailureKind::Connection {
        true => timeout(LAST_WORDS, program.wait_for_exit()).await.ok().flatten(),
        false => None,
    };
    let end = program.shut_down().await;
    Err(agent_lost_error(name, &broken, by_itself, &end))
}

/// Says on one line what became of an agent and what it said about it.
fn agent_lost_error(
    name: &str,
    broken: &ConnectionLoss,
    by_itself: Option<ExitReason>,
    end: &AgentExit,
) -> CliError {
    let when = broken.phase();
    let mut text = match by_itself {
        Some(ExitReason::Exited(code)) => format!("the agent {name} ended {when}, with exit code {code}"),
        Some(ExitReason::Signalled(signal)) => format!("the agent {name} ended {when}, by signal {signal}"),
        Some(ExitReason::TimedOut | ExitReason::Cancelled) | None => {
            let why = to_clause(&broken.failure().sentence);
            format!("the agent {name} cannot be driven: {why}")
        }
    };
    let lines: Vec<&str> = end.stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LINES_SHOWN)..];
    let is_told = |stray: &str| {
        let Failure { kind, sentence } = broken.failure();
        *kind == FailureKind::Protocol && sentence.contains(stray)
    };
    match (last, &end.stray) {
        ([], Some(stray)) if !is_told(stray) => {
            text += &format!("; it said {stray:?}, which is no message of the protocol");
        }
        ([], _) => {}
        (last, _) => text += &format!("; it complained: {}", last.join("; ")),
    }
    let exit = CliError::new(CliExitCode::Failed, to_one_line(&text));
    exit.with_hint(format!(
        "does agent_servers.{name} start an agent that speaks ACP? `crow-cli -v` shows all it says"
    ))
}

/// Fits a sentence into another one.
fn to_clause(sentence: &str) -> String {
    let mut letters = sentence.trim_end_matches('.').chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}
