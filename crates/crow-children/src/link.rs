//! The link to a child's agent: its program or socket, the handshake, its session, and the end of all of them.

use std::path::PathBuf;
use std::time::Duration;

use crow_acp::{
    AgentConnection, AgentProgram, Client, ClientEvent, ClientInfo, LineTransport, ProgramEnded, StopReason,
    drive_agent,
};
use crow_core::{
    ChildExit, ChildExitStatus, ChildStopReason, Failure, FailureKind, ProgramEnding, SessionId,
};
use crow_store::Store;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Events of a child that may wait to be handled, which takes microseconds.
const MESSAGES_LEN: usize = 64;

/// Time that the last message to a child may take to be written; a pipe takes it at once if it is read.
const FLUSH_WAIT_MAX: Duration = Duration::from_millis(100);

/// Time to wait for the exit of a program whose connection was lost: both happen at the same moment.
const EXIT_WAIT_MAX: Duration = Duration::from_millis(200);

/// The connection to an agent. It makes progress only while [`AgentLink::next`] is polled.
pub(crate) struct AgentLink {
    /// Runs the connection; `None` after its end.
    run: Option<BoxFuture<'static, Result<(), Failure>>>,
    /// `None` before the handshake.
    pub(crate) connection: Option<AgentConnection>,
    messages: mpsc::Receiver<ClientEvent>,
    closing: CancellationToken,
}

/// Something that came over a link.
pub(crate) enum LinkEvent {
    /// An update or a request of the agent.
    Message(ClientEvent),
    /// The connection ended.
    Failed(Failure),
}

/// Which session of its agent a child uses.
#[derive(Debug)]
pub(crate) enum ChildSessionStart {
    /// The session that the parent stored: the agent is Crow itself.
    Stored,
    /// A new session of an external agent.
    New { model: Option<String> },
    /// An earlier session of an external agent.
    Resume { session: String },
}

/// The task whose session is opened.
pub(crate) struct SessionTarget {
    pub(crate) task: SessionId,
    pub(crate) cwd: PathBuf,
    pub(crate) store: Store,
}

impl AgentLink {
    /// Creates a link that begins with the handshake. The receiver gets its connection.
    pub(crate) fn new(
        lines: LineTransport,
        client_info: ClientInfo,
    ) -> (Self, oneshot::Receiver<AgentConnection>) {
        let (message_sender, messages) = mpsc::channel(MESSAGES_LEN);
        let (sender, receiver) = oneshot::channel();
        let closing = CancellationToken::new();
        let until_closing = closing.clone();
        let run = Box::pin(drive_agent(lines, client_info, message_sender, async move |connection| {
            // The driver may have ended meanwhile.
            drop(sender.send(connection));
            until_closing.cancelled().await;
        }));
        (Self { run: Some(run), connection: None, messages, closing }, receiver)
    }

    /// Waits for the next message or the end of the connection. `is_idle` says that no request would report the end.
    pub(crate) async fn next(&mut self, parent_client: &Client, is_idle: bool) -> LinkEvent {
        let Self { run, connection, messages, .. } = self;
        tokio::select! {
            biased;
            // Backpressure of a client that follows children applies to all descendants.
            Some(message) = async {
                parent_client.wait_for_capacity().await;
                messages.recv().await
            } => LinkEvent::Message(message),
            failure = wait_for_failure(run) => LinkEvent::Failed(failure),
            () = wait_until_closed(connection.as_ref()), if is_idle => {
                LinkEvent::Failed(Failure::new(FailureKind::Connection, "the agent has disconnected"))
            }
        }
    }

    /// Returns a message that has arrived.
    pub(crate) fn try_next_message(&mut self) -> Option<ClientEvent> {
        self.messages.try_recv().ok()
    }

    /// Closes the connection. The last message is still written; a child that does not read it must not delay the end.
    pub(crate) async fn close(self) {
        let Self { run, connection, messages, closing } = self;
        drop(messages);
        closing.cancel();
        if let (Some(run), Some(_)) = (run, connection) {
            drop(timeout(FLUSH_WAIT_MAX, run).await);
        }
    }
}

async fn wait_for_failure(run: &mut Option<BoxFuture<'static, Result<(), Failure>>>) -> Failure {
    let Some(running) = run else { return std::future::pending().await };
    let result = running.await;
    *run = None;
    // It ends otherwise only when it is closed from here.
    result.err().unwrap_or_else(|| Failure::new(FailureKind::Connection, "the connection was closed"))
}

async fn wait_until_closed(connection: Option<&AgentConnection>) {
    match connection {
        Some(connection) => connection.wait_closed().await,
        None => std::future::pending().await,
    }
}

/// Opens the session of a child in its agent; returns its name there.
pub(crate) async fn open_session(
    connection: AgentConnection,
    SessionTarget { task, cwd, store }: SessionTarget,
    start: ChildSessionStart,
) -> Result<SessionId, Failure> {
    match start {
        ChildSessionStart::Stored => connection.resume_session(&task, &cwd).await.map(|()| task),
        ChildSessionStart::New { model } => {
            let new_session = connection.new_session(&cwd).await?;
            if let Some(model) = model {
                let option = new_session.find_option("model").map_or("model", |option| option.id.as_str());
                connection.set_option(&new_session.session, option, &model).await?;
            }
            let session = new_session.session;
            let stored = store.set_agent_session(&task, session.as_str()).await;
            stored.map_err(|error| Failure::new(FailureKind::Store, error.to_string()))?;
            Ok(session)
        }
        ChildSessionStart::Resume { session: agent_session } => {
            let session = SessionId::new(agent_session);
            connection.continue_session(&session, &cwd).await?;
            Ok(session)
        }
    }
}

/// Ends the program of a child, whose connection is closed.
pub(crate) async fn end_program(program: Option<AgentProgram>, ending: ProgramEnding) -> ChildExit {
    let Some(mut program) = program else { return ChildExit::default() };
    let (exit, shutdown) = match ending {
        ProgramEnding::AwaitExit => {
            let exit = timeout(EXIT_WAIT_MAX, program.wait_for_exit()).await;
            (exit.ok().flatten(), program.shut_down().await)
        }
        ProgramEnding::Kill => (None, program.kill().await),
        ProgramEnding::ShutDown => (None, program.shut_down().await),
    };
    let status = match exit {
        Some(ProgramEnded::Exited(code)) => Some(ChildExitStatus::Exited(code)),
        Some(ProgramEnded::Signalled(signal)) => Some(ChildExitStatus::Signalled(signal)),
        Some(ProgramEnded::TimedOut | ProgramEnded::Cancelled) | None => None,
    };
    ChildExit { status, stray_line: shutdown.stray_line, stderr: shutdown.stderr }
}

/// Converts the stop reason of an agent.
pub(crate) fn child_stop_reason(reason: StopReason) -> ChildStopReason {
    match reason {
        StopReason::EndTurn => ChildStopReason::EndTurn,
        StopReason::MaxTokens => ChildStopReason::MaxTokens,
        StopReason::MaxTurnRequests => ChildStopReason::MaxTurnRequests,
        StopReason::Refusal => ChildStopReason::Refusal,
        StopReason::Cancelled => ChildStopReason::Cancelled,
    }
}
