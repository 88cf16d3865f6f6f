//! The exit code for a failure of the agent.

use crow_core::{Failure, FailureKind};
use crow_tui::text::sanitize_text;

use crate::failure::{CliError, CliExitCode};

/// Returns the error with which a run ends after a failure of the agent.
pub(super) fn exit_for_failure(failure: &Failure) -> CliError {
    let code = match failure.kind {
        FailureKind::SessionNotFound => CliExitCode::NoSession,
        FailureKind::Config | FailureKind::AuthRequired => CliExitCode::Config,
        FailureKind::InvalidValue => CliExitCode::Usage,
        FailureKind::ProviderAuth
        | FailureKind::ProviderRate
        | FailureKind::ProviderOverloaded
        | FailureKind::ProviderRejected
        | FailureKind::ModelNotFound
        | FailureKind::ContextOverflow
        | FailureKind::Connection
        | FailureKind::Protocol
        | FailureKind::Store
        | FailureKind::Internal => CliExitCode::Failed,
    };
    // The message may be from another agent.
    CliError::new(code, sanitize_text(&failure.message)).with_kind(failure.kind)
}
