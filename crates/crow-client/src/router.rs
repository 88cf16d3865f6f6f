//! Receives everything that an agent sends: its updates go to the running turns, its requests are answered. Owns which
//! sessions and turns there are.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use crow_acp::{
    AgentPermissionRequest, AgentUpdate, ClientAccessRequest, ClientCall, ClientCallError, ClientEvent,
    PermissionAnswer, PromptOutcome,
};
use crow_core::SessionId;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::error::AgentError;
use crate::files::{self, FileAccess};
use crate::permission::PermissionHandler;
use crate::terminals::{TerminalTable, wait_for_exit};

/// Requests of one agent that may be open at once; agents have a handful.
const OPEN_REQUESTS_MAX: usize = 64;

/// An item of a turn's stream.
#[derive(Debug)]
pub(crate) enum TurnItem {
    Update(AgentUpdate),
    Raw(Value),
    /// The last one.
    End(Result<PromptOutcome, AgentError>),
}

/// A change of the sessions and turns that the router knows.
#[derive(Debug)]
pub(crate) enum RouterCommand {
    /// A session was opened; its agent may use files in its directory.
    OpenSession {
        session: SessionId,
        cwd: PathBuf,
    },
    BeginTurn {
        session: SessionId,
        turn: RoutedTurn,
    },
    /// The turn has ended; answered when everything that was received before is in its stream.
    EndTurn {
        session: SessionId,
        flushed: oneshot::Sender<()>,
    },
}

/// The receiver of a session's updates.
#[derive(Debug)]
pub(crate) struct RoutedTurn {
    pub(crate) items: mpsc::Sender<TurnItem>,
    /// Ends the questions of the turn, once the agent has been told to cancel it.
    pub(crate) questions_end: CancellationToken,
}

/// The answers to an agent's requests.
#[derive(Debug, Clone)]
pub(crate) struct ClientPolicy {
    pub(crate) permission: PermissionHandler,
    pub(crate) files: FileAccess,
    pub(crate) terminals: bool,
}

/// Routes the messages of one agent.
#[derive(Debug)]
pub(crate) struct EventRouter {
    policy: ClientPolicy,
    sessions: HashMap<SessionId, PathBuf>,
    turns: HashMap<SessionId, RoutedTurn>,
    terminals: TerminalTable,
    request_slots: Arc<Semaphore>,
    /// Cancelled when the agent is shut down.
    closing: CancellationToken,
}

impl EventRouter {
    pub(crate) fn new(policy: ClientPolicy, closing: CancellationToken) -> Self {
        Self {
            policy,
            sessions: HashMap::new(),
            turns: HashMap::new(),
            terminals: TerminalTable::new(),
            request_slots: Arc::new(Semaphore::new(OPEN_REQUESTS_MAX)),
            closing,
        }
    }

    /// Routes until the agent has disconnected and everything it sent is handled.
    pub(crate) async fn run(
        mut self,
        mut events: mpsc::Receiver<ClientEvent>,
        mut commands: mpsc::Receiver<RouterCommand>,
    ) {
        loop {
            tokio::select! {
                biased;
                Some(command) = commands.recv() => self.apply_command(command, &mut events).await,
                event = events.recv() => match event {
                    Some(event) => self.route_event(event).await,
                    None => return,
                },
            }
        }
    }

    async fn apply_command(&mut self, command: RouterCommand, events: &mut mpsc::Receiver<ClientEvent>) {
        match command {
            RouterCommand::OpenSession { session, cwd } => {
                self.sessions.insert(session, cwd);
            }
            RouterCommand::BeginTurn { session, turn } => {
                self.turns.insert(session, turn);
            }
            RouterCommand::EndTurn { session, flushed } => {
                // The response is received after these.
                for _ in 0..events.len() {
                    let Ok(event) = events.try_recv() else { break };
                    self.route_event(event).await;
                }
                self.turns.remove(&session);
                if flushed.send(()).is_err() {
                    tracing::debug!("nothing waits for the end of a turn");
                }
            }
        }
    }

    async fn route_event(&mut self, event: ClientEvent) {
        match event {
            ClientEvent::Update { session, update, message: _ } => {
                self.send_item(&session, TurnItem::Update(update)).await;
            }
            ClientEvent::RawUpdate { session, update } => {
                self.send_item(&session, TurnItem::Raw(update)).await;
            }
            ClientEvent::Permission { session, question, answer } => {
                self.answer_question(&session, *question, answer);
            }
            ClientEvent::AccessRequest(request) => self.serve_request(*request).await,
            // Neither forms nor children are declared; a dropped request is rejected.
            ClientEvent::Form { .. } | ClientEvent::Claim { .. } | ClientEvent::Release { .. } => {}
        }
    }

    /// Waits until the turn's stream has room, which holds the agent back. Updates between turns are dropped.
    async fn send_item(&mut self, session: &SessionId, item: TurnItem) {
        let Some(turn) = self.turns.get(session) else { return };
        if turn.items.send(item).await.is_err() {
            // The stream was dropped; its turn is being cancelled.
            tracing::debug!(%session, "updates of a turn are no longer received");
        }
    }

    fn answer_question(
        &self,
        session: &SessionId,
        question: AgentPermissionRequest,
        mut answer: oneshot::Sender<PermissionAnswer>,
    ) {
        // A question dropped without an answer is answered as for a cancelled turn.
        let Some(permit) = self.try_reserve() else { return };
        let handler = self.policy.permission.clone();
        let end =
            self.turns.get(session).map_or_else(|| self.closing.clone(), |turn| turn.questions_end.clone());
        tokio::spawn(async move {
            let _permit = permit;
            let choice = tokio::select! {
                biased;
                () = end.cancelled() => None,
                () = answer.closed() => None,
                choice = handler.decide(question) => choice,
            };
            if let Some(choice) = choice
                && answer.send(choice).is_err()
            {
                tracing::debug!("the agent no longer waits for the answer");
            }
        });
    }

    fn try_reserve(&self) -> Option<OwnedSemaphorePermit> {
        self.request_slots.clone().try_acquire_owned().ok()
    }

    async fn serve_request(&mut self, request: ClientAccessRequest) {
        let Some(cwd) = self.sessions.get(request.session()).cloned() else {
            return request.reject("this client has not opened the session");
        };
        let Some(permit) = self.try_reserve() else {
            return request.reject("too many requests are open at once; wait for their answers");
        };
        match request.into_call() {
            ClientCall::ReadFile { path, line, limit, answer } => {
                if self.policy.files == FileAccess::None {
                    return answer.send(Err(undeclared("files")));
                }
                tokio::task::spawn_blocking(move || {
                    let _permit = permit;
                    answer.send(files::read_lines(&cwd, &path, line, limit));
                });
            }
            ClientCall::WriteFile { path, text, answer } => {
                if self.policy.files != FileAccess::ReadWrite {
                    return answer.send(Err(undeclared("writing files")));
                }
                tokio::task::spawn_blocking(move || {
                    let _permit = permit;
                    answer.send(files::write_text(&cwd, &path, &text));
                });
            }
            ClientCall::CreateTerminal { command, answer } => {
                answer.send(match self.policy.terminals {
                    true => self.terminals.create(&cwd, command).await,
                    false => Err(undeclared("terminals")),
                });
            }
            ClientCall::ReadTerminal { terminal, answer } => answer.send(self.terminals.read(&terminal)),
            ClientCall::WaitForExit { terminal, answer } => match self.terminals.exit(&terminal) {
                Ok(exit) => {
                    tokio::spawn(async move {
                        let _permit = permit;
                        let exit = wait_for_exit(exit).await;
                        answer
                            .send(exit.ok_or_else(|| ClientCallError::Failed("the terminal is gone".into())));
                    });
                }
                Err(error) => answer.send(Err(error)),
            },
            ClientCall::KillTerminal { terminal, answer } => answer.send(self.terminals.kill(&terminal)),
            ClientCall::ReleaseTerminal { terminal, answer } => {
                answer.send(self.terminals.release(&terminal));
            }
        }
    }
}

fn undeclared(what: &str) -> ClientCallError {
    ClientCallError::Failed(format!("this client does not provide {what}"))
}
