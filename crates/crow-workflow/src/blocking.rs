//! Runs the blocking functions of `crow-speckit`, and converts their errors.

use crow_core::{Failure, FailureKind};
use crow_speckit::SpeckitError;

/// Runs blocking work on another thread; an error includes its hint.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SpeckitError> + Send + 'static,
) -> Result<T, String> {
    let result = tokio::task::spawn_blocking(work).await;
    result.map_err(|error| error.to_string())?.map_err(|error| match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    })
}

/// Converts a problem with the project's files into the failure of a turn.
pub(crate) fn project_failure(reason: String) -> Failure {
    Failure::new(FailureKind::InvalidValue, reason)
}
