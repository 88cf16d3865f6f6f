//! Interrupts of a run: the signals that ask it to stop.

use crow_process::SignalListener;

use crate::failure::{CliError, CliExitCode};

/// Listens for signals from now on.
pub(super) fn listen_for_signals() -> Result<SignalListener, CliError> {
    SignalListener::listen()
        .map_err(|error| CliError::new(CliExitCode::Failed, format!("could not listen for signals: {error}")))
}
