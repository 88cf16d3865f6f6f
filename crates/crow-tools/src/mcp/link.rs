//! One connection to a server, and the notifications and requests that the server sends on it.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rmcp::{
    ClientHandler, ErrorData, Peer, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ErrorCode, Implementation,
        ProgressNotificationParam, ProgressToken, ProtocolVersion,
    },
    service::{NotificationContext, RequestContext},
};
use tokio::sync::{Notify, watch};

/// A line or two below a running call.
const PROGRESS_CHARS_MAX: usize = 1000;

/// An established connection.
pub(super) struct McpLink {
    pub(super) peer: Peer<RoleClient>,
    pub(super) handler: McpClientHandler,
}

impl McpLink {
    /// Whether it accepts requests.
    pub(super) fn is_open(&self) -> bool {
        !self.peer.is_transport_closed()
    }
}

/// Handles the server's notifications and requests. Clones share its state.
#[derive(Clone, Default)]
pub(super) struct McpClientHandler {
    calls: Arc<Mutex<HashMap<ProgressToken, watch::Sender<String>>>>,
    /// Notified when one of the server's lists has changed.
    pub(super) lists_changed: Arc<Notify>,
    /// The URIs of the session's roots.
    roots: Arc<[String]>,
}

impl McpClientHandler {
    /// Creates a handler that gives these roots to the server.
    pub(super) fn with_roots(dirs: &[PathBuf]) -> Self {
        let urls = dirs.iter().filter_map(|dir| reqwest::Url::from_directory_path(dir).ok());
        // Without the trailing slash, as other clients send them.
        let roots = urls.map(|url| url.as_str().trim_end_matches('/').to_owned()).collect();
        Self { roots, ..Self::default() }
    }

    /// Tracks the progress of a call until the returned value is dropped.
    pub(super) fn track_progress(&self, token: ProgressToken) -> CallProgress {
        let (sender, receiver) = watch::channel(String::new());
        self.lock_calls().insert(token.clone(), sender);
        CallProgress { handler: self.clone(), token, receiver }
    }

    fn lock_calls(&self) -> MutexGuard<'_, HashMap<ProgressToken, watch::Sender<String>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The progress of one call; only the latest text is stored.
pub(super) struct CallProgress {
    handler: McpClientHandler,
    token: ProgressToken,
    receiver: watch::Receiver<String>,
}

impl CallProgress {
    /// Waits for the next progress text.
    pub(super) async fn next_text(&mut self) -> String {
        match self.receiver.changed().await {
            Ok(()) => self.receiver.borrow_and_update().clone(),
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for CallProgress {
    fn drop(&mut self) {
        self.handler.lock_calls().remove(&self.token);
    }
}

impl ClientHandler for McpClientHandler {
    fn get_info(&self) -> ClientConfig {
        let implementation = Implementation::new("crow", env!("CARGO_PKG_VERSION"));
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = Some(Default::default());
        ClientConfig::new(capabilities, implementation)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        if let Some(sender) = self.lock_calls().get(&params.progress_token) {
            sender.send_replace(progress_text(&params));
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.lists_changed.notify_one();
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.lists_changed.notify_one();
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.lists_changed.notify_one();
    }

    #[expect(deprecated, reason = "servers in use ask for it")]
    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        let roots = self.roots.iter().map(rmcp::model::Root::new);
        Ok(rmcp::model::ListRootsResult::new(roots.collect()))
    }

    // The SDK's default would report that the user declined, although the user was not asked.
    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "this client does not support elicitation", None))
    }
}

fn progress_text(params: &ProgressNotificationParam) -> String {
    let message = params.message.as_deref().map(str::trim).filter(|message| !message.is_empty());
    match (message, params.total) {
        (Some(message), _) => message.chars().take(PROGRESS_CHARS_MAX).collect(),
        (None, Some(total)) => format!("{} of {total}", params.progress),
        (None, None) => params.progress.to_string(),
    }
}
