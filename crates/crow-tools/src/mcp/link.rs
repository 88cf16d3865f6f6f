//! One connection to a server, and the notifications and requests that the server sends on it.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crow_core::{ServerElicitation, ServerElicitationOutcome};
use rmcp::{
    ClientHandler, ErrorData, Peer, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, CustomRequest, CustomResult, ElicitRequestParams, ElicitResult,
        ElicitationCapability, ErrorCode, FormElicitationCapability, Implementation,
        ProgressNotificationParam, ProgressToken, ProtocolVersion, UrlElicitationCapability,
    },
    service::{NotificationContext, RequestContext},
};
use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::{
    elicitation,
    environment::McpClientFeatures,
    sampling,
    server_requests::{ServerRequest, WAITING_REQUESTS_MAX},
};

/// A line or two below a running call.
const PROGRESS_CHARS_MAX: usize = 1000;

/// An established connection.
pub(super) struct McpLink {
    pub(super) peer: Peer<RoleClient>,
    pub(super) handler: McpClientHandler,
    /// Whether the server is a program of ours, which may exit.
    pub(super) has_program: bool,
}

impl McpLink {
    /// Whether it accepts requests.
    pub(super) fn is_open(&self) -> bool {
        !self.peer.is_transport_closed()
    }
}

/// Handles the server's notifications and requests. Clones share its state.
#[derive(Clone)]
pub(super) struct McpClientHandler {
    /// The server's name in the configuration.
    server: Arc<str>,
    calls: Arc<Mutex<RunningCalls>>,
    /// Notified when one of the server's lists has changed.
    pub(super) lists_changed: Arc<Notify>,
    /// The URIs of the session's roots.
    roots: Arc<[String]>,
    features: McpClientFeatures,
}

/// The calls that wait for the server.
#[derive(Default)]
struct RunningCalls {
    by_token: HashMap<ProgressToken, RunningCall>,
    n_started: u64,
}

struct RunningCall {
    progress: watch::Sender<String>,
    /// Receives the server's requests, if the call can answer them.
    requests: Option<mpsc::Sender<ServerRequest>>,
    number: u64,
}

/// The receivers of one running call.
pub(super) struct CallTracking {
    pub(super) progress: CallProgress,
    pub(super) requests: mpsc::Receiver<ServerRequest>,
}

impl McpClientHandler {
    /// Creates a handler that gives these roots to the server.
    pub(super) fn new(server: &str, dirs: &[PathBuf], features: McpClientFeatures) -> Self {
        let urls = dirs.iter().filter_map(|dir| reqwest::Url::from_directory_path(dir).ok());
        // Without the trailing slash, as other clients send them.
        let roots = urls.map(|url| url.as_str().trim_end_matches('/').to_owned()).collect();
        let (calls, lists_changed) = Default::default();
        Self { server: server.into(), calls, lists_changed, roots, features }
    }

    /// Tracks a call until the progress is dropped.
    pub(super) fn track_call(&self, token: ProgressToken, answers_requests: bool) -> CallTracking {
        let (progress, progress_receiver) = watch::channel(String::new());
        let (sender, requests) = mpsc::channel(WAITING_REQUESTS_MAX);
        let mut calls = self.lock_calls();
        calls.n_started += 1;
        let call =
            RunningCall { progress, requests: answers_requests.then_some(sender), number: calls.n_started };
        calls.by_token.insert(token.clone(), call);
        drop(calls);
        let progress = CallProgress { handler: self.clone(), token, receiver: progress_receiver };
        CallTracking { progress, requests }
    }

    /// Gives a request of the server to its latest call: the protocol does not say which call it belongs to.
    fn send_to_call(&self, request: ServerRequest) -> Result<(), ErrorData> {
        let calls = self.lock_calls();
        let answering =
            calls.by_token.values().filter_map(|call| Some((call.number, call.requests.as_ref()?)));
        let latest = answering.max_by_key(|(number, _)| *number).map(|(_, sender)| sender);
        let reason = match latest {
            Some(sender) if sender.try_send(request).is_ok() => return Ok(()),
            Some(_) => "too many requests at once",
            None => "a server may ask only while one of its tools is called",
        };
        Err(ErrorData::new(elicitation::REJECTED, format!("declined: {reason}"), None))
    }

    fn lock_calls(&self) -> MutexGuard<'_, RunningCalls> {
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
        self.handler.lock_calls().by_token.remove(&self.token);
    }
}

impl ClientHandler for McpClientHandler {
    fn get_info(&self) -> ClientConfig {
        let implementation = Implementation::new("crow", env!("CARGO_PKG_VERSION"));
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = Some(Default::default());
        if self.features.elicitation {
            let forms = ElicitationCapability::new().with_form(FormElicitationCapability::default());
            capabilities.elicitation = Some(forms.with_url(UrlElicitationCapability::default()));
        }
        capabilities.sampling = self.features.sampling.then(Default::default);
        ClientConfig::new(capabilities, implementation)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        if let Some(call) = self.lock_calls().by_token.get(&params.progress_token) {
            call.progress.send_replace(progress_text(&params));
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
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        if !self.features.elicitation {
            let reason = "declined: the client of this session shows no forms to its user";
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, reason, None));
        }
        let request = elicitation::parse_request(&self.server, params)
            .map_err(|reason| ErrorData::invalid_params(format!("declined: {reason}"), None))?;
        let has_content = matches!(request, ServerElicitation::Form(_));
        let (answer, receiver) = oneshot::channel();
        self.send_to_call(ServerRequest::Elicit { request, answer })?;
        let outcome = context.ct.run_until_cancelled(receiver).await;
        // Without an answer the call has ended.
        let outcome = outcome.and_then(Result::ok).unwrap_or(ServerElicitationOutcome::Cancelled);
        elicitation::to_result(outcome, has_content)
    }

    #[expect(deprecated, reason = "servers in use ask for it")]
    async fn create_message(
        &self,
        params: rmcp::model::CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::CreateMessageResult, ErrorData> {
        if !self.features.sampling {
            let reason = "declined: no model answers requests of a server here";
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, reason, None));
        }
        let request = sampling::parse_request(&self.server, params)
            .map_err(|reason| ErrorData::invalid_params(format!("declined: {reason}"), None))?;
        let (answer, receiver) = oneshot::channel();
        self.send_to_call(ServerRequest::Sample { request, answer })?;
        let reply = context.ct.run_until_cancelled(receiver).await;
        let reply = reply.and_then(Result::ok).unwrap_or_else(|| Err("the call has ended".to_owned()));
        let reply = reply
            .map_err(|reason| ErrorData::new(elicitation::REJECTED, format!("declined: {reason}"), None));
        reply.map(sampling::to_result)
    }

    // The SDK does not recognise a form that is not valid.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        match request.method.as_str() {
            "elicitation/create" | "sampling/createMessage" => {
                Err(ErrorData::invalid_params("declined: the request is not valid", None))
            }
            _ => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None)),
        }
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
