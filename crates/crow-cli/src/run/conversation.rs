//! One connection to an agent, from its initialization to its end.

use crow_acp::{AcpClientCapabilities, ClientInfo, LineTransport};
use crow_core::Failure;
use tokio::sync::{mpsc, oneshot};

use super::{driver::RunDriver, interrupts::StopListener, plan::RunPlan, terminal_client};
use crate::{
    agent,
    failure::{CliError, CliExitCode},
};

/// Events between the connection and the screen; a slow screen slows the agent down.
const EVENTS_LEN: usize = 256;

/// The end of a connection to an agent.
pub(super) enum ConversationEnd {
    Completed(Result<(), CliError>),
    /// The connection was lost or never established.
    Disconnected(ConnectionLoss),
}

/// When a connection was lost.
pub(super) enum ConnectionLoss {
    BeforeInitialize(Failure),
    AfterInitialize(Failure),
}

impl ConnectionLoss {
    pub(super) fn phase(&self) -> &'static str {
        match self {
            Self::BeforeInitialize(_) => "during initialization",
            Self::AfterInitialize(_) => "during the session",
        }
    }

    pub(super) fn failure(&self) -> &Failure {
        match self {
            Self::BeforeInitialize(failure) | Self::AfterInitialize(failure) => failure,
        }
    }
}

/// Initializes the connection and runs the plan. `early_signals` are those before the initialization.
pub(super) async fn run_conversation(
    mut plan: RunPlan,
    transport: LineTransport,
    early_signals: StopListener,
) -> Result<ConversationEnd, CliError> {
    if let Some(setup) = plan.terminal.take() {
        return terminal_client::run_client(plan, setup, transport, early_signals).await;
    }
    let signals = plan.control.listen()?;
    let (event_sender, events) = mpsc::channel(EVENTS_LEN);
    let (initialized_sender, initialized) = oneshot::channel();
    let capabilities = AcpClientCapabilities {
        compactions: true,
        forms: plan.control.can_ask(),
        session_tokens: plan.counts_tokens,
        ..AcpClientCapabilities::default()
    };
    let client_info = ClientInfo {
        name: "crow-cli",
        version: agent::VERSION,
        capabilities,
        agent_name: plan.args.options.agent.clone(),
        wants_raw_updates: false,
    };
    let conversation = crow_acp::drive_agent(transport, client_info, event_sender, async |connection| {
        // The receiver is polled below.
        let _ = initialized_sender.send(());
        let agent = connection.clone();
        let result = RunDriver::new(connection, events, signals, plan).run().await;
        (result, agent.disconnect_failure())
    });
    tokio::pin!(conversation);
    let mut is_initialized = false;
    let outcome = tokio::select! {
        biased;
        driven = &mut conversation => driven,
        () = wait_for_interrupt(early_signals, initialized, &mut is_initialized) => {
            return Ok(ConversationEnd::Completed(Err(CliError::without_message(CliExitCode::Interrupted))));
        }
    };
    Ok(match outcome {
        Ok((Err(_), Some(failure))) => {
            ConversationEnd::Disconnected(ConnectionLoss::AfterInitialize(failure))
        }
        Ok((result, _)) => ConversationEnd::Completed(result),
        Err(failure) if is_initialized => {
            ConversationEnd::Disconnected(ConnectionLoss::AfterInitialize(failure))
        }
        Err(failure) => ConversationEnd::Disconnected(ConnectionLoss::BeforeInitialize(failure)),
    })
}

/// Waits for an interrupt during initialization; later ones are handled by the driver.
async fn wait_for_interrupt(
    mut signals: StopListener,
    initialized: oneshot::Receiver<()>,
    is_initialized: &mut bool,
) {
    tokio::select! {
        biased;
        received = initialized => {
            *is_initialized = received.is_ok();
            std::future::pending::<()>().await;
        }
        _ = signals.next_request() => {}
    }
}
