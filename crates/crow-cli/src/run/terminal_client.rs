//! Runs the interactive terminal over a connection to an agent.

use std::{io, sync::Arc};

use crow_acp::{AcpClientCapabilities, ClientInfo, LineTransport};
use crow_core::ContentPart;
use crow_process::StopRequest;
use crow_tui::{AttachedImage, SessionStart, TerminalClient};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{
    conversation::{ConnectionLoss, ConversationEnd},
    interrupts::StopListener,
    output::ContinuationHint,
    plan::RunPlan,
    terminal_setup::TerminalSetup,
};
use crate::{
    agent,
    failure::{CliError, CliExitCode},
};

/// Runs the client over a transport.
pub(super) async fn run_client(
    mut plan: RunPlan,
    setup: TerminalSetup,
    transport: LineTransport,
    mut signals: StopListener,
) -> Result<ConversationEnd, CliError> {
    let (terminate, interrupt) = (CancellationToken::new(), Arc::new(Notify::new()));
    let options = [("mode", &plan.args.options.mode), ("model", &plan.args.options.model)];
    let options = options.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
    let client = TerminalClient {
        tty: setup.tty,
        traits: setup.traits,
        host: setup.host,
        facts: setup.facts,
        theme: setup.theme,
        client_info: ClientInfo {
            name: "crow-cli",
            version: agent::VERSION,
            capabilities: client_capabilities(),
            agent_name: plan.args.options.agent.clone(),
            wants_raw_updates: false,
        },
        start: SessionStart {
            target: setup.target,
            prompt: plan.first_prompt.take(),
            images: std::mem::take(&mut plan.images).into_iter().filter_map(attached_image).collect(),
            options: options.collect(),
            approves_all: plan.args.options.yes,
        },
        is_fullscreen: setup.is_fullscreen,
        history_file: Some(setup.history_file),
        terminate: terminate.clone(),
        interrupt: interrupt.clone(),
    };
    let stop = async {
        loop {
            match signals.next_request().await {
                StopRequest::Interrupt => interrupt.notify_one(),
                StopRequest::Terminate => terminate.cancel(),
            }
        }
    };
    let end = tokio::select! {
        biased;
        // An interrupt of the editor has to be known before its end.
        end = stop => end,
        end = crow_tui::run_terminal(client, std::future::ready(Ok(transport))) => end,
    };
    let end = end.map_err(|error| terminal_error(&error))?;
    if let Some(session) = &end.session {
        plan.output.on_turn_start()?;
        let agent = plan.args.options.agent.as_deref();
        let continuation = ContinuationHint { agent, is_interactive: true };
        plan.output.on_session_end(session, plan.retention, continuation)?;
    }
    Ok(match end.loss {
        None => ConversationEnd::Completed(Ok(())),
        Some(loss) if loss.was_initialized => {
            ConversationEnd::Disconnected(ConnectionLoss::AfterInitialize(loss.failure))
        }
        Some(loss) => ConversationEnd::Disconnected(ConnectionLoss::BeforeInitialize(loss.failure)),
    })
}

fn client_capabilities() -> AcpClientCapabilities {
    AcpClientCapabilities {
        compactions: true,
        notices: true,
        forms: true,
        terminal_output: true,
        children: true,
        ..AcpClientCapabilities::default()
    }
}

fn attached_image(part: ContentPart) -> Option<AttachedImage> {
    match part {
        ContentPart::Image { mime, data } => Some(AttachedImage { name: mime.clone(), mime, data }),
        ContentPart::Text(_)
        | ContentPart::Link { .. }
        | ContentPart::Resource { .. }
        | ContentPart::FromCrow { .. } => None,
    }
}

fn terminal_error(error: &io::Error) -> CliError {
    CliError::new(CliExitCode::Failed, format!("could not use the terminal: {error}"))
}
