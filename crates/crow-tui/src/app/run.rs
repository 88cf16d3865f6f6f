//! Runs the client: connects to the agent beside the loop, and leaves the terminal as it was.

mod agent_link;
mod app_loop;
mod draft_file;
mod files;
mod history_file;
mod sequences;
mod tasks;

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use crow_acp::{ClientInfo, LineTransport};
use crow_core::{Failure, SessionId};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use self::app_loop::AppLoop;
pub use self::{
    agent_link::AgentLoss,
    tasks::{ClientHost, ShellExit},
};
use super::{
    event::{AttachedImage, SessionChoice},
    state::ClientFacts,
};
use crate::{
    screen::{ScreenModes, TerminalTraits, TtyIo},
    text::ColorTheme,
};

/// Time for the last messages to the agent.
const GOODBYE_TIME: Duration = Duration::from_secs(2);

/// Everything that the client needs to start.
pub struct TerminalClient<H> {
    pub tty: TtyIo,
    pub traits: TerminalTraits,
    pub host: H,
    pub facts: ClientFacts,
    pub theme: ColorTheme,
    pub client_info: ClientInfo,
    pub start: SessionStart,
    /// The conversation has the whole screen, with scrolling of its own.
    pub is_fullscreen: bool,
    /// The file of earlier prompts; `None` keeps none.
    pub history_file: Option<PathBuf>,
    /// Ends the client when the process was asked to end.
    pub terminate: CancellationToken,
    /// Ends the client when the process was interrupted, unless another program has the terminal: then that one was meant.
    pub interrupt: Arc<Notify>,
}

/// The session to begin with.
#[derive(Debug, Clone)]
pub struct SessionStart {
    pub target: SessionChoice,
    /// Sent as soon as the session is open.
    pub prompt: Option<String>,
    /// Images for that prompt.
    pub images: Vec<AttachedImage>,
    /// Options by ID or category, with their values.
    pub options: Vec<(String, String)>,
    /// Approves what the agent asks.
    pub approves_all: bool,
}

/// The end of the client.
#[derive(Debug)]
pub struct TerminalEnd {
    /// The session, if it can be continued.
    pub session: Option<SessionId>,
    /// The connection was lost or never established.
    pub loss: Option<AgentLoss>,
}

/// Runs the client until the user quits or the agent is gone.
pub async fn run_terminal<H: ClientHost>(
    client: TerminalClient<H>,
    connect: impl Future<Output = Result<LineTransport, Failure>>,
) -> io::Result<TerminalEnd> {
    let quit = CancellationToken::new();
    let (opened_sender, opened) = oneshot::channel();
    let link = agent_link::keep_connection(connect, client.client_info.clone(), opened_sender, quit.clone());
    let mut app = AppLoop::open(client)?;
    tokio::pin!(link);
    let mut loss = {
        let running = app.run(opened);
        tokio::pin!(running);
        tokio::select! {
            biased;
            result = &mut running => {
                result?;
                None
            }
            loss = &mut link => Some(loss),
        }
    };
    app.wait_for_editor().await?;
    app.close()?;
    quit.cancel();
    if loss.is_none() {
        // The agent gets the last messages; one that does not end is left to its owner.
        loss = tokio::time::timeout(GOODBYE_TIME, link).await.ok().map(|_| None);
    }
    Ok(TerminalEnd { session: app.resumable_session(), loss: loss.flatten() })
}

/// Restores the terminal before a panic is reported.
fn restore_on_panic(tty: TtyIo, modes: ScreenModes) {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        // There is no better place for a second error.
        drop(tty.restore(&modes));
        report(info);
    }));
}
