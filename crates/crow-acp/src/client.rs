//! The client's end of a connection: drives an agent and receives its updates.

mod access;
mod client_call;
mod events;
mod session;
#[cfg(test)]
mod tests;
mod user_requests;

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use agent_client_protocol as sdk;
use crow_core::{ContentPart, Failure, FailureKind, SessionId};
use futures_util::{SinkExt, StreamExt, stream};
use sdk::v1::schema as wire;
use tokio::sync::{mpsc, oneshot};
use tokio::task::yield_now;

pub use self::access::{ClientAccess, ClientAccessRequest, ParentClient};
use self::access::{ClientMethodCall, Responder, log_send_error};
pub use self::client_call::{ClientAnswer, ClientCall, ClientCallError};
pub use self::events::ClientEvent;
pub use self::session::OpenedSession;
use crate::agent_update::{AgentUpdate, StopReason};
use crate::capabilities::{AcpAgentCapabilities, ClientInfo};
use crate::config_option::ConfigOption;
use crate::incoming::{SessionInfo, TurnScope};
use crate::transport::{IncomingLines, LineTransport, OutgoingLines};
use crate::v1::{self, AnnouncedCalls, ClaimRequest, ClaimResponse, ReleaseNotification, SteerRequest};

/// The longest start of an agent that first downloads itself; a slower one never answers.
pub const INITIALIZE_TIMEOUT: Duration = Duration::from_secs(60);

/// Lines read before their events are handled; at most the capacity of a listener's inbox.
const LINES_PER_YIELD: u32 = 8;

/// The response to a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptOutcome {
    pub stop_reason: StopReason,
    /// Tokens used by the session so far, if the agent reports them.
    pub tokens_spent: Option<u64>,
}

/// A connected agent, as a client drives it.
#[derive(Debug, Clone)]
pub struct AgentConnection {
    agent: sdk::v1::ConnectionTo<sdk::Agent>,
    capabilities: AcpAgentCapabilities,
    disconnect_reason: Arc<OnceLock<Failure>>,
}

impl AgentConnection {
    /// Returns the agent's capabilities.
    pub fn capabilities(&self) -> AcpAgentCapabilities {
        self.capabilities
    }

    /// Waits until the agent has disconnected.
    pub async fn wait_closed(&self) {
        self.agent.incoming_closed().await;
    }

    /// Returns the reason if the agent has disconnected, as far as known.
    pub fn disconnect_failure(&self) -> Option<Failure> {
        self.agent.is_incoming_closed().then(|| recorded_failure(&self.disconnect_reason))
    }

    /// Creates a session.
    pub async fn new_session(&self, cwd: &Path) -> Result<OpenedSession, Failure> {
        let response = self.send_request(wire::NewSessionRequest::new(cwd)).await?;
        let session = SessionId::new(&*response.session_id.0);
        Ok(OpenedSession { session, options: v1::opened_options(response.config_options, response.modes) })
    }

    /// Loads a stored session; its replay is received before this returns.
    pub async fn load_session(&self, session: &SessionId, cwd: &Path) -> Result<OpenedSession, Failure> {
        let response = self.send_request(wire::LoadSessionRequest::new(v1::session_id(session), cwd)).await?;
        let options = v1::opened_options(response.config_options, response.modes);
        Ok(OpenedSession { session: session.clone(), options })
    }

    /// Resumes a stored session without replay.
    pub async fn resume_session(&self, session: &SessionId, cwd: &Path) -> Result<(), Failure> {
        self.send_request(wire::ResumeSessionRequest::new(v1::session_id(session), cwd)).await.map(drop)
    }

    /// Lists the newest stored sessions of a directory.
    pub async fn list_sessions(&self, cwd: &Path) -> Result<Vec<SessionInfo>, Failure> {
        let request = wire::ListSessionsRequest::new().cwd(cwd.to_path_buf());
        let response = self.send_request(request).await?;
        Ok(response.sessions.into_iter().map(v1::session_info).collect())
    }

    /// Sets a configuration option of a session; returns all options, or none if only the mode was set.
    pub async fn set_option(
        &self,
        session: &SessionId,
        option: &str,
        value: &str,
    ) -> Result<Vec<ConfigOption>, Failure> {
        if option == v1::MODES_OPTION {
            let mode = wire::SessionModeId::new(value);
            let request = wire::SetSessionModeRequest::new(v1::session_id(session), mode);
            return self.send_request(request).await.map(|_| Vec::new());
        }
        let request = wire::SetSessionConfigOptionRequest::new(
            v1::session_id(session),
            wire::SessionConfigId::new(option),
            wire::SessionConfigValueId::new(value),
        );
        let response = self.send_request(request).await?;
        Ok(v1::session_options(Some(response.config_options)))
    }

    /// Sends a prompt and waits for the end of its turn.
    pub async fn send_prompt(
        &self,
        session: &SessionId,
        content: Vec<ContentPart>,
        turn_scope: TurnScope,
    ) -> Result<PromptOutcome, Failure> {
        let blocks = content.into_iter().map(v1::content_block).collect();
        let request = wire::PromptRequest::new(v1::session_id(session), blocks);
        let response = self.send_request(request.meta(v1::turn_scope_meta(turn_scope))).await?;
        let tokens_spent = response.usage.map(|usage| usage.total_tokens);
        Ok(PromptOutcome { stop_reason: v1::stop_reason(response.stop_reason), tokens_spent })
    }

    /// Sends steering input to the running turn.
    pub async fn send_steering(&self, session: &SessionId, text: &str) -> Result<(), Failure> {
        let request = SteerRequest { session_id: v1::session_id(session), prompt: vec![text.into()] };
        self.send_request(request).await.map(drop)
    }

    /// Cancels the running turn; its prompt still gets a response.
    pub fn cancel_turn(&self, session: &SessionId) {
        if let Err(error) =
            self.agent.send_notification(wire::CancelNotification::new(v1::session_id(session)))
        {
            tracing::debug!(%error, "the agent has disconnected; there is nothing to cancel");
        }
    }

    async fn send_request<R: sdk::JsonRpcRequest>(&self, request: R) -> Result<R::Response, Failure>
    where
        R::Response: Send,
    {
        let response = self.agent.send_request(request).block_task().await;
        if let Err(error) = &response
            && sdk::is_incoming_transport_closed(error)
        {
            // Requests fail a moment before the connection counts as closed; callers rely on that order.
            self.wait_closed().await;
            return Err(recorded_failure(&self.disconnect_reason));
        }
        response.map_err(|error| v1::from_rpc_error(&error))
    }
}

/// Connects to an agent, initializes it, and runs `main` with the connection. Updates of the agent go to `events`.
pub async fn drive_agent<R>(
    lines: LineTransport,
    client_info: ClientInfo,
    events: mpsc::Sender<ClientEvent>,
    main: impl AsyncFnOnce(AgentConnection) -> R,
) -> Result<R, Failure> {
    let handler = AgentEventHandler {
        events,
        wants_raw_updates: client_info.wants_raw_updates,
        agent_name: client_info.agent_name.clone(),
        calls: Arc::default(),
    };
    let disconnect_reason = Arc::<OnceLock<Failure>>::default();
    let incoming = end_on_error(with_backpressure(lines.incoming), Arc::clone(&disconnect_reason));
    let outgoing = record_error(lines.outgoing, Arc::clone(&disconnect_reason));
    let mut result = None;
    let connection_result = build_client(&handler)
        .connect_with(sdk::Lines::new(outgoing, incoming), async |agent| {
            let initialize = agent.send_request(v1::initialize_request(&client_info)).block_task();
            let response = match tokio::time::timeout(INITIALIZE_TIMEOUT, initialize).await {
                Ok(Ok(answer)) => v1::agent_capabilities(&answer),
                Ok(Err(error)) if sdk::is_incoming_transport_closed(&error) => {
                    Err(recorded_failure(&disconnect_reason))
                }
                Ok(Err(error)) => Err(v1::from_rpc_error(&error)),
                Err(_) => Err(initialize_timeout()),
            };
            result = Some(match response {
                Ok(capabilities) => {
                    let disconnect_reason = Arc::clone(&disconnect_reason);
                    Ok(main(AgentConnection { agent, capabilities, disconnect_reason }).await)
                }
                Err(failure) => Err(failure),
            });
            Ok(())
        })
        .await;
    // The result counts, whether or not the last lines could be sent to an agent that has disconnected.
    result.unwrap_or_else(|| {
        Err(disconnect_reason.get().cloned().unwrap_or_else(|| {
            let reason = connection_result
                .err()
                .map_or_else(|| "it ended early".to_owned(), |error| v1::from_rpc_error(&error).message);
            Failure::new(FailureKind::Connection, format!("the connection to the agent broke: {reason}"))
        }))
    })
}

/// Lets received lines be handled, and other tasks run, before more is read: otherwise the SDK would queue everything
/// that the agent sends.
fn with_backpressure(lines: IncomingLines) -> IncomingLines {
    let paced = stream::unfold((lines, 1), |(mut lines, n_lines)| async move {
        if n_lines % LINES_PER_YIELD == 0 {
            yield_now().await;
        }
        Some((lines.next().await?, (lines, n_lines % LINES_PER_YIELD + 1)))
    });
    paced.boxed()
}

/// Turns a read error into the end of input and stores it: earlier lines are still handled.
fn end_on_error(lines: IncomingLines, reason: Arc<OnceLock<Failure>>) -> IncomingLines {
    let lines = lines.scan((), move |(), line| {
        let line = line.map_err(|error| reason.set(connection_failure(&error))).ok();
        std::future::ready(line.map(Ok))
    });
    lines.boxed()
}

/// Stores the first write error: whether an agent that exits is noticed by reading or by writing is a race, and both
/// have the same cause.
fn record_error(lines: OutgoingLines, reason: Arc<OnceLock<Failure>>) -> OutgoingLines {
    Box::pin(lines.sink_map_err(move |error| {
        reason.get_or_init(|| connection_failure(&error));
        error
    }))
}

/// Converts an error of the connection.
fn connection_failure(error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::InvalidData {
        return Failure::new(FailureKind::Protocol, format!("the agent does not speak ACP: {error}"));
    }
    if error.kind() == io::ErrorKind::BrokenPipe {
        return disconnected();
    }
    Failure::new(FailureKind::Connection, format!("the agent has disconnected: {error}"))
}

fn disconnected() -> Failure {
    Failure::new(FailureKind::Connection, "the agent has disconnected".to_owned())
}

fn recorded_failure(reason: &OnceLock<Failure>) -> Failure {
    reason.get().cloned().unwrap_or_else(disconnected)
}

fn initialize_timeout() -> Failure {
    let reason = format!("the agent did not answer `initialize` within {} s", INITIALIZE_TIMEOUT.as_secs());
    Failure::new(FailureKind::Protocol, reason)
}

/// The receiver of an agent's messages.
#[derive(Clone)]
struct AgentEventHandler {
    events: mpsc::Sender<ClientEvent>,
    /// Updates are forwarded as raw JSON as well.
    wants_raw_updates: bool,
    /// The agent's name in its questions.
    agent_name: Option<String>,
    calls: Arc<Mutex<AnnouncedCalls>>,
}

type HandlerResult = Result<(), sdk::Error>;

impl AgentEventHandler {
    /// Forwards an event. Until it is received the agent's output is not read, which holds the agent back.
    async fn forward_event(&self, event: ClientEvent) -> HandlerResult {
        if self.events.send(event).await.is_err() {
            tracing::debug!("events of the agent are no longer received");
        }
        Ok(())
    }

    fn lock_calls(&self) -> MutexGuard<'_, AnnouncedCalls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn on_update(&self, update: wire::SessionNotification) -> HandlerResult {
        self.lock_calls().apply_update(&update.session_id, &update.update);
        let session = SessionId::new(&*update.session_id.0);
        if self.wants_raw_updates
            && let Ok(raw_update) = serde_json::to_value(&update.update)
        {
            let event = ClientEvent::RawUpdate { session: session.clone(), update: raw_update };
            self.forward_event(event).await?;
        }
        let (message, outcome) = (v1::message_id(&update.update), v1::report_outcome(&update.update));
        let updates = v1::to_agent_updates(update.update).into_iter();
        for update in updates.chain(outcome.map(AgentUpdate::Outcome)) {
            let (session, message) = (session.clone(), message.clone());
            self.forward_event(ClientEvent::Update { session, message, update }).await?;
        }
        Ok(())
    }

    async fn on_client_method(&self, session: &wire::SessionId, request: ClientMethodCall) -> HandlerResult {
        let session = SessionId::new(&*session.0);
        self.forward_event(ClientEvent::AccessRequest(Box::new(ClientAccessRequest { session, request })))
            .await
    }

    async fn on_claim(&self, request: ClaimRequest, responder: Responder<ClaimResponse>) -> HandlerResult {
        let session = SessionId::new(&*request.session_id.0);
        let (sender, receiver) = oneshot::channel::<Result<u64, String>>();
        tokio::spawn(async move {
            log_send_error(match receiver.await {
                Ok(Ok(claim)) => responder.respond(ClaimResponse { claim }),
                Ok(Err(reason)) => responder.respond_with_error(v1::no_user_error(&reason)),
                Err(_) => {
                    responder.respond_with_error(v1::no_user_error("no client can be asked for a slot"))
                }
            });
        });
        self.forward_event(ClientEvent::Claim { session, answer: sender }).await
    }

    async fn on_release(&self, release: ReleaseNotification) -> HandlerResult {
        self.forward_event(ClientEvent::Release { claim: release.claim }).await
    }
}

/// Adds one handler for each request for files and terminals.
macro_rules! wants {
    ($builder:expr, $ear:expr, $($kind:ident: $request:ident),+ $(,)?) => {
        $builder$(.on_receive_request(
            {
                let ear = $ear.clone();
                async move |request: wire::$request, responder, _| {
                    let session = request.session_id.clone();
                    ear.on_client_method(&session, ClientMethodCall::$kind(request, responder)).await
                }
            },
            sdk::on_receive_request!(),
        ))+
    };
}

fn build_client(
    handler: &AgentEventHandler,
) -> sdk::v1::Builder<
    sdk::Client,
    impl sdk::HandleDispatchFrom<sdk::Agent> + 'static,
    impl sdk::RunWithConnectionTo<sdk::Agent> + 'static,
    impl sdk::HandleConnectionClose<sdk::Agent> + 'static,
> {
    let (updates, permissions, claims, releases) =
        (handler.clone(), handler.clone(), handler.clone(), handler.clone());
    let forms = handler.clone();
    let builder = sdk::Client
        .v1()
        .name("crow-client")
        .on_receive_notification(
            async move |update, _| updates.on_update(update).await,
            sdk::on_receive_notification!(),
        )
        .on_receive_notification(
            async move |release, _| releases.on_release(release).await,
            sdk::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request, responder, _| permissions.on_permission_request(request, responder).await,
            sdk::on_receive_request!(),
        )
        .on_receive_request(
            async move |request, responder, _| forms.on_elicitation(request, responder).await,
            sdk::on_receive_request!(),
        )
        .on_receive_request(
            async move |request, responder, _| claims.on_claim(request, responder).await,
            sdk::on_receive_request!(),
        );
    wants!(
        builder,
        handler,
        Read: ReadTextFileRequest,
        Write: WriteTextFileRequest,
        Create: CreateTerminalRequest,
        Output: TerminalOutputRequest,
        Wait: WaitForTerminalExitRequest,
        Kill: KillTerminalRequest,
        Release: ReleaseTerminalRequest,
    )
}
