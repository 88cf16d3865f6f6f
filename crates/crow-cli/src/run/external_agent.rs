//! Drives an agent of `agent_servers`: starts its program or connects to its address or queue, reports how it ended, and cleans
//! up.

use std::{future::ready, time::Duration};

use crow_acp::{AgentLauncher, LineTransport, ProgramLoss};
use crow_core::{AgentServer, AgentTransport, Mode};
use crow_fleet::{FarmConnections, FarmTask, QueuedFarmTask};
use crow_process::CommandSpec;
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;

use super::{
    check_mode,
    conversation::{ConversationEnd, run_conversation},
    plain::to_one_line,
    plan::RunPlan,
};
use crate::{
    agent,
    agents::{self, ProgramLookup},
    failure::{CliError, CliExitCode},
    settings::Settings,
};

/// Timeout for connecting to an agent on another machine.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Time to tell a remote agent that its client leaves.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs the plan with another agent. The caller closes the farms.
pub(crate) async fn drive_external_agent(
    mut plan: RunPlan,
    server: &AgentServer,
    lookup: &ProgramLookup<'_>,
    settings: &Settings,
    farms: &FarmConnections,
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
        AgentTransport::Socket { url, headers } => {
            let tasks = TaskTracker::new();
            let connecting = async {
                let deadline = Instant::now() + CONNECT_TIMEOUT;
                let lines = crow_acp::connect_socket(url, headers, deadline, &tasks).await;
                lines.map_err(|error| error.to_string())
            };
            let leaving = async {
                tasks.close();
                tasks.wait().await;
            };
            Box::pin(drive_connected(plan, &server.name, connecting, leaving)).await
        }
        AgentTransport::Farm(address) => {
            // The queue has its mode.
            let mode = plan.args.options.mode.take();
            let task = farm_task(mode.as_deref(), settings)?;
            let connecting = farms.open_task(address, task);
            Box::pin(drive_connected(plan, &server.name, connecting, ready(()))).await
        }
    }
}

/// Makes a task for a queue, whose workers have Crow's modes. Its conversation is in no store, so no later process could go
/// on with it.
pub(crate) fn farm_task(mode: Option<&str>, settings: &Settings) -> Result<FarmTask, CliError> {
    check_mode(mode)?;
    let mode = mode.and_then(Mode::parse).unwrap_or(settings.mode);
    Ok(FarmTask { mode, depth: settings.depth + 1, version: agent::VERSION, keeper: None, code: None })
}

/// Runs the plan with the worker that has begun its task.
pub(crate) async fn drive_queued_agent(plan: RunPlan, task: QueuedFarmTask) -> Result<(), CliError> {
    let name = plan.args.options.agent.clone().unwrap_or_default();
    drive_connected(plan, &name, ready(Ok(task.open())), ready(())).await
}

/// Drives an agent over a connection. Its exit is not visible here; the failure has its last message.
async fn drive_connected(
    plan: RunPlan,
    name: &str,
    connecting: impl Future<Output = Result<LineTransport, String>>,
    leaving: impl Future<Output = ()>,
) -> Result<(), CliError> {
    let mut early_signals = plan.control.listen()?;
    let transport = tokio::select! {
        biased;
        lines = connecting => lines,
        _ = early_signals.next_request() => return Err(CliError::without_message(CliExitCode::Interrupted)),
    };
    let transport = transport.map_err(|reason| unreachable_error(name, &reason))?;
    let end = Box::pin(run_conversation(plan, transport, early_signals)).await;
    if timeout(LEAVE_TIMEOUT, leaving).await.is_err() {
        tracing::debug!("the agent was not told that its client leaves");
    }
    match end? {
        ConversationEnd::Completed(result) => result,
        ConversationEnd::Disconnected(loss) => {
            let (phase, reason) = (loss.phase(), loss.failure().to_clause());
            Err(CliError::new(
                CliExitCode::Failed,
                to_one_line(&format!("the connection to the agent {name} was lost {phase}: {reason}")),
            ))
        }
    }
}

/// The error of an agent on another machine, or of its queue.
pub(crate) fn unreachable_error(name: &str, reason: &str) -> CliError {
    CliError::new(CliExitCode::Failed, format!("the agent {name} cannot be reached: {reason}"))
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
    let early_signals = plan.control.listen()?;
    let started = launcher.start(name, command).await;
    let (transport, program) = started.map_err(|error| {
        CliError::new(CliExitCode::Failed, format!("the agent {name} could not be started: {error}"))
    })?;
    let loss = match Box::pin(run_conversation(plan, transport, early_signals)).await? {
        ConversationEnd::Completed(result) => {
            program.shut_down().await;
            return result;
        }
        ConversationEnd::Disconnected(loss) => loss,
    };
    let phase = loss.phase();
    let loss = ProgramLoss::collect(program, loss.failure().clone()).await;
    let error = CliError::new(CliExitCode::Failed, to_one_line(&loss.describe(name, phase)));
    Err(error.with_hint(format!(
        "check that agent_servers.{name} starts an ACP agent; `crow-cli -v` shows all of its output"
    )))
}
