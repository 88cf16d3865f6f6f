//! What the system and the person ask of the process. One listener for the whole run: one per wait would miss what
//! comes between two waits.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::{CliError, CliExitCode};

/// Listens from when it is made.
#[derive(Debug)]
pub(super) struct SignalListener {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

/// What was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopRequest {
    /// The person pressed Ctrl-C.
    Interrupt,
    /// The process is to end.
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

    /// Waits for the next. May be given up and asked again.
    pub(super) async fn next_request(&mut self) -> StopRequest {
        tokio::select! {
            _ = self.terminate.recv() => StopRequest::Terminate,
            _ = self.hangup.recv() => StopRequest::Terminate,
            _ = self.interrupt.recv() => StopRequest::Interrupt,
        }
    }
}
