//! One child, from its start to its end. Owns the child's process and its connection, so it waits for several things at
//! once; everything else sends it a command.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crow_acp::{
    AcpClientCapabilities, AgentCommand, AgentConnection, AgentProgram, ClientEvent, ClientInfo,
    LineTransport, ParentClient, TurnScope, drive_agent,
};
use crow_core::{AgentTransport, ContentPart, Failure, FailureKind, Mode, SessionId};
use crow_store::{TaskLease, TaskState};
use crow_tools::Worktree;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::budget::BudgetSlot;
use crate::events::{ChildEventHandler, ChildKind, ParentCall};
use crate::record::ChildRecorder;
use crate::resume::resume_session;
use crate::shared::{ChildrenShared, DEPTH_VARIABLE};
use crate::turn_end::{ChildTurnEnd, end_program, turn_end_from};
use crate::view::ChildView;

/// Events of a child that may wait to be handled, which takes microseconds.
const EVENTS_LEN: usize = 64;

/// Time that an agent may take to open a session after the handshake; one that contacts a server first takes seconds.
const OPEN_WAIT_MAX: Duration = Duration::from_secs(60);

/// Time that a cancelled child may take to confirm. Together with the time of a kill, the whole tree ends within the
/// promised two seconds: all levels count from the same moment.
const STOP_WAIT_MAX: Duration = Duration::from_secs(1);

/// Time that the last message to a child may take to be written; a pipe takes it at once if it is read.
const FLUSH_WAIT_MAX: Duration = Duration::from_millis(100);

/// Time that a parent waits for a child to reject a steering message; accepting it can take until the child's next
/// step.
const STEER_WAIT_MAX: Duration = Duration::from_secs(2);

const TOO_MANY_REQUESTS: &str = "it sends more requests at once than can be answered";

/// Time that an idle child stays alive: follow-up prompts come within minutes or not at all.
const IDLE_MAX: Duration = Duration::from_secs(300);

/// A command to a child.
#[derive(Debug)]
pub(crate) enum ChildCommand {
    /// Starts another turn.
    Turn(ChildTurnRequest),
    /// Sends a message into the running turn.
    Steer { text: String, answer: oneshot::Sender<Result<(), String>> },
}

/// A turn to run, with its slot.
#[derive(Debug)]
pub(crate) struct ChildTurnRequest {
    pub(crate) text: String,
    pub(crate) slot: BudgetSlot,
    pub(crate) cancel: CancellationToken,
    /// Whether the end of the turn is announced; otherwise a call of the parent waits for it.
    pub(crate) notify_parent: bool,
    pub(crate) parent_call: ParentCall,
}

/// The state of a child.
#[derive(Debug, Clone)]
pub(crate) struct ChildStatus {
    /// Number of turns that have ended.
    pub(crate) n_ended: u32,
    pub(crate) state: TaskState,
    /// The report on the last turn.
    pub(crate) report: String,
    /// The changes of that turn in its own worktree, for a client.
    pub(crate) diff: Option<String>,
}

impl ChildStatus {
    /// Returns the status of a child during its first turn.
    pub(crate) fn new_working() -> Self {
        Self { n_ended: 0, state: TaskState::Running, report: String::new(), diff: None }
    }
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

/// One child.
pub(crate) struct ChildActor {
    pub(crate) task: SessionId,
    pub(crate) title: String,
    pub(crate) agent_name: String,
    pub(crate) transport: AgentTransport,
    pub(crate) cwd: PathBuf,
    pub(crate) program_cwd: PathBuf,
    pub(crate) event_handler: ChildEventHandler,
    pub(crate) commands: mpsc::Receiver<ChildCommand>,
    pub(crate) status: Arc<watch::Sender<ChildStatus>>,
    pub(crate) lease: TaskLease,
    pub(crate) turn: Option<ChildTurn>,
    pub(crate) worktree: Option<Worktree>,
    /// Signals that another process may drive the task.
    pub(crate) stopped: DropGuard,
}

/// A running turn.
pub(crate) struct ChildTurn {
    text: String,
    cancel: CancellationToken,
    /// Cancelled when its open questions become invalid.
    pub(crate) questions: CancellationToken,
    pub(crate) notify_parent: bool,
    deadline: Instant,
    _slot: BudgetSlot,
}

/// Why a child cannot continue.
pub(crate) enum ChildStop {
    /// Its turn has ended, and its worktree is removed.
    Finished(ChildTurnEnd),
    /// It was cancelled, or its session has ended.
    Stopped,
    /// It did not stop after it was cancelled.
    Unresponsive(ChildTurnEnd),
    /// It has ended, or the connection was lost.
    Disconnected(String),
    /// It reported an error, or an error occurred here.
    Failed(String),
}

impl From<Failure> for ChildStop {
    fn from(failure: Failure) -> Self {
        let sentence = failure.message.trim_end();
        let punctuation = if sentence.ends_with(['.', '!', '?']) { "" } else { "." };
        let sentence = format!("{sentence}{punctuation}");
        if failure.kind == FailureKind::Connection {
            Self::Disconnected(sentence)
        } else {
            Self::Failed(sentence)
        }
    }
}

impl ChildTurn {
    pub(crate) fn new(request: ChildTurnRequest, time_max: Duration) -> Self {
        let ChildTurnRequest { text, slot, cancel, notify_parent, .. } = request;
        Self {
            text,
            cancel,
            questions: CancellationToken::new(),
            notify_parent,
            deadline: Instant::now() + time_max,
            _slot: slot,
        }
    }
}

impl ChildActor {
    /// Runs the child until it gets no more commands or cannot continue.
    pub(crate) async fn run(mut self, start: ChildSessionStart) {
        let cancel = self.turn.as_ref().map(|turn| turn.cancel.clone()).unwrap_or_default();
        let transport = cancel.run_until_cancelled(self.open_transport()).await;
        let (stop, exit_note) = match transport {
            Some(Ok((lines, program))) => {
                let outcome = self.drive_child(lines, start, &cancel).await;
                let exit_note = end_program(program, outcome.as_ref().err()).await;
                (outcome.err(), exit_note)
            }
            Some(Err(reason)) => (Some(ChildStop::Failed(reason)), String::new()),
            None => (Some(ChildStop::Stopped), String::new()),
        };
        let has_missed_request = self.take_last_command();
        let end = match stop {
            _ if has_missed_request => {
                let reason = "its agent has just ended; send the message again".to_owned();
                ChildTurnEnd { state: TaskState::Failed, reason: Some(reason) }
            }
            None | Some(ChildStop::Stopped) => ChildTurnEnd { state: TaskState::Cancelled, reason: None },
            Some(ChildStop::Unresponsive(end) | ChildStop::Finished(end)) => end,
            Some(ChildStop::Disconnected(reason) | ChildStop::Failed(reason)) => {
                ChildTurnEnd { state: TaskState::Failed, reason: Some(format!("{reason}{exit_note}")) }
            }
        };
        self.finish_turn(end).await;
        let Self { lease, event_handler, stopped, .. } = self;
        event_handler.shared.store.release_task_lease(lease).await;
        drop(stopped);
    }

    /// Closes the command queue. Returns whether a request for a turn arrived while the connection was ending; this
    /// turn fails.
    fn take_last_command(&mut self) -> bool {
        let had_turn = self.turn.is_some();
        self.commands.close();
        while let Ok(command) = self.commands.try_recv() {
            if let (ChildCommand::Turn(request), None) = (command, &self.turn) {
                self.turn = Some(ChildTurn::new(request, Duration::ZERO));
            }
        }
        !had_turn && self.turn.is_some()
    }

    /// Starts the child's program, or connects to its address.
    async fn open_transport(&self) -> Result<(LineTransport, Option<AgentProgram>), String> {
        let shared = &self.event_handler.shared;
        match &self.transport {
            AgentTransport::Program { command, args, env } => {
                let depth = (DEPTH_VARIABLE.to_owned(), (shared.depth + 1).to_string());
                let is_configured = |name: &String| env.iter().any(|(key, _)| key == name);
                let variables = shared.session.workspace().variables();
                let removed_variables = match self.event_handler.kind {
                    ChildKind::Crow => Vec::new(),
                    ChildKind::External => shared.session.agents_config().secret_variables,
                };
                let command = AgentCommand {
                    program: command.clone(),
                    args: args.clone(),
                    cwd: self.program_cwd.clone(),
                    env: variables.into_iter().chain(env.iter().cloned()).chain([depth]).collect(),
                    env_removed: removed_variables.into_iter().filter(|name| !is_configured(name)).collect(),
                };
                let started = shared.launcher.start_program(&self.agent_name, command).await;
                started.map_err(|reason| format!("it could not be started: {reason}"))
            }
            AgentTransport::Socket { url, headers } => {
                let connected = crow_acp::connect_socket(url, headers, Instant::now() + OPEN_WAIT_MAX).await;
                let lines = connected.map_err(|error| format!("it could not be reached: {error}"))?;
                Ok((lines, None))
            }
        }
    }

    /// Drives the connection until it ends.
    async fn drive_child(
        &mut self,
        lines: LineTransport,
        start: ChildSessionStart,
        cancel: &CancellationToken,
    ) -> Result<(), ChildStop> {
        let (event_sender, event_receiver) = mpsc::channel(EVENTS_LEN);
        let hello = ClientInfo {
            version: env!("CARGO_PKG_VERSION"),
            capabilities: self.client_capabilities(),
            wants_raw_updates: self.event_handler.shared.client.capabilities().children,
        };
        // Once it has a session, the child gets the cancellation itself.
        let (session_opened, turn_cancel) = (CancellationToken::new(), cancel.clone());
        let opened_signal = session_opened.clone();
        let (outcome_sender, outcome_receiver) = oneshot::channel();
        let connection_task = drive_agent(lines, hello, event_sender, async |connection| {
            opened_signal.cancel();
            drop(outcome_sender.send(self.run_connection(&connection, event_receiver, start).await));
        });
        tokio::pin!(connection_task);
        tokio::select! {
            biased;
            Ok(talked) = outcome_receiver => {
                // Let the last message be written; a child that does not read it must not delay the end.
                drop(timeout(FLUSH_WAIT_MAX, connection_task).await);
                talked
            }
            driven = &mut connection_task => driven.map_err(ChildStop::from),
            () = async {
                turn_cancel.cancelled().await;
                if session_opened.is_cancelled() {
                    std::future::pending::<()>().await;
                }
            } => Err(ChildStop::Stopped),
        }
    }

    /// Returns the client capabilities that are declared to the child.
    fn client_capabilities(&self) -> AcpClientCapabilities {
        let depth = Some(self.event_handler.shared.depth + 1);
        let client = match self.event_handler.parent_client {
            Some(_) => self.event_handler.shared.client.capabilities(),
            None => AcpClientCapabilities::default(),
        };
        let AcpClientCapabilities { reads_files, writes_files, terminals, .. } = client;
        AcpClientCapabilities {
            reads_files,
            writes_files,
            terminals,
            tree_depth: depth,
            ..AcpClientCapabilities::default()
        }
    }

    async fn run_connection(
        &mut self,
        connection: &AgentConnection,
        mut event_receiver: mpsc::Receiver<ClientEvent>,
        start: ChildSessionStart,
    ) -> Result<(), ChildStop> {
        let session = self.open_session(connection, &mut event_receiver, start).await?;
        loop {
            let end = self.run_turn(connection, &mut event_receiver, &session).await?;
            if self.worktree.is_some() {
                return Err(ChildStop::Finished(end));
            }
            self.finish_turn(end).await;
            let Some(request) = self.wait_for_turn(connection, &mut event_receiver).await else {
                // From here on, a sender waits for the end and starts the child again.
                self.commands.close();
                return Ok(());
            };
            self.begin_turn(request).await?;
        }
    }

    async fn open_session(
        &mut self,
        connection: &AgentConnection,
        event_receiver: &mut mpsc::Receiver<ClientEvent>,
        start: ChildSessionStart,
    ) -> Result<SessionId, ChildStop> {
        let (task, cwd, store) =
            (self.task.clone(), self.cwd.clone(), self.event_handler.shared.store.clone());
        let is_resuming = matches!(start, ChildSessionStart::Resume { .. });
        let open_result = async move {
            match start {
                ChildSessionStart::Stored => connection.resume_session(&task, &cwd).await.map(|()| task),
                ChildSessionStart::New { model } => {
                    let new_session = connection.new_session(&cwd).await?;
                    if let Some(model) = model {
                        let option =
                            new_session.find_option("model").map_or("model", |option| option.id.as_str());
                        connection.set_option(&new_session.session, option, &model).await?;
                    }
                    let session = new_session.session;
                    let stored = store.set_agent_session(&task, session.as_str()).await;
                    stored.map_err(|error| Failure::new(FailureKind::Store, error.to_string()))?;
                    Ok(session)
                }
                ChildSessionStart::Resume { session: agent_session } => {
                    let session = SessionId::new(agent_session);
                    resume_session(connection, &session, &cwd).await?;
                    Ok(session)
                }
            }
        };
        let turn = self.turn.as_ref();
        let (cancel, questions) =
            turn.map(|turn| (turn.cancel.clone(), turn.questions.clone())).unwrap_or_default();
        let deadline = Instant::now() + OPEN_WAIT_MAX;
        tokio::pin!(open_result);
        loop {
            tokio::select! {
                biased;
                opened = &mut open_result => return Ok(opened?),
                () = cancel.cancelled() => return Err(ChildStop::Stopped),
                () = sleep_until(deadline) => {
                    let seconds = OPEN_WAIT_MAX.as_secs();
                    return Err(ChildStop::Failed(format!("it did not open a session within {seconds} s")));
                }
                // The replay of an earlier session was seen when it happened.
                Some(event) = event_receiver.recv() => if !is_resuming {
                    self.event_handler.handle_event(event, &questions);
                },
            }
        }
    }

    /// Starts another turn.
    async fn begin_turn(&mut self, request: ChildTurnRequest) -> Result<(), ChildStop> {
        *self.event_handler.view.lock().unwrap_or_else(PoisonError::into_inner) = ChildView::default();
        self.event_handler.n_turn_tokens = 0;
        self.event_handler.parent_call = request.parent_call.clone();
        // From here on the turn is always finished properly.
        self.turn = Some(ChildTurn::new(request, self.event_handler.shared.tree_limits().task_timeout));
        let store = &self.event_handler.shared.store;
        let begin_result =
            store.begin_task(&self.lease, &self.title, self.event_handler.shared.session.now()).await;
        begin_result.map_err(|error| ChildStop::Failed(error.to_string()))?;
        self.event_handler.send_child_state(true);
        self.status.send_modify(|status| status.state = TaskState::Running);
        Ok(())
    }

    /// Runs a turn until it is done or must be stopped.
    async fn run_turn(
        &mut self,
        connection: &AgentConnection,
        event_receiver: &mut mpsc::Receiver<ClientEvent>,
        session: &SessionId,
    ) -> Result<ChildTurnEnd, ChildStop> {
        let Some(turn) = &self.turn else { return Err(ChildStop::Stopped) };
        let (text, cancel, questions) = (turn.text.clone(), turn.cancel.clone(), turn.questions.clone());
        let (deadline, time_max) = (turn.deadline, self.event_handler.shared.tree_limits().task_timeout);
        self.begin_record(&text).await?;
        let shared = self.event_handler.shared.clone();
        let mut mode = shared.session.settings().mode;
        self.sync_mode(connection, session, mode, &cancel).await?;
        let prompt_end = connection.send_prompt(session, vec![ContentPart::Text(text)], TurnScope::WithTasks);
        let budget_exhausted = shared.budget.wait_until_exhausted();
        tokio::pin!(prompt_end, budget_exhausted);
        let mut pending_stop: Option<(Instant, ChildTurnEnd)> = None;
        let stop = |state, reason| {
            connection.cancel_turn(session);
            // A child whose question is withdrawn first would take that for the end of its own turn.
            questions.cancel();
            Some((Instant::now() + STOP_WAIT_MAX, ChildTurnEnd { state, reason }))
        };
        loop {
            let stop_deadline = pending_stop.as_ref().map(|(at, _)| *at);
            tokio::select! {
                biased;
                () = cancel.cancelled(), if pending_stop.is_none() => pending_stop = stop(TaskState::Cancelled, None),
                () = sleep_until(deadline), if pending_stop.is_none() => {
                    pending_stop = stop(TaskState::Failed, Some(timeout_message(time_max)));
                }
                reason = &mut budget_exhausted, if pending_stop.is_none() => {
                    pending_stop = stop(TaskState::Failed, Some(reason));
                }
                () = sleep_until(stop_deadline.unwrap_or(deadline)), if stop_deadline.is_some() => {
                    return Err(pending_stop.map_or(ChildStop::Stopped, |(_, end)| ChildStop::Unresponsive(end)));
                }
                ended = &mut prompt_end => {
                    self.drain_events(event_receiver, &questions);
                    let prompted = match (ended, pending_stop) {
                        // Some agents exit when they are cancelled.
                        (Err(_), Some((_, end))) => return Err(ChildStop::Finished(end)),
                        (Ok(_), Some((_, end))) => return Ok(end),
                        (ended, None) => ended?,
                    };
                    prompted.tokens_spent.into_iter().for_each(|spent| self.event_handler.record_spent(spent));
                    return Ok(turn_end_from(prompted.stop_reason));
                }
                // Backpressure of a client that follows children applies to all descendants.
                Some(event) = async {
                    shared.client.wait_for_capacity().await;
                    event_receiver.recv().await
                } => {
                    self.event_handler.handle_event(event, &questions);
                    if self.event_handler.is_flooded() && pending_stop.is_none() {
                        pending_stop = stop(TaskState::Failed, Some(TOO_MANY_REQUESTS.to_owned()));
                    }
                }
                Some(order) = self.commands.recv() => steer_child(connection, session, order),
                changed = shared.session.wait_for_mode_change(mode), if self.event_handler.kind == ChildKind::Crow => {
                    mode = changed;
                    set_mode(connection, session, mode);
                }
            }
        }
    }

    /// Handles the events that the child sent before its turn ended, which have arrived by then.
    fn drain_events(
        &mut self,
        event_receiver: &mut mpsc::Receiver<ClientEvent>,
        questions: &CancellationToken,
    ) {
        while let Ok(event) = event_receiver.try_recv() {
            self.event_handler.handle_event(event, questions);
        }
    }

    /// Sets the mode of a child that is Crow to the current mode of its parent.
    async fn sync_mode(
        &self,
        connection: &AgentConnection,
        session: &SessionId,
        mode: Mode,
        cancel: &CancellationToken,
    ) -> Result<(), ChildStop> {
        if self.event_handler.kind == ChildKind::External {
            return Ok(());
        }
        let result = cancel.run_until_cancelled(connection.set_option(session, "mode", mode.as_str())).await;
        Ok(result.ok_or(ChildStop::Stopped)??)
    }

    /// Starts to store the messages of an external agent; Crow stores its own.
    async fn begin_record(&mut self, text: &str) -> Result<(), ChildStop> {
        if self.event_handler.kind == ChildKind::External {
            let recorder = ChildRecorder::begin(&self.event_handler.shared, &self.task, text).await;
            self.event_handler.recorder =
                Some(recorder.map_err(|error| ChildStop::Failed(error.to_string()))?);
        }
        Ok(())
    }

    /// Waits for another turn; `None` when there will be none.
    async fn wait_for_turn(
        &mut self,
        connection: &AgentConnection,
        event_receiver: &mut mpsc::Receiver<ClientEvent>,
    ) -> Option<ChildTurnRequest> {
        let shared = self.event_handler.shared.clone();
        // A child without an idle slot ends, and is started again when it is needed.
        let Ok(_room) = shared.idle_slots.try_acquire() else { return None };
        let (deadline, session_end) = (Instant::now() + IDLE_MAX, shared.cancel.clone());
        loop {
            tokio::select! {
                biased;
                () = session_end.cancelled() => return None,
                order = self.commands.recv() => match order? {
                    ChildCommand::Turn(order) => return Some(order),
                    ChildCommand::Steer { answer, .. } => {
                        // A sender checks for a running turn first.
                        drop(answer);
                    }
                },
                () = sleep_until(deadline) => return self.last_turn_request(),
                () = connection.wait_closed() => return self.last_turn_request(),
                Some(event) = event_receiver.recv() => self.event_handler.handle_idle_event(&event),
            }
        }
    }

    /// Closes the command queue and returns a request that was already in it.
    fn last_turn_request(&mut self) -> Option<ChildTurnRequest> {
        self.commands.close();
        loop {
            match self.commands.try_recv().ok()? {
                ChildCommand::Turn(request) => return Some(request),
                ChildCommand::Steer { answer, .. } => drop(answer),
            }
        }
    }
}

fn timeout_message(time_max: Duration) -> String {
    let minutes = time_max.as_secs().div_ceil(60);
    format!("it ran for {minutes} min, the limit of agents.max_minutes")
}

/// Sets the mode of a child that is Crow to that of its parent.
fn set_mode(connection: &AgentConnection, session: &SessionId, mode: Mode) {
    let (connection, session) = (connection.clone(), session.clone());
    tokio::spawn(async move {
        if let Err(failure) = connection.set_option(&session, "mode", mode.as_str()).await {
            tracing::warn!(%failure, "a child did not change its mode");
        }
    });
}

/// Sends a steering message into the running turn.
fn steer_child(connection: &AgentConnection, session: &SessionId, command: ChildCommand) {
    match command {
        ChildCommand::Steer { text, answer } if connection.capabilities().steering => {
            let (connection, session) = (connection.clone(), session.clone());
            tokio::spawn(async move {
                let steering = connection.send_steering(&session, &text);
                tokio::pin!(steering);
                let result = timeout(STEER_WAIT_MAX, &mut steering).await;
                let is_pending = result.is_err();
                let assume_accepted = |_| Ok(());
                let result =
                    result.map_or_else(assume_accepted, |result| result.map_err(|failure| failure.message));
                // The requester may have been cancelled meanwhile.
                drop(answer.send(result));
                if is_pending && let Err(failure) = steering.await {
                    tracing::info!(%failure, "a child rejected a steering message");
                }
            });
        }
        ChildCommand::Steer { answer, .. } => {
            let reason =
                "it is running, and this agent accepts no messages meanwhile; wait for its end or cancel it";
            drop(answer.send(Err(reason.to_owned())));
        }
        // Dropping the request releases its slot, and the sender sees that no turn has started.
        ChildCommand::Turn(request) => drop(request),
    }
}

/// Creates a client for a child that forwards to the client of its parent.
pub(crate) fn parent_client(shared: &ChildrenShared) -> Arc<ParentClient> {
    Arc::new(ParentClient::new(shared.client.clone(), shared.parent.clone()))
}
