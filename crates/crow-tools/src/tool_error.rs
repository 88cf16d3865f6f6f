//! The failure of a call, and blocking work that may fail with one. Must not know calls or tools.

use std::fmt;

pub(crate) const PATH_CHANGED: &str = "not done: a link has changed since the call was evaluated; try again";

pub(crate) const CANCELLED: &str = "stopped: the turn was cancelled";

/// Reason why a call failed, for the model.
#[derive(Debug)]
pub(crate) struct ToolError(pub(crate) String);

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Runs blocking work on another thread.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let result = tokio::task::spawn_blocking(work).await;
    result.unwrap_or_else(|error| Err(ToolError(format!("the tool failed: {error}"))))
}
