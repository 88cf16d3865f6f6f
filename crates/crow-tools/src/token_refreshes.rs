//! The refreshes of logins that run, which the end of the process waits for.

use std::time::Duration;

use tokio::{task::JoinHandle, time::timeout};
use tokio_util::task::TaskTracker;

/// Time for running refreshes at the end of the process; most take less than a second.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// The running refreshes of tokens, one for a server at a time. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct TokenRefreshTasks(TaskTracker);

impl TokenRefreshTasks {
    /// Starts a refresh.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        refresh: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.0.spawn(refresh)
    }

    /// Waits until they have stored their tokens, for a limited time.
    pub(crate) async fn wait_until_stored(&self) {
        self.0.close();
        if timeout(SHUTDOWN_TIMEOUT, self.0.wait()).await.is_err() {
            tracing::warn!("the refreshed login of an MCP server could not be stored in time");
        }
    }
}
