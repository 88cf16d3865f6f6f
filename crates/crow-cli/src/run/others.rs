//! Drives an agent of `agent_servers` instead of our own: starts its program or goes to its address, tells how it went,
//! and leaves nothing of it behind.

use std::time::Duration;

use crow_acp::{AgentEnd, Launcher};
use crow_core::{AgentReach, AgentServer, Failure, FailureKind};
use crow_process::{Command, Ended};
use tokio::time::{Instant, timeout};

use super::{Broken, Plan, Talked, plain::one_line, signals::Signals, talk};
use crate::{
    agent,
    agents::{self, Place},
    failure::{Code, Exit},
    settings::Settings,
};

/// How long an agent that hangs up may take to end: how it ended says more than that it hung up.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How long the way to an agent elsewhere may take; beyond it nobody is there.
const CONNECT_WITHIN: Duration = Duration::from_secs(30);

/// Of what an agent complained of, so many lines stand in an error; the log has the rest.
const LINES_SHOWN: usize = 3;

/// Goes through the plan with another agent.
pub(super) async fn drive(
    plan: Plan,
    server: &AgentServer,
    place: &Place<'_>,
    settings: &Settings,
) -> Result<(), Exit> {
    match &server.reach {
        AgentReach::Program { command, args, env } => {
            if agents::program(server, place).flatten().is_none() {
                return Err(missing(server, command));
            }
            let command = Command {
                program: command.clone(),
                args: args.clone(),
                cwd: place.cwd.to_owned(),
                env: env.clone(),
                env_removed: settings.secret_variables.clone(),
            };
            program(plan, &server.name, command, &Launcher::new(agent::warden(settings))).await
        }
        AgentReach::Socket { url, headers } => socket(plan, &server.name, url, headers).await,
    }
}

/// Talks to an agent elsewhere. How it ended is its own affair; what it says at the end stands in the failure.
async fn socket(plan: Plan, name: &str, url: &str, headers: &[(String, String)]) -> Result<(), Exit> {
    let mut early = Signals::listen()?;
    let lines = tokio::select! {
        biased;
        lines = crow_acp::connect(url, headers, Instant::now() + CONNECT_WITHIN) => lines,
        _ = early.next() => return Err(Exit::quiet(Code::Interrupted)),
    };
    let lines = lines
        .map_err(|error| Exit::new(Code::Failed, format!("the agent {name} cannot be reached: {error}")))?;
    match talk(plan, lines, early).await? {
        Talked::Through(done) => done,
        Talked::Broken(broken) => {
            let (when, why) = (broken.when(), clause(&broken.failure().sentence));
            Err(Exit::new(Code::Failed, one_line(&format!("the agent {name} was lost {when}: {why}"))))
        }
    }
}

fn missing(server: &AgentServer, command: &str) -> Exit {
    let name = &server.name;
    let exit = Exit::new(Code::Failed, format!("the agent {name} cannot be started: there is no {command}"));
    exit.with_hint(format!("install it, or name its path in agent_servers.{name}.command"))
}

async fn program(plan: Plan, name: &str, command: Command, launcher: &Launcher) -> Result<(), Exit> {
    let early = Signals::listen()?;
    let started = launcher.start(name, command).await;
    let (lines, mut program) = started
        .map_err(|error| Exit::new(Code::Failed, format!("the agent {name} cannot be started: {error}")))?;
    let broken = match talk(plan, lines, early).await? {
        Talked::Through(done) => {
            program.end().await;
            return done;
        }
        Talked::Broken(broken) => broken,
    };
    // Of what we hang up on, the end tells nothing.
    let by_itself = match broken.failure().kind == FailureKind::Connection {
        true => timeout(LAST_WORDS, program.ended()).await.ok().flatten(),
        false => None,
    };
    let end = program.end().await;
    Err(told(name, &broken, by_itself, &end))
}

/// Says on one line what became of an agent and what it said about it.
fn told(name: &str, broken: &Broken, by_itself: Option<Ended>, end: &AgentEnd) -> Exit {
    let when = broken.when();
    let mut text = match by_itself {
        Some(Ended::Exited(code)) => format!("the agent {name} ended {when}, with exit code {code}"),
        Some(Ended::Signalled(signal)) => format!("the agent {name} ended {when}, by signal {signal}"),
        Some(Ended::TimedOut | Ended::Cancelled) | None => {
            let why = clause(&broken.failure().sentence);
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
    let exit = Exit::new(Code::Failed, one_line(&text));
    exit.with_hint(format!(
        "does agent_servers.{name} start an agent that speaks ACP? `crow-cli -v` shows all it says"
    ))
}

/// Fits a sentence into another one.
fn clause(sentence: &str) -> String {
    let mut letters = sentence.trim_end_matches('.').chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}
