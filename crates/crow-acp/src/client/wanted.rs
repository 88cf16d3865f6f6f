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
pub struct Wanted {
    pub(super) session: SessionId,
    pub(super) request: Request,
}

/// What is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Want<'a> {
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
pub(super) enum Request {
    Read(wire::ReadTextFileRequest, Responder<wire::ReadTextFileResponse>),
    Write(wire::WriteTextFileRequest, Responder<wire::WriteTextFileResponse>),
    Create(wire::CreateTerminalRequest, Responder<wire::CreateTerminalResponse>),
    Output(wire::TerminalOutputRequest, Responder<wire::TerminalOutputResponse>),
    Wait(wire::WaitForTerminalExitRequest, Responder<wire::WaitForTerminalExitResponse>),
    Kill(wire::KillTerminalRequest, Responder<wire::KillTerminalResponse>),
    Release(wire::ReleaseTerminalRequest, Responder<wire::ReleaseTerminalResponse>),
}

impl Wanted {
    /// The session it is wanted for, in the agent's words.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// What is wanted.
    pub fn want(&self) -> Want<'_> {
        match &self.request {
            Request::Read(request, _) => Want::Read(&request.path),
            Request::Write(request, _) => Want::Write(&request.path),
            Request::Create(request, _) => Want::Run {
                program: &request.command,
                args: &request.args,
                cwd: request.cwd.as_deref(),
                env: request.env.iter().map(|one| format!("{}={}", one.name, one.value)).collect(),
            },
            Request::Output(..) | Request::Wait(..) | Request::Kill(..) | Request::Release(..) => {
                Want::Terminal
            }
        }
    }

    /// Answers that it is not to be had.
    pub fn refuse(self, why: &str) {
        let error = || v1::nobody(why);
        told(match self.request {
            Request::Read(_, responder) => responder.respond_with_error(error()),
            Request::Write(_, responder) => responder.respond_with_error(error()),
            Request::Create(_, responder) => responder.respond_with_error(error()),
            Request::Output(_, responder) => responder.respond_with_error(error()),
            Request::Wait(_, responder) => responder.respond_with_error(error()),
            Request::Kill(_, responder) => responder.respond_with_error(error()),
            Request::Release(_, responder) => responder.respond_with_error(error()),
        });
    }

    /// Has our own client do it, and answers what it answers. `room` is kept until then.
    pub fn pass_on(self, to: &Arc<Upstream>, room: impl Send + 'static) {
        if !to.has(&self) {
            return self.refuse("this client has no such thing, or the terminal is not one of this agent");
        }
        let (to, session) = (to.clone(), v1::session_id(&to.session));
        tokio::spawn(async move {
            let _room = room;
            match self.request {
                Request::Read(mut request, responder) => {
                    request.session_id = session;
                    to.relay(request, responder).await;
                }
                Request::Write(mut request, responder) => {
                    request.session_id = session;
                    to.relay(request, responder).await;
                }
                Request::Create(mut request, responder) => {
                    request.session_id = session;
                    to.open(request, responder).await;
                }
                Request::Output(mut request, responder) => {
                    request.session_id = session;
                    to.relay(request, responder).await;
                }
                Request::Wait(mut request, responder) => {
                    request.session_id = session;
                    to.relay(request, responder).await;
                }
                Request::Kill(mut request, responder) => {
                    request.session_id = session;
                    to.relay(request, responder).await;
                }
                Request::Release(mut request, responder) => {
                    to.terminals().open.remove(&*request.terminal_id.0);
                    request.session_id = session;
                    to.relay(request, responder).await;
                }
            }
        });
    }
}

/// The client that a child's requests are passed on to, as the session whose child it is. Dropping it gives back the
/// terminals that the child left open.
#[derive(Debug)]
pub struct Upstream {
    client: Client,
    session: SessionId,
    terminals: Mutex<Terminals>,
}

/// The terminals of one child.
#[derive(Debug, Default)]
struct Terminals {
    open: HashSet<String>,
    /// Those whose names come with their answers.
    n_coming: usize,
}

impl Terminals {
    /// Makes room for one more, where there is some.
    fn reserve(&mut self) -> bool {
        let is_room = self.open.len() + self.n_coming < TERMINALS_MAX;
        self.n_coming += usize::from(is_room);
        is_room
    }
}

impl Upstream {
    /// Passes on to a client, for a session of it.
    pub fn new(client: Client, session: SessionId) -> Self {
        Self { client, session, terminals: Mutex::default() }
    }

    fn terminals(&self) -> MutexGuard<'_, Terminals> {
        self.terminals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells whether the client can do it, and the child may name it.
    fn has(&self, wanted: &Wanted) -> bool {
        let can = self.client.abilities();
        let is_own = |id: &wire::TerminalId| can.terminals && self.terminals().open.contains(&*id.0);
        match &wanted.request {
            Request::Read(..) => can.reads_files,
            Request::Write(..) => can.writes_files,
            Request::Create(..) => can.terminals && self.terminals().reserve(),
            Request::Output(request, _) => is_own(&request.terminal_id),
            Request::Wait(request, _) => is_own(&request.terminal_id),
            Request::Kill(request, _) => is_own(&request.terminal_id),
            Request::Release(request, _) => is_own(&request.terminal_id),
        }
    }

    async fn relay<R: sdk::JsonRpcRequest>(&self, request: R, responder: Responder<R::Response>)
    where
        R::Response: sdk::JsonRpcResponse + Send,
    {
        // What was told before is there before it is asked for more.
        self.client.flushed(&self.session).await;
        // A request that is taken back is taken back here as well.
        let taken_back = responder.cancellation();
        let answered = tokio::select! {
            biased;
            () = taken_back.cancelled() => Err(sdk::Error::request_cancelled()),
            answered = self.client.request(request) => answered,
        };
        told(match answered {
            Ok(response) => responder.respond(response),
            Err(error) => responder.respond_with_error(error),
        });
    }

    async fn open(
        &self,
        request: wire::CreateTerminalRequest,
        responder: Responder<wire::CreateTerminalResponse>,
    ) {
        self.client.flushed(&self.session).await;
        let created = self.client.request(request).await;
        self.terminals().n_coming -= 1;
        told(match created {
            Ok(created) => {
                self.terminals().open.insert(created.terminal_id.0.to_string());
                responder.respond(created)
            }
            Err(error) => responder.respond_with_error(error),
        });
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        for id in std::mem::take(&mut self.terminals().open) {
            self.client.request_unheard(v1::release_terminal(&self.session, &id));
        }
    }
}

fn told(sent: Result<(), sdk::Error>) {
    if let Err(error) = sent {
        tracing::debug!(%error, "the agent is gone; its answer is dropped");
    }
}
