//! An agent's requests for its client's files and terminals, and forwarding them to our own client. Never decides
//! whether they are permitted.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol as sdk;
use crow_core::SessionId;
use sdk::v1::schema as wire;

use crate::connected_client::Client;
use crate::v1;

/// The terminals that one child may have open; more are forgotten ones.
const TERMINALS_MAX: usize = 64;

/// A request of an agent. Dropping it answers with an error.
#[derive(Debug)]
pub struct ClientAccessRequest {
    pub(super) session: SessionId,
    pub(super) request: ClientMethodCall,
}

/// The requested access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientAccess<'a> {
    /// Reading a file.
    Read(&'a Path),
    /// Writing a file.
    Write(&'a Path),
    /// Running a command in a terminal.
    Run {
        program: &'a str,
        args: &'a [String],
        /// The working directory, if the agent gives one.
        cwd: Option<&'a Path>,
        /// Variables as `NAME=VALUE`.
        env: Vec<String>,
    },
    /// Reading a terminal, or ending it.
    Terminal,
}

pub(super) type Responder<T> = sdk::Responder<T, sdk::V1>;

#[derive(Debug)]
pub(super) enum ClientMethodCall {
    Read(wire::ReadTextFileRequest, Responder<wire::ReadTextFileResponse>),
    Write(wire::WriteTextFileRequest, Responder<wire::WriteTextFileResponse>),
    Create(wire::CreateTerminalRequest, Responder<wire::CreateTerminalResponse>),
    Output(wire::TerminalOutputRequest, Responder<wire::TerminalOutputResponse>),
    Wait(wire::WaitForTerminalExitRequest, Responder<wire::WaitForTerminalExitResponse>),
    Kill(wire::KillTerminalRequest, Responder<wire::KillTerminalResponse>),
    Release(wire::ReleaseTerminalRequest, Responder<wire::ReleaseTerminalResponse>),
}

impl ClientAccessRequest {
    /// The agent's ID of the session.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Returns the requested access.
    pub fn access(&self) -> ClientAccess<'_> {
        match &self.request {
            ClientMethodCall::Read(request, _) => ClientAccess::Read(&request.path),
            ClientMethodCall::Write(request, _) => ClientAccess::Write(&request.path),
            ClientMethodCall::Create(request, _) => ClientAccess::Run {
                program: &request.command,
                args: &request.args,
                cwd: request.cwd.as_deref(),
                env: request
                    .env
                    .iter()
                    .map(|variable| format!("{}={}", variable.name, variable.value))
                    .collect(),
            },
            ClientMethodCall::Output(..)
            | ClientMethodCall::Wait(..)
            | ClientMethodCall::Kill(..)
            | ClientMethodCall::Release(..) => ClientAccess::Terminal,
        }
    }

    /// Rejects it.
    pub fn reject(self, reason: &str) {
        let error = || v1::no_user_error(reason);
        log_send_error(match self.request {
            ClientMethodCall::Read(_, responder) => responder.respond_with_error(error()),
            ClientMethodCall::Write(_, responder) => responder.respond_with_error(error()),
            ClientMethodCall::Create(_, responder) => responder.respond_with_error(error()),
            ClientMethodCall::Output(_, responder) => responder.respond_with_error(error()),
            ClientMethodCall::Wait(_, responder) => responder.respond_with_error(error()),
            ClientMethodCall::Kill(_, responder) => responder.respond_with_error(error()),
            ClientMethodCall::Release(_, responder) => responder.respond_with_error(error()),
        });
    }

    /// Forwards it to our own client, and returns the client's answer. `guard` is held until then.
    pub fn forward_to(self, parent: &Arc<ParentClient>, guard: impl Send + 'static) {
        if !parent.can_serve(&self) {
            return self
                .reject("the client does not support this, or the terminal does not belong to this agent");
        }
        let (parent, session) = (parent.clone(), v1::session_id(&parent.session));
        tokio::spawn(async move {
            let _guard = guard;
            match self.request {
                ClientMethodCall::Read(mut request, responder) => {
                    request.session_id = session;
                    parent.relay_request(request, responder).await;
                }
                ClientMethodCall::Write(mut request, responder) => {
                    request.session_id = session;
                    parent.relay_request(request, responder).await;
                }
                ClientMethodCall::Create(mut request, responder) => {
                    request.session_id = session;
                    wrap_command_line(&mut request);
                    parent.create_terminal(request, responder).await;
                }
                ClientMethodCall::Output(mut request, responder) => {
                    request.session_id = session;
                    parent.relay_request(request, responder).await;
                }
                ClientMethodCall::Wait(mut request, responder) => {
                    request.session_id = session;
                    parent.relay_request(request, responder).await;
                }
                ClientMethodCall::Kill(mut request, responder) => {
                    request.session_id = session;
                    parent.relay_request(request, responder).await;
                }
                ClientMethodCall::Release(mut request, responder) => {
                    parent.lock_terminals().open_ids.remove(&*request.terminal_id.0);
                    request.session_id = session;
                    parent.relay_request(request, responder).await;
                }
            }
        });
    }
}

/// The client that receives a child's requests, as the session that started the child. Dropping it releases the
/// terminals that the child left open.
#[derive(Debug)]
pub struct ParentClient {
    client: Client,
    session: SessionId,
    terminals: Mutex<ChildTerminals>,
}

/// The terminals of one child.
#[derive(Debug, Default)]
struct ChildTerminals {
    open_ids: HashSet<String>,
    /// Terminals whose IDs are still pending.
    n_pending: usize,
}

impl ChildTerminals {
    /// Reserves a place for one more, if there is one.
    fn try_reserve(&mut self) -> bool {
        let has_room = self.open_ids.len() + self.n_pending < TERMINALS_MAX;
        self.n_pending += usize::from(has_room);
        has_room
    }
}

impl ParentClient {
    /// Forwards to a client, for a session of it.
    pub fn new(client: Client, session: SessionId) -> Self {
        Self { client, session, terminals: Mutex::default() }
    }

    fn lock_terminals(&self) -> MutexGuard<'_, ChildTerminals> {
        self.terminals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the client supports it, and the terminal belongs to the child.
    fn can_serve(&self, request: &ClientAccessRequest) -> bool {
        let capabilities = self.client.capabilities();
        let is_owned =
            |id: &wire::TerminalId| capabilities.terminals && self.lock_terminals().open_ids.contains(&*id.0);
        match &request.request {
            ClientMethodCall::Read(..) => capabilities.reads_files,
            ClientMethodCall::Write(..) => capabilities.writes_files,
            ClientMethodCall::Create(..) => capabilities.terminals && self.lock_terminals().try_reserve(),
            ClientMethodCall::Output(request, _) => is_owned(&request.terminal_id),
            ClientMethodCall::Wait(request, _) => is_owned(&request.terminal_id),
            ClientMethodCall::Kill(request, _) => is_owned(&request.terminal_id),
            ClientMethodCall::Release(request, _) => is_owned(&request.terminal_id),
        }
    }

    async fn relay_request<R: sdk::JsonRpcRequest>(&self, request: R, responder: Responder<R::Response>)
    where
        R::Response: sdk::JsonRpcResponse + Send,
    {
        // Earlier updates precede the request.
        self.client.flush_updates(&self.session).await;
        // A cancelled request is cancelled here as well.
        let cancellation = responder.cancellation();
        let result = tokio::select! {
            biased;
            () = cancellation.cancelled() => Err(sdk::Error::request_cancelled()),
            answered = self.client.send_request(request) => answered,
        };
        log_send_error(match result {
            Ok(response) => responder.respond(response),
            Err(error) => responder.respond_with_error(error),
        });
    }

    async fn create_terminal(
        &self,
        request: wire::CreateTerminalRequest,
        responder: Responder<wire::CreateTerminalResponse>,
    ) {
        self.client.flush_updates(&self.session).await;
        let result = self.client.send_request(request).await;
        self.lock_terminals().n_pending -= 1;
        log_send_error(match result {
            Ok(result) => {
                self.lock_terminals().open_ids.insert(result.terminal_id.0.to_string());
                responder.respond(result)
            }
            Err(error) => responder.respond_with_error(error),
        });
    }
}

impl Drop for ParentClient {
    fn drop(&mut self) {
        for id in std::mem::take(&mut self.lock_terminals().open_ids) {
            self.client.send_detached_request(v1::release_terminal(&self.session, &id));
        }
    }
}

/// Passes a whole command line to a shell: some agents give it as the command, and not all clients use a shell.
pub(super) fn wrap_command_line(request: &mut wire::CreateTerminalRequest) {
    let is_word = |c: char| c.is_alphanumeric() || "_-./:+@%,=".contains(c);
    if request.args.is_empty() && !request.command.chars().all(is_word) {
        request.args = vec!["-c".to_owned(), std::mem::replace(&mut request.command, "/bin/sh".to_owned())];
    }
}

pub(super) fn log_send_error(result: Result<(), sdk::Error>) {
    if let Err(error) = result {
        tracing::debug!(%error, "the agent has disconnected; its answer was dropped");
    }
}
