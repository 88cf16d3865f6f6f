//! The size of a request before the user's first words. A session of an agent in this process tells it; neither the
//! session nor anything else stays.

use std::{path::Path, time::Duration};

use crow_acp::{
    AcpClientCapabilities, AgentUpdate, ClientEvent, ClientInfo, PromptOutcome, TurnScope, drive_agent,
    duplex_transport,
};
use crow_core::{ContentPart, Failure, FailureKind};
use crow_store::DatabaseAddress;
use tokio::sync::mpsc;

use super::{CheckResult, CheckState};
use crate::{
    agent::{VERSION, agent_info, build_runtime},
    settings::Settings,
};

/// The command that lists what a request consists of.
const CONTEXT_COMMAND: &str = "/context";

/// Events that wait while the prompt is answered.
const EVENTS_MAX: usize = 64;

/// Longer than all MCP servers may take to start.
const SESSION_WAIT_MAX: Duration = Duration::from_secs(40);

pub(super) async fn check_request_size(settings: &Settings, cwd: &Path) -> CheckResult {
    let described = match tokio::time::timeout(SESSION_WAIT_MAX, describe_context(settings, cwd)).await {
        Ok(described) => described,
        Err(_) => {
            let message = format!("no session was ready after {} s", SESSION_WAIT_MAX.as_secs());
            Err(Failure::new(FailureKind::Internal, message))
        }
    };
    match described {
        Ok(text) => {
            let mut lines =
                text.lines().filter(|line| !line.is_empty() && !line.starts_with("```")).map(str::to_owned);
            let summary = lines.next().unwrap_or_default();
            let details = lines.collect();
            CheckResult { details, ..CheckResult::new("request", CheckState::Ok, summary) }
        }
        Err(failure) => {
            let text = format!("its size is not known: {}", failure.message);
            CheckResult::new("request", CheckState::Warning, text)
        }
    }
}

/// Opens a session with its own database and returns the answer to [`CONTEXT_COMMAND`].
async fn describe_context(settings: &Settings, cwd: &Path) -> Result<String, Failure> {
    let directory = tempfile::tempdir()
        .map_err(|error| Failure::new(FailureKind::Store, format!("no temporary directory: {error}")))?;
    let database = DatabaseAddress::File(directory.path().join("crow.db"));
    let settings = Settings { database, ..settings.clone() };
    let load = move || std::future::ready(build_runtime(settings.clone(), Vec::new()));
    let (client, server) = duplex_transport();
    let stop = std::future::pending();
    let agent = tokio::spawn(crow_agent::serve_sessions(server, agent_info(), stop, load));
    let (sender, mut events) = mpsc::channel(EVENTS_MAX);
    let client_info = ClientInfo {
        name: "crow-cli",
        version: VERSION,
        capabilities: AcpClientCapabilities::default(),
        agent_name: None,
        wants_raw_updates: false,
    };
    let described = drive_agent(client, client_info, sender, async |connection| {
        let session = connection.new_session(cwd).await?.session;
        let prompt = vec![ContentPart::Text(CONTEXT_COMMAND.to_owned())];
        let response = connection.send_prompt(&session, prompt, TurnScope::WithoutTasks);
        read_answer(response, &mut events).await
    });
    let described = described.await.flatten();
    match agent.await {
        Ok(Ok(())) => described,
        Ok(Err(error)) => described.and(Err(Failure::new(FailureKind::Internal, error.to_string()))),
        Err(error) => described.and(Err(Failure::new(FailureKind::Internal, error.to_string()))),
    }
}

/// Returns the text that arrives before a response, and fails if that does.
async fn read_answer(
    response: impl Future<Output = Result<PromptOutcome, Failure>>,
    events: &mut mpsc::Receiver<ClientEvent>,
) -> Result<String, Failure> {
    let mut answer = String::new();
    let mut push = |event| {
        if let ClientEvent::Update { update: AgentUpdate::Text(text), .. } = event {
            answer.push_str(&text);
        }
    };
    tokio::pin!(response);
    loop {
        tokio::select! {
            result = &mut response => {
                result?;
                break;
            }
            Some(event) = events.recv() => push(event),
        }
    }
    while let Ok(event) = events.try_recv() {
        push(event);
    }
    Ok(answer)
}
