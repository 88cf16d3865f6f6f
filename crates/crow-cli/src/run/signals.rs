//! Signals to the process. One listener for the whole run, since a new one per wait would miss signals between two
//! waits.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::{CliError, CliExitCode};

/// Listens from its creation on.
#[derive(Debug)]
pub(super) struct SignalListener {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopRequest {
    /// The user pressed Ctrl-C.
    Interrupt,
    /// SIGTERM or SIGHUP.
    Terminate,
}

impl SignalListener {
    pub(super) fn listen() -> Result<Self, CliError> {
        let register = |kind| {
            signal(kind).map_err(|error| {
                CliError::new(CliExitCode::Failed, format!("could not listen for signals: {error}"))
            })
        };
        let (interrupt, terminate) = (register(SignalKind::interrupt())?, register(SignalKind::terminate())?);
        Ok(Self { interrupt, terminate, hangup: register(SignalKind::hangup())? })
    }

    /// Waits for the next signal. Cancel safe.
    pub(super) async fn next_request(&mut self) -> StopRequest {
        tokio::select! {
            _ = self.terminate.recv() => StopRequest::Terminate,
            _ = self.hangup.recv() => StopRequest::Terminate,
            _ = self.interrupt.recv() => StopRequest::Interrupt,
        }
    }
}
