//! The client's end of a connection: drives an agent and hears what it says.

mod asked;
mod events;
mod opened;
#[cfg(test)]
mod tests;
mod wanted;

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agent_client_protocol as sdk;
use crow_core::{ContentPart, Failure, FailureKind, SessionId};
use futures_util::{StreamExt, stream};
use sdk::v1::schema as wire;
use tokio::sync::{mpsc, oneshot};
use tokio::task::yield_now;

pub use self::events::{
    AgentPermissionRequest, AgentUpdate, ClientEvent, GrantScope, PermissionAnswer, PermissionOption,
    StopReason,
};
pub use self::opened::{ConfigOption, OpenedSession};
use self::wanted::ClientMethodCall;
pub use self::wanted::{ClientAccess, ClientAccessRequest, ParentClient};
use crate::abilities::AcpClientCapabilities;
use crate::incoming::TurnScope;
use crate::transport::{IncomingLines, LineTransport};
use crate::v1::{self, ClaimRequest, ClaimResponse, ReleaseNotification, SteerRequest};

/// An agent that downloads itself when it starts takes this long at worst; one that takes longer never answers.
pub const HELLO_WAIT_MAX: Duration = Duration::from_secs(60);

/// Lines that are read before what they say is heard; no more than a listener's inbox holds.
const LINES_AT_ONCE: u32 = 8;

/// What a client says of itself.
#[derive(Debug, Clone, Copy)]
pub struct ClientInfo {
    /// Its version.
    pub version: &'static str,
    /// What it can do for the agent.
    pub abilities: AcpClientCapabilities,
    /// Whether it wants updates as they were said, beside what it hears of them.
    pub keeps_words: bool,
}

/// What an agent says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AcpAgentCapabilities {
    /// It opens stored sessions and tells what was said in them.
    pub loads: bool,
    /// It opens stored sessions and tells nothing.
    pub resumes: bool,
    /// It takes words for a turn that runs.
    pub steers: bool,
    /// It opens copies of stored sessions.
    pub forks: bool,
    /// It takes images in prompts.
    pub reads_images: bool,
}

/// How a turn ended, as its agent says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptOutcome {
    /// Why it stopped.
    pub reason: StopReason,
    /// Tokens the session has cost so far, where the agent tells.
    pub spent: Option<u64>,
}

/// A connected agent, as a client drives it.
#[derive(Debug, Clone)]
pub struct AgentConnection {
    agent: sdk::v1::ConnectionTo<sdk::Agent>,
    abilities: AcpAgentCapabilities,
    why_gone: Arc<OnceLock<Failure>>,
}

impl AgentConnection {
    /// What the agent can do.
    pub fn capabilities(&self) -> AcpAgentCapabilities {
        self.abilities
    }

    /// Waits until the agent has gone.
    pub async fn wait_closed(&self) {
        self.agent.incoming_closed().await;
    }

    /// Tells that the agent has gone, and why where that is known.
    pub fn disconnect_failure(&self) -> Option<Failure> {
        self.agent.is_incoming_closed().then(|| recorded_failure(&self.why_gone))
    }

    /// Opens a session.
    pub async fn new_session(&self, cwd: &Path) -> Result<OpenedSession, Failure> {
        let opened = self.send_request(wire::NewSessionRequest::new(cwd)).await?;
        let session = SessionId::new(&*opened.session_id.0);
        Ok(OpenedSession { session, options: v1::session_options(opened.config_options) })
    }

    /// Opens a stored session; what was said in it is heard before this returns.
    pub async fn load_session(&self, session: &SessionId, cwd: &Path) -> Result<OpenedSession, Failure> {
        let opened = self.send_request(wire::LoadSessionRequest::new(v1::session_id(session), cwd)).await?;
        let options = v1::session_options(opened.config_options);
        Ok(OpenedSession { session: session.clone(), options })
    }

    /// Opens a stored session and hears nothing of what was said in it.
    pub async fn resume_session(&self, session: &SessionId, cwd: &Path) -> Result<(), Failure> {
        self.send_request(wire::ResumeSessionRequest::new(v1::session_id(session), cwd)).await.map(drop)
    }

    /// Opens a copy of a stored session, which has a name of its own.
    pub async fn fork_session(&self, session: &SessionId, cwd: &Path) -> Result<OpenedSession, Failure> {
        let opened = self.send_request(wire::ForkSessionRequest::new(v1::session_id(session), cwd)).await?;
        let session = SessionId::new(&*opened.session_id.0);
        Ok(OpenedSession { session, options: v1::session_options(opened.config_options) })
    }

    /// Changes an option of a session.
    pub async fn set_option(&self, session: &SessionId, option: &str, value: &str) -> Result<(), Failure> {
        self.send_request(wire::SetSessionConfigOptionRequest::new(
            v1::session_id(session),
            wire::SessionConfigId::new(option),
            wire::SessionConfigValueId::new(value),
        ))
        .await
        .map(drop)
    }

    /// Sends a prompt and waits for the end of its turn.
    pub async fn send_prompt(
        &self,
        session: &SessionId,
        content: Vec<ContentPart>,
        until: TurnScope,
    ) -> Result<PromptOutcome, Failure> {
        let blocks = content.into_iter().map(v1::content_block).collect();
        let request = wire::PromptRequest::new(v1::session_id(session), blocks);
        let ended = self.send_request(request.meta(v1::turn_scope_meta(until))).await?;
        let spent = ended.usage.map(|usage| usage.total_tokens);
        Ok(PromptOutcome { reason: v1::stop_reason(ended.stop_reason), spent })
    }

    /// Says something to the turn that runs.
    pub async fn send_steering(&self, session: &SessionId, text: &str) -> Result<(), Failure> {
        let request = SteerRequest { session_id: v1::session_id(session), prompt: vec![text.into()] };
        self.send_request(request).await.map(drop)
    }

    /// Stops the turn that runs; its prompt is answered all the same.
    pub fn cancel_turn(&self, session: &SessionId) {
        if let Err(error) =
            self.agent.send_notification(wire::CancelNotification::new(v1::session_id(session)))
        {
            tracing::debug!(%error, "the agent is gone; nothing is left to cancel");
        }
    }

    async fn send_request<R: sdk::JsonRpcRequest>(&self, request: R) -> Result<R::Response, Failure>
    where
        R::Response: Send,
    {
        let answered = self.agent.send_request(request).block_task().await;
        if let Err(error) = &answered
            && sdk::is_incoming_transport_closed(error)
        {
            // Requests fail a moment before the connection counts as closed; whoever hears of it relies on that.
            self.wait_closed().await;
            return Err(recorded_failure(&self.why_gone));
        }
        answered.map_err(|error| v1::from_rpc_error(&error))
    }
}

/// Connects to an agent, says hello, and runs `main` with the connection. What the agent says goes to `events`.
pub async fn drive_agent<R>(
    lines: LineTransport,
    hello: ClientInfo,
    events: mpsc::Sender<ClientEvent>,
    main: impl AsyncFnOnce(AgentConnection) -> R,
) -> Result<R, Failure> {
    let ear = AgentEventHandler { events, keeps_words: hello.keeps_words };
    let why_gone = Arc::default();
    let incoming = end_on_error(with_backpressure(lines.incoming), Arc::clone(&why_gone));
    let mut came = None;
    let driven = build_client(&ear)
        .connect_with(sdk::Lines::new(lines.outgoing, incoming), async |agent| {
            let said = agent.send_request(v1::initialize_request(hello)).block_task();
            let answer = match tokio::time::timeout(HELLO_WAIT_MAX, said).await {
                Ok(Ok(answer)) => v1::agent_capabilities(&answer),
                Ok(Err(error)) if sdk::is_incoming_transport_closed(&error) => {
                    Err(recorded_failure(&why_gone))
                }
                Ok(Err(error)) => Err(v1::from_rpc_error(&error)),
                Err(_) => Err(initialize_timeout()),
            };
            came = Some(match answer {
                Ok(abilities) => Ok(main(AgentConnection { agent, abilities, why_gone }).await),
                Err(failure) => Err(failure),
            });
            Ok(())
        })
        .await;
    // What came of it counts, whether or not the last words to an agent that has gone could leave.
    came.unwrap_or_else(|| {
        let why = driven
            .err()
            .map_or_else(|| "it ended early".to_owned(), |error| v1::from_rpc_error(&error).sentence);
        Err(Failure::new(FailureKind::Connection, format!("The connection to the agent broke: {why}.")))
    })
}

/// Lets what was read be heard, and everybody else have their turn, before more is read: the SDK would queue up all
/// that a talkative agent says.
fn with_backpressure(lines: IncomingLines) -> IncomingLines {
    let paced = stream::unfold((lines, 1), |(mut lines, n_lines)| async move {
        if n_lines % LINES_AT_ONCE == 0 {
            yield_now().await;
        }
        Some((lines.next().await?, (lines, n_lines % LINES_AT_ONCE + 1)))
    });
    paced.boxed()
}

/// Makes an end of a broken connection, and keeps why: what was heard before it is still to be told.
fn end_on_error(lines: IncomingLines, why: Arc<OnceLock<Failure>>) -> IncomingLines {
    let lines = lines.scan((), move |(), line| {
        let line = line.map_err(|error| why.set(connection_failure(&error))).ok();
        std::future::ready(line.map(Ok))
    });
    lines.boxed()
}

/// Makes a failure of what broke a connection.
fn connection_failure(error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::InvalidData {
        return Failure::new(FailureKind::Protocol, format!("The agent does not speak ACP: {error}."));
    }
    Failure::new(FailureKind::Connection, format!("The agent has gone: {error}."))
}

fn recorded_failure(why: &OnceLock<Failure>) -> Failure {
    let unknown = || Failure::new(FailureKind::Connection, "The agent has gone.".to_owned());
    why.get().cloned().unwrap_or_else(unknown)
}

fn initialize_timeout() -> Failure {
    let why = format!("The agent did not answer `initialize` within {} s.", HELLO_WAIT_MAX.as_secs());
    Failure::new(FailureKind::Protocol, why)
}

/// Where what an agent says goes.
#[derive(Clone)]
struct AgentEventHandler {
    events: mpsc::Sender<ClientEvent>,
    /// Updates are passed on by somebody.
    keeps_words: bool,
}

type HandlerResult = Result<(), sdk::Error>;
type Responder<T> = sdk::Responder<T, sdk::V1>;

impl AgentEventHandler {
    /// Hands an event on. While nobody takes it the agent is not read, which is how it is held back.
    async fn forward_event(&self, event: ClientEvent) -> HandlerResult {
        if self.events.send(event).await.is_err() {
            tracing::debug!("nobody listens to the agent any longer");
        }
        Ok(())
    }

    async fn on_update(&self, update: wire::SessionNotification) -> HandlerResult {
        let session = SessionId::new(&*update.session_id.0);
        if self.keeps_words
            && let Ok(said) = serde_json::to_value(&update.update)
        {
            self.forward_event(ClientEvent::Said(said)).await?;
        }
        let (message, outcome) = (v1::message_id(&update.update), v1::report_outcome(&update.update));
        for heard in v1::to_agent_update(update.update).into_iter().chain(outcome.map(AgentUpdate::Outcome)) {
            let (session, message) = (session.clone(), message.clone());
            self.forward_event(ClientEvent::Heard { session, message, heard }).await?;
        }
        Ok(())
    }

    async fn on_client_method(&self, session: &wire::SessionId, request: ClientMethodCall) -> HandlerResult {
        let session = SessionId::new(&*session.0);
        self.forward_event(ClientEvent::Wanted(Box::new(ClientAccessRequest { session, request }))).await
    }

    async fn on_claim(&self, request: ClaimRequest, responder: Responder<ClaimResponse>) -> HandlerResult {
        let session = SessionId::new(&*request.session_id.0);
        let (answer, answered) = oneshot::channel::<Result<u64, String>>();
        tokio::spawn(async move {
            log_send_error(match answered.await {
                Ok(Ok(claim)) => responder.respond(ClaimResponse { claim }),
                Ok(Err(why)) => responder.respond_with_error(v1::no_user_error(&why)),
                Err(_) => {
                    responder.respond_with_error(v1::no_user_error("there is nobody to ask for a place"))
                }
            });
        });
        self.forward_event(ClientEvent::Claim { session, answer }).await
    }

    async fn on_release(&self, release: ReleaseNotification) -> HandlerResult {
        self.forward_event(ClientEvent::Released { claim: release.claim }).await
    }
}

/// Adds one handler for each thing that an agent may want of files and terminals.
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
    ear: &AgentEventHandler,
) -> sdk::v1::Builder<
    sdk::Client,
    impl sdk::HandleDispatchFrom<sdk::Agent> + 'static,
    impl sdk::RunWithConnectionTo<sdk::Agent> + 'static,
    impl sdk::HandleConnectionClose<sdk::Agent> + 'static,
> {
    let (updates, questions, claims, releases) = (ear.clone(), ear.clone(), ear.clone(), ear.clone());
    let forms = ear.clone();
    let listening = sdk::Client
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
            async move |request, responder, _| questions.on_permission_request(request, responder).await,
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
        listening,
        ear,
        Read: ReadTextFileRequest,
        Write: WriteTextFileRequest,
        Create: CreateTerminalRequest,
        Output: TerminalOutputRequest,
        Wait: WaitForTerminalExitRequest,
        Kill: KillTerminalRequest,
        Release: ReleaseTerminalRequest,
    )
}

fn log_send_error(sent: Result<(), sdk::Error>) {
    if let Err(error) = sent {
        tracing::debug!(%error, "the agent is gone; its answer is dropped");
    }
}
