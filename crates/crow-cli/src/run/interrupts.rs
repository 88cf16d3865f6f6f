//! Requests to stop a run: from a user by signals, or from the part of the program that started it.

use crow_process::{SignalListener, StopRequest};
use tokio::sync::watch;

use super::typed_input;
use crate::failure::{CliError, CliExitCode};

/// The source of requests to stop a run, and of answers to its questions.
#[derive(Debug, Clone)]
pub(crate) enum RunControl {
    /// A user, by signals and at the terminal, if there is one.
    User,
    /// The part of this program that holds the sender. It answers no question.
    Program(watch::Receiver<Option<StopRequest>>),
}

/// Receives the requests to stop a run.
#[derive(Debug)]
pub(super) enum StopListener {
    Signals(SignalListener),
    Program(watch::Receiver<Option<StopRequest>>),
}

impl RunControl {
    /// Listens from now on.
    pub(super) fn listen(&self) -> Result<StopListener, CliError> {
        match self {
            Self::User => listen_for_signals().map(StopListener::Signals),
            Self::Program(requests) => Ok(StopListener::Program(requests.clone())),
        }
    }

    /// Whether a question can be shown and answered.
    pub(super) fn can_ask(&self) -> bool {
        match self {
            Self::User => typed_input::is_interactive(),
            Self::Program(_) => false,
        }
    }
}

impl StopListener {
    /// Waits for the next request. Cancel safe.
    pub(super) async fn next_request(&mut self) -> StopRequest {
        match self {
            Self::Signals(signals) => signals.next_request().await,
            Self::Program(requests) => loop {
                // Without its sender a run is not stopped any more.
                if requests.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
                if let Some(request) = *requests.borrow_and_update() {
                    break request;
                }
            },
        }
    }
}

/// Listens for signals from now on.
pub(crate) fn listen_for_signals() -> Result<SignalListener, CliError> {
    SignalListener::listen()
        .map_err(|error| CliError::new(CliExitCode::Failed, format!("could not listen for signals: {error}")))
}
