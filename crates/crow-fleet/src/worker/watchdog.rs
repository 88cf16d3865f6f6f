//! The worker's end of its watchdog: starts it and tells it which messages are held.

use std::io;

use crow_acp::{AgentCommand, AgentLauncher, AgentProgram, SplicePeer, channel_transport, splice_transports};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::watchdog::{HeldMessages, WatchdogOrder};

/// Lines for the watchdog that wait; it does nothing but read them.
const QUEUED_LINES_MAX: usize = 2048;

/// A running watchdog.
pub(super) struct RunningWatchdog {
    program: AgentProgram,
    splice: JoinHandle<SplicePeer>,
    /// Its output, of which there is none.
    _output: mpsc::Receiver<io::Result<String>>,
}

/// The input of a watchdog; without one nothing happens.
#[derive(Debug, Clone, Default)]
pub(super) struct WatchdogInput(Option<mpsc::Sender<io::Result<String>>>);

/// A message that the watchdog returns to its queue if the worker is killed before this is dropped.
#[must_use]
pub(super) struct HeldMessage {
    input: WatchdogInput,
    subject: String,
}

impl RunningWatchdog {
    /// Starts a watchdog. Without one a task of a killed worker is begun again later, which is no reason not to work.
    pub(super) async fn start(command: AgentCommand, order: &WatchdogOrder) -> (Option<Self>, WatchdogInput) {
        // It must outlive this process: no supervisor.
        let started = AgentLauncher::new(None).start("watchdog", command).await;
        let (lines, program) = match started {
            Ok(started) => started,
            Err(error) => {
                tracing::warn!(%error, "the watchdog could not be started");
                return (None, WatchdogInput::default());
            }
        };
        let (to_watchdog, input) = mpsc::channel(QUEUED_LINES_MAX);
        let (from_watchdog, output) = mpsc::channel(1);
        let splice = tokio::spawn(splice_transports(channel_transport(input, from_watchdog), lines));
        let input = WatchdogInput(Some(to_watchdog));
        input.send(serde_json::to_string(order).unwrap_or_default());
        (Some(Self { program, splice, _output: output }), input)
    }

    /// Ends it, once no input of it is left.
    pub(super) async fn finish(self) {
        if let Err(error) = self.splice.await {
            tracing::warn!(%error, "the watchdog was not told everything");
        }
        self.program.shut_down().await;
    }
}

impl WatchdogInput {
    /// Announces that this worker has a message, until the result is dropped.
    pub(super) fn hold(&self, subject: &str) -> HeldMessage {
        self.send(HeldMessages::hold_line(subject));
        HeldMessage { input: self.clone(), subject: subject.to_owned() }
    }

    fn send(&self, line: String) {
        if let Some(sender) = &self.0
            && sender.try_send(Ok(line)).is_err()
        {
            tracing::warn!("the watchdog does not read; if this worker is killed, its tasks wait longer");
        }
    }
}

impl Drop for HeldMessage {
    fn drop(&mut self) {
        self.input.send(HeldMessages::release_line(&self.subject));
    }
}
