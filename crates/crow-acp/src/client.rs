//! The client's end of a connection: drives an agent and hears what it says.

use std::path::Path;

use agent_client_protocol as sdk;
use crow_core::{CommandInfo, Content, Failure, FailureKind, PlanEntry, SessionId, Status, ToolKind};
use sdk::schema::ProtocolVersion;
use sdk::v1::schema as wire;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::outbox::Subject;
use crate::transport::Lines;
use crate::v1;

/// What an agent tells a client.
#[derive(Debug)]
pub enum ClientEvent {
    /// An update of a session.
    Heard {
        /// Of which session.
        session: SessionId,
        /// What was said.
        heard: Heard,
    },
    /// A question that needs the person; dropped, it is answered as one of a turn that was stopped.
    Permission {
        /// In which session.
        session: SessionId,
        /// What is asked.
        question: PermissionQuestion,
        /// Where the chosen id goes.
        answer: oneshot::Sender<PermissionAnswer>,
    },
}

/// An update as a client hears it, from any agent.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// What the person said, in replay.
    Prompt(String),
    /// The model's words.
    Text(String),
    /// The model's reasoning.
    Thought(String),
    /// A call, new or changed; what is absent stays as it was.
    Call {
        /// The agent's name for it.
        id: String,
        /// One line for the person.
        title: Option<String>,
        /// For the icon.
        kind: Option<ToolKind>,
        /// Where it stands.
        status: Option<Status>,
        /// What is shown in it.
        content: Option<Vec<Content>>,
        /// What the model passed.
        input: Option<Value>,
    },
    /// The whole plan.
    Plan(Vec<PlanEntry>),
    /// The session's title.
    Title(String),
    /// How full the context is.
    Usage {
        /// Tokens in context.
        used: u64,
        /// The model's window.
        size: u64,
    },
    /// The mode in force.
    Mode(String),
    /// The commands on offer.
    Commands(Vec<CommandInfo>),
    /// Something the person should know.
    Notice(String),
    /// How an attempt ended to make the conversation shorter for the model.
    Compaction(String),
}

/// A call that needs a person's word.
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionQuestion {
    /// What a yes would be about.
    pub subject: Subject,
    /// The agent's name for the call.
    pub call: String,
    /// What it would do.
    pub title: String,
    /// With what.
    pub input: Option<Value>,
    /// What is shown with it.
    pub content: Vec<Content>,
    /// The answers on offer.
    pub choices: Vec<PermissionChoice>,
}

/// What a client answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionAnswer {
    /// The id of one of the choices.
    Chosen(String),
    /// There is nobody to ask.
    Nobody {
        /// Why not, to stand in brackets.
        why: &'static str,
    },
}

/// One answer on offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionChoice {
    /// What to answer.
    pub id: String,
    /// What the person reads.
    pub name: String,
    /// Whether it is a yes.
    pub allows: bool,
    /// Whether it holds from here on.
    pub always: bool,
}

/// Why a turn stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The agent has nothing more to do.
    EndTurn,
    /// The output limit.
    MaxTokens,
    /// The limit of model calls.
    MaxTurnRequests,
    /// The model refused.
    Refusal,
    /// It was stopped.
    Cancelled,
}

impl StopReason {
    /// Spells the reason as the protocol does.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EndTurn => "end_turn",
            Self::MaxTokens => "max_tokens",
            Self::MaxTurnRequests => "max_turn_requests",
            Self::Refusal => "refusal",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A connected agent, as a client drives it.
#[derive(Debug, Clone)]
pub struct Connection {
    agent: sdk::v1::ConnectionTo<sdk::Agent>,
}

impl Connection {
    /// Opens a session.
    pub async fn new_session(&self, cwd: &Path) -> Result<SessionId, Failure> {
        let opened = self.request(wire::NewSessionRequest::new(cwd)).await?;
        Ok(SessionId::new(&*opened.session_id.0))
    }

    /// Opens a stored session; what was said in it is heard before this returns.
    pub async fn load_session(&self, session: &SessionId, cwd: &Path) -> Result<(), Failure> {
        self.request(wire::LoadSessionRequest::new(v1::session_id(session), cwd)).await.map(drop)
    }

    /// Opens a copy of a stored session and gives its name.
    pub async fn fork_session(&self, session: &SessionId, cwd: &Path) -> Result<SessionId, Failure> {
        let opened = self.request(wire::ForkSessionRequest::new(v1::session_id(session), cwd)).await?;
        Ok(SessionId::new(&*opened.session_id.0))
    }

    /// Changes an option of a session.
    pub async fn set_option(&self, session: &SessionId, option: &str, value: &str) -> Result<(), Failure> {
        self.request(wire::SetSessionConfigOptionRequest::new(
            v1::session_id(session),
            wire::SessionConfigId::new(option),
            wire::SessionConfigValueId::new(value),
        ))
        .await
        .map(drop)
    }

    /// Sends a prompt and waits for the end of its turn.
    pub async fn prompt(&self, session: &SessionId, text: &str) -> Result<StopReason, Failure> {
        let ended =
            self.request(wire::PromptRequest::new(v1::session_id(session), vec![text.into()])).await?;
        Ok(v1::stop_reason(ended.stop_reason))
    }

    /// Stops the turn that runs; its prompt is answered all the same.
    pub fn cancel(&self, session: &SessionId) {
        if let Err(error) =
            self.agent.send_notification(wire::CancelNotification::new(v1::session_id(session)))
        {
            tracing::debug!(%error, "the agent is gone; nothing is left to cancel");
        }
    }

    async fn request<R: sdk::JsonRpcRequest>(&self, request: R) -> Result<R::Response, Failure>
    where
        R::Response: Send,
    {
        self.agent.send_request(request).block_task().await.map_err(|error| v1::failure(&error))
    }
}

/// Connects to an agent, says hello, and runs `main` with the connection. What the agent says goes to `events`.
pub async fn drive<R>(
    lines: Lines,
    version: &'static str,
    events: mpsc::Sender<ClientEvent>,
    main: impl AsyncFnOnce(Connection) -> R,
) -> Result<R, Failure> {
    let questions = events.clone();
    let driven = sdk::Client
        .v1()
        .name("crow-client")
        .on_receive_notification(
            async move |update: wire::SessionNotification, _| {
                let session = SessionId::new(&*update.session_id.0);
                if let Some(heard) = v1::heard(update.update)
                    && events.send(ClientEvent::Heard { session, heard }).await.is_err()
                {
                    tracing::debug!("nobody listens to the agent any longer");
                }
                Ok(())
            },
            sdk::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: wire::RequestPermissionRequest,
                        responder: sdk::Responder<wire::RequestPermissionResponse, sdk::V1>,
                        _| {
                let (session, question) = v1::question(request);
                let (answer, answered) = oneshot::channel();
                if questions.send(ClientEvent::Permission { session, question, answer }).await.is_err() {
                    tracing::debug!("nobody is left to answer the agent");
                }
                tokio::spawn(async move {
                    let sent = match answered.await {
                        Ok(PermissionAnswer::Chosen(id)) => {
                            responder.respond(v1::permission_response(Some(id)))
                        }
                        Ok(PermissionAnswer::Nobody { why }) => responder.respond_with_error(v1::nobody(why)),
                        Err(_) => responder.respond(v1::permission_response(None)),
                    };
                    if let Err(error) = sent {
                        tracing::debug!(%error, "the agent is gone; its question is dropped");
                    }
                });
                Ok(())
            },
            sdk::on_receive_request!(),
        )
        .connect_with(sdk::Lines::new(lines.outgoing, lines.incoming), async |agent| {
            let session =
                wire::ClientSessionCapabilities::new().compaction(wire::CompactionCapabilities::new());
            let hello = wire::InitializeRequest::new(ProtocolVersion::V1)
                .client_capabilities(wire::ClientCapabilities::new().session(session))
                .client_info(wire::Implementation::new("crow-cli", version));
            agent.send_request(hello).block_task().await?;
            Ok(main(Connection { agent }).await)
        })
        .await;
    driven.map_err(|error| {
        Failure::new(FailureKind::Protocol, format!("The connection to the agent broke: {}.", error.message))
    })
}
