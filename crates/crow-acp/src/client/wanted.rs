//! What an agent wants of its client's files and terminals, and passing that on to a client of ours. Never decides
//! whether it may.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol as sdk;
use crow_core::SessionId;
use sdk::v1::schema as wire;

use crate::outbox::Client;
use crate::v1;

/// Terminals that one child may have open: more than that are forgotten ones.
const TERMINALS_MAX: usize = 64;

/// A request of an agent. Dropped, it is answered with an error.
#[derive(Debug)]
pub struct ClientAccessRequest {
    pub(super) session: SessionId,
    pub(super) request: ClientMethodCall,
}

/// What is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientAccess<'a> {
    /// The text of a file.
    Read(&'a Path),
    /// A file with other text.
    Write(&'a Path),
    /// A command in a terminal.
    Run {
        /// The program.
        program: &'a str,
        /// Its arguments.
        args: &'a [String],
        /// Where it runs, when the agent says so.
        cwd: Option<&'a Path>,
        /// Variables it gets, `NAME=VALUE` each.
        env: Vec<String>,
    },
    /// A look at a terminal, or its end.
    Terminal,
}

type Responder<T> = sdk::Responder<T, sdk::V1>;

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
    /// The session it is wanted for, in the agent's words.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// What is wanted.
    pub fn access(&self) -> ClientAccess<'_> {
        match &self.request {
            ClientMethodCall::Read(request, _) => ClientAccess::Read(&request.path),
            ClientMethodCall::Write(request, _) => ClientAccess::Write(&request.path),
            ClientMethodCall::Create(request, _) => ClientAccess::Run {
                program: &request.command,
                args: &request.args,
                cwd: request.cwd.as_deref(),
                env: request.env.iter().map(|one| format!("{}={}", one.name, one.value)).collect(),
            },
            ClientMethodCall::Output(..)
            | ClientMethodCall::Wait(..)
            | ClientMethodCall::Kill(..)
            | ClientMethodCall::Release(..) => ClientAccess::Terminal,
        }
    }

    /// Answers that it is not to be had.
    pub fn reject(self, why: &str) {
        let error = || v1::no_user_error(why);
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

    /// Has our own client do it, and answers what it answers. `room` is kept until then.
    pub fn forward_to(self, to: &Arc<ParentClient>, room: impl Send + 'static) {
        if !to.can_serve(&self) {
            return self.reject("this client has no such thing, or the terminal is not one of this agent");
        }
        let (to, session) = (to.clone(), v1::session_id(&to.session));
        tokio::spawn(async move {
            let _room = room;
            match self.request {
                ClientMethodCall::Read(mut request, responder) => {
                    request.session_id = session;
                    to.relay_request(request, responder).await;
                }
                ClientMethodCall::Write(mut request, responder) => {
                    request.session_id = session;
                    to.relay_request(request, responder).await;
                }
                ClientMethodCall::Create(mut request, responder) => {
                    request.session_id = session;
                    to.create_terminal(request, responder).await;
                }
                ClientMethodCall::Output(mut request, responder) => {
                    request.session_id = session;
                    to.relay_request(request, responder).await;
                }
                ClientMethodCall::Wait(mut request, responder) => {
                    request.session_id = session;
                    to.relay_request(request, responder).await;
                }
                ClientMethodCall::Kill(mut request, responder) => {
                    request.session_id = session;
                    to.relay_request(request, responder).await;
                }
                ClientMethodCall::Release(mut request, responder) => {
                    to.lock_terminals().open.remove(&*request.terminal_id.0);
                    request.session_id = session;
                    to.relay_request(request, responder).await;
                }
            }
        });
    }
}

/// The client that a child's requests are passed on to, as the session whose child it is. Dropping it gives back the
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
    open: HashSet<String>,
    /// Those whose names come with their answers.
    n_coming: usize,
}

impl ChildTerminals {
    /// Makes room for one more, where there is some.
    fn try_reserve(&mut self) -> bool {
        let is_room = self.open.len() + self.n_coming < TERMINALS_MAX;
        self.n_coming += usize::from(is_room);
        is_room
    }
}

impl ParentClient {
    /// Passes on to a client, for a session of it.
    pub fn new(client: Client, session: SessionId) -> Self {
        Self { client, session, terminals: Mutex::default() }
    }

    fn lock_terminals(&self) -> MutexGuard<'_, ChildTerminals> {
        self.terminals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells whether the client can do it, and the child may name it.
    fn can_serve(&self, wanted: &ClientAccessRequest) -> bool {
        let can = self.client.capabilities();
        let is_own = |id: &wire::TerminalId| can.terminals && self.lock_terminals().open.contains(&*id.0);
        match &wanted.request {
            ClientMethodCall::Read(..) => can.reads_files,
            ClientMethodCall::Write(..) => can.writes_files,
            ClientMethodCall::Create(..) => can.terminals && self.lock_terminals().try_reserve(),
            ClientMethodCall::Output(request, _) => is_own(&request.terminal_id),
            ClientMethodCall::Wait(request, _) => is_own(&request.terminal_id),
            ClientMethodCall::Kill(request, _) => is_own(&request.terminal_id),
            ClientMethodCall::Release(request, _) => is_own(&request.terminal_id),
        }
    }

    async fn relay_request<R: sdk::JsonRpcRequest>(&self, request: R, responder: Responder<R::Response>)
    where
        R::Response: sdk::JsonRpcResponse + Send,
    {
        // What was told before is there before it is asked for more.
        self.client.flush_updates(&self.session).await;
        // A request that is taken back is taken back here as well.
        let taken_back = responder.cancellation();
        let answered = tokio::select! {
            biased;
            () = taken_back.cancelled() => Err(sdk::Error::request_cancelled()),
            answered = self.client.send_request(request) => answered,
        };
        log_send_error(match answered {
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
        let created = self.client.send_request(request).await;
        self.lock_terminals().n_coming -= 1;
        log_send_error(match created {
            Ok(created) => {
                self.lock_terminals().open.insert(created.terminal_id.0.to_string());
                responder.respond(created)
            }
            Err(error) => responder.respond_with_error(error),
        });
    }
}

impl Drop for ParentClient {
    fn drop(&mut self) {
        for id in std::mem::take(&mut self.lock_terminals().open) {
            self.client.send_detached_request(v1::release_terminal(&self.session, &id));
        }
    }
}

fn log_send_error(sent: Result<(), sdk::Error>) {
    if let Err(error) = sent {
        tracing::debug!(%error, "the agent is gone; its answer is dropped");
    }
}
