//! Converts the requests of a client, one method each, and forwards them to the host. The SDK's responder travels in
//! the answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agent_client_protocol as sdk;
use crow_core::{Failure, FailureKind, SessionId};
use sdk::v1::schema as wire;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::capabilities::SharedCapabilities;
use crate::incoming::{
    AgentInfo, IncomingRequest, OpenSessionResult, PromptId, ResponseSender, SessionLocation, SessionOpenKind,
};
use crate::outbox::Outbox;
use crate::v1::{
    self, ListPromptsRequest, ListPromptsResponse, SetModelRequest, SetModelResponse, SteerRequest,
    SteerResponse,
};

type HandlerResult = Result<(), sdk::Error>;

type Responder<T> = sdk::Responder<T, sdk::V1>;

fn response_sender<T, W>(
    responder: Responder<W>,
    to_response: impl FnOnce(T) -> Result<W, Failure> + Send + 'static,
) -> ResponseSender<T>
where
    T: 'static,
    W: sdk::JsonRpcResponse,
{
    ResponseSender::new(move |result: Result<T, Failure>| {
        let result = match result.and_then(to_response) {
            Ok(response) => responder.respond(response),
            Err(failure) => responder.respond_with_error(v1::to_rpc_error(&failure)),
        };
        if let Err(error) = result {
            tracing::debug!(%error, "the client has disconnected; its answer was dropped");
        }
    })
}

/// The receiver of requests.
pub(super) struct RequestHandler<E> {
    pub(super) incoming: mpsc::Sender<E>,
    pub(super) agent_info: Arc<AgentInfo>,
    pub(super) capabilities: SharedCapabilities,
    pub(super) n_prompts: Arc<AtomicU64>,
    pub(super) outbox: Arc<Outbox>,
}

impl<E> Clone for RequestHandler<E> {
    fn clone(&self) -> Self {
        let Self { incoming, agent_info, capabilities, n_prompts, outbox } = self;
        Self {
            incoming: incoming.clone(),
            agent_info: agent_info.clone(),
            capabilities: capabilities.clone(),
            n_prompts: n_prompts.clone(),
            outbox: outbox.clone(),
        }
    }
}

impl<E: From<IncomingRequest> + Send + 'static> RequestHandler<E> {
    /// Forwards a request to the host. If the host is gone the process is ending, and the dropped answer says so.
    pub(super) async fn forward_request(&self, request: IncomingRequest) -> HandlerResult {
        self.outbox.resume_updates();
        if self.incoming.send(request.into()).await.is_err() {
            tracing::debug!("a request came after the host ended");
        }
        Ok(())
    }

    /// Returns the sender of the answer that opens a session, whose updates follow it after a moment.
    fn opening_sender<W: sdk::JsonRpcResponse>(
        &self,
        responder: Responder<W>,
        to_response: impl FnOnce(&OpenSessionResult) -> W + Send + 'static,
    ) -> ResponseSender<OpenSessionResult> {
        let outbox = self.outbox.clone();
        response_sender(responder, move |opened: OpenSessionResult| {
            outbox.pause_updates(&opened.session);
            Ok(to_response(&opened))
        })
    }

    async fn forward_open(
        &self,
        kind: SessionOpenKind,
        location: Result<SessionLocation, Failure>,
        answer: ResponseSender<OpenSessionResult>,
    ) -> HandlerResult {
        match location {
            Ok(location) => self.forward_request(IncomingRequest::Open { kind, location, answer }).await,
            Err(failure) => reject_request(answer, failure),
        }
    }

    pub(super) async fn initialize(
        &self,
        request: wire::InitializeRequest,
        responder: Responder<wire::InitializeResponse>,
    ) -> HandlerResult {
        self.capabilities.set_once(v1::client_capabilities(&request));
        responder.respond(v1::initialize_response(&self.agent_info, self.capabilities.get()))?;
        self.forward_request(IncomingRequest::Initialized).await
    }

    pub(super) async fn sign_in(
        &self,
        request: wire::AuthenticateRequest,
        responder: Responder<wire::AuthenticateResponse>,
    ) -> HandlerResult {
        let answer = response_sender(responder, |()| Ok(wire::AuthenticateResponse::new()));
        match v1::check_sign_in_method(&request.method_id.0) {
            Ok(()) => self.forward_request(IncomingRequest::Authenticate { answer }).await,
            Err(failure) => reject_request(answer, failure),
        }
    }

    pub(super) async fn sign_out(
        &self,
        _: wire::LogoutRequest,
        responder: Responder<wire::LogoutResponse>,
    ) -> HandlerResult {
        let answer = response_sender(responder, |()| Ok(wire::LogoutResponse::new()));
        self.forward_request(IncomingRequest::Logout { answer }).await
    }

    pub(super) async fn new_session(
        &self,
        request: wire::NewSessionRequest,
        responder: Responder<wire::NewSessionResponse>,
    ) -> HandlerResult {
        let answer = self.opening_sender(responder, v1::new_session_response);
        let location = v1::session_location(request.cwd, request.additional_directories, request.mcp_servers);
        self.forward_open(SessionOpenKind::New, location, answer).await
    }

    pub(super) async fn load_session(
        &self,
        request: wire::LoadSessionRequest,
        responder: Responder<wire::LoadSessionResponse>,
    ) -> HandlerResult {
        let answer = self.opening_sender(responder, v1::load_session_response);
        let kind = SessionOpenKind::Load(SessionId::new(&*request.session_id.0));
        let location = v1::session_location(request.cwd, request.additional_directories, request.mcp_servers);
        self.forward_open(kind, location, answer).await
    }

    pub(super) async fn resume_session(
        &self,
        request: wire::ResumeSessionRequest,
        responder: Responder<wire::ResumeSessionResponse>,
    ) -> HandlerResult {
        let answer = self.opening_sender(responder, v1::resume_session_response);
        let kind = SessionOpenKind::Resume(SessionId::new(&*request.session_id.0));
        let location = v1::session_location(request.cwd, request.additional_directories, request.mcp_servers);
        self.forward_open(kind, location, answer).await
    }

    pub(super) async fn fork_session(
        &self,
        request: wire::ForkSessionRequest,
        responder: Responder<wire::ForkSessionResponse>,
    ) -> HandlerResult {
        let answer = self.opening_sender(responder, v1::fork_session_response);
        let session = SessionId::new(&*request.session_id.0);
        let kind = SessionOpenKind::Fork { session, before: v1::fork_end(request.meta.as_ref()) };
        let location = v1::session_location(request.cwd, request.additional_directories, request.mcp_servers);
        self.forward_open(kind, location, answer).await
    }

    pub(super) async fn list_sessions(
        &self,
        request: wire::ListSessionsRequest,
        responder: Responder<wire::ListSessionsResponse>,
    ) -> HandlerResult {
        let answer = response_sender(responder, |page| Ok(v1::list_sessions_response(page)));
        self.forward_request(IncomingRequest::ListSessions {
            cwd: request.cwd,
            cursor: request.cursor,
            answer,
        })
        .await
    }

    pub(super) async fn list_prompts(
        &self,
        request: ListPromptsRequest,
        responder: Responder<ListPromptsResponse>,
    ) -> HandlerResult {
        let answer = response_sender(responder, |prompts| Ok(v1::list_prompts_response(prompts)));
        let session = SessionId::new(&*request.session_id.0);
        self.forward_request(IncomingRequest::ListPrompts { session, answer }).await
    }

    pub(super) async fn close_session(
        &self,
        request: wire::CloseSessionRequest,
        responder: Responder<wire::CloseSessionResponse>,
    ) -> HandlerResult {
        let answer = response_sender(responder, |()| Ok(wire::CloseSessionResponse::new()));
        self.forward_request(IncomingRequest::Close {
            session: SessionId::new(&*request.session_id.0),
            answer,
        })
        .await
    }

    pub(super) async fn delete_session(
        &self,
        request: wire::DeleteSessionRequest,
        responder: Responder<wire::DeleteSessionResponse>,
    ) -> HandlerResult {
        let answer = response_sender(responder, |()| Ok(wire::DeleteSessionResponse::new()));
        self.forward_request(IncomingRequest::Delete {
            session: SessionId::new(&*request.session_id.0),
            answer,
        })
        .await
    }

    pub(super) async fn start_prompt(
        &self,
        request: wire::PromptRequest,
        responder: Responder<wire::PromptResponse>,
    ) -> HandlerResult {
        let session = SessionId::new(&*request.session_id.0);
        let prompt_id = PromptId(self.n_prompts.fetch_add(1, Ordering::Relaxed));
        let answered_token = CancellationToken::new();
        self.watch_for_cancellation(&session, prompt_id, responder.cancellation(), answered_token.clone());
        let answered_token = answered_token.drop_guard();
        let answer = response_sender(responder, move |result| {
            drop(answered_token);
            v1::prompt_response(result)
        });
        let turn_scope = v1::turn_scope(request.meta.as_ref());
        match v1::prompt_blocks(request.prompt) {
            Ok(content) => {
                self.forward_request(IncomingRequest::Prompt {
                    session,
                    prompt_id,
                    content,
                    turn_scope,
                    answer,
                })
                .await
            }
            Err(failure) => reject_request(answer, failure),
        }
    }

    /// Informs the host when the client cancels a prompt before it is answered.
    fn watch_for_cancellation(
        &self,
        session: &SessionId,
        prompt_id: PromptId,
        cancellation: sdk::RequestCancellation,
        answered_token: CancellationToken,
    ) {
        let (handler, session) = (self.clone(), session.clone());
        tokio::spawn(async move {
            tokio::select! {
                biased;
                () = answered_token.cancelled() => {}
                () = cancellation.cancelled() => {
                    // A failure is already in the log.
                    let _ = handler.forward_request(IncomingRequest::Withdraw { session, prompt_id }).await;
                }
            }
        });
    }

    pub(super) async fn steer_turn(
        &self,
        request: SteerRequest,
        responder: Responder<SteerResponse>,
    ) -> HandlerResult {
        let answer = response_sender(responder, |outcome| Ok(v1::steer_response(outcome)));
        let session = SessionId::new(&*request.session_id.0);
        match v1::prompt_blocks(request.prompt) {
            Ok(content) => self.forward_request(IncomingRequest::Steer { session, content, answer }).await,
            Err(failure) => reject_request(answer, failure),
        }
    }

    pub(super) async fn set_mode(
        &self,
        request: wire::SetSessionModeRequest,
        responder: Responder<wire::SetSessionModeResponse>,
    ) -> HandlerResult {
        let answer = response_sender(responder, |_| Ok(wire::SetSessionModeResponse::new()));
        let session = SessionId::new(&*request.session_id.0);
        let (option, value) = ("mode".to_owned(), request.mode_id.0.to_string());
        self.forward_request(IncomingRequest::SetOption { session, option, value, answer }).await
    }

    pub(super) async fn set_model(
        &self,
        request: SetModelRequest,
        responder: Responder<SetModelResponse>,
    ) -> HandlerResult {
        let answer = response_sender(responder, |_| Ok(SetModelResponse::default()));
        let session = SessionId::new(&*request.session_id.0);
        let (option, value) = ("model".to_owned(), request.model_id);
        self.forward_request(IncomingRequest::SetOption { session, option, value, answer }).await
    }

    pub(super) async fn set_option(
        &self,
        request: wire::SetSessionConfigOptionRequest,
        responder: Responder<wire::SetSessionConfigOptionResponse>,
    ) -> HandlerResult {
        let to_response =
            |options| Ok(wire::SetSessionConfigOptionResponse::new(v1::config_options(&options)));
        let answer = response_sender(responder, to_response);
        let session = SessionId::new(&*request.session_id.0);
        let option = request.config_id.0.to_string();
        match request.value.as_value_id() {
            Some(value) => {
                let value = value.0.to_string();
                self.forward_request(IncomingRequest::SetOption { session, option, value, answer }).await
            }
            None => {
                let reason = format!("the option {option} accepts only its listed values");
                reject_request(answer, Failure::new(FailureKind::InvalidValue, reason))
            }
        }
    }
}

fn reject_request<T>(answer: ResponseSender<T>, failure: Failure) -> HandlerResult {
    answer.send(Err(failure));
    Ok(())
}
