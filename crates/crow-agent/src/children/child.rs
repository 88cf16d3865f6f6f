//! One child's life: started, told, heard, and ended, whatever it does. Owns the child's process and its connection, so
//! it waits for several things at once; whoever wants something of it sends an order.

use std::path::{Path, PathBuf};
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

use crate::children::book::BudgetSlot;
use crate::children::ending::{ChildTurnEnd, end_program, turn_end_from};
use crate::children::hearing::{ChildEventHandler, ChildKind, ParentCall};
use crate::children::record::ChildRecorder;
use crate::children::view::ChildView;
use crate::children::{ChildrenShared, DEPTH_VARIABLE};
use crate::clock;

/// Events of a child that may wait until they are looked at, which takes microseconds.
const EVENTS_LEN: usize = 64;

/// How long an agent may take to open a session once it said hello; one that asks a server first takes seconds.
const OPEN_WAIT_MAX: Duration = Duration::from_secs(60);

/// How long a child that was stopped may take to say so. With what a kill takes, the whole tree is gone within the
/// promised two seconds: every level counts from the same moment.
const STOP_WAIT_MAX: Duration = Duration::from_secs(1);

/// How long what was said to a child last may take to leave; a pipe takes it at once, unless nobody reads.
const LEAVE_WAIT_MAX: Duration = Duration::from_millis(100);

/// How long a parent waits for a child to refuse words for its turn; taking them can last until its next step.
const STEER_WAIT_MAX: Duration = Duration::from_secs(2);

const FLOODED: &str = "it asks for more at once than can be answered";

/// How long a child without work is kept: talking goes on within minutes or never.
const IDLE_MAX: Duration = Duration::from_secs(300);

/// What a child is told to do.
#[derive(Debug)]
pub(super) enum ChildCommand {
    /// A further round.
    Round(ChildTurnRequest),
    /// Words for the round that runs.
    Steer { text: String, answer: oneshot::Sender<Result<(), String>> },
}

/// A round with all that it needs.
#[derive(Debug)]
pub(super) struct ChildTurnRequest {
    pub(super) text: String,
    pub(super) seat: BudgetSlot,
    pub(super) cut: CancellationToken,
    pub(super) wake: NotifyParent,
    pub(super) spot: ParentCall,
}

/// Whether the parent is woken by the end of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotifyParent {
    /// It is.
    Yes,
    /// A call of it waits for the end already.
    No,
}

/// What a child has come to.
#[derive(Debug, Clone)]
pub(crate) struct ChildStatus {
    /// How many rounds have ended.
    pub(crate) n_ended: u32,
    pub(crate) state: TaskState,
    /// What the parent is told of the newest round that ended.
    pub(crate) report: String,
    /// What that round did in a worktree of its own, for a client.
    pub(crate) diff: Option<String>,
}

impl ChildStatus {
    /// Its first round runs.
    pub(super) fn new_working() -> Self {
        Self { n_ended: 0, state: TaskState::Running, report: String::new(), diff: None }
    }
}

/// Which session of its agent a child goes on with.
#[derive(Debug)]
pub(super) enum ChildSessionStart {
    /// The one that its parent stored: the agent is Crow itself.
    Own,
    /// A new one of an agent of others.
    New { model: Option<String> },
    /// An earlier one of an agent of others.
    Again { name: String },
}

/// One child.
pub(super) struct ChildActor {
    pub(super) task: SessionId,
    pub(super) title: String,
    pub(super) agent: String,
    pub(super) reach: AgentTransport,
    pub(super) cwd: PathBuf,
    pub(super) starts_in: PathBuf,
    pub(super) hearing: ChildEventHandler,
    pub(super) orders: mpsc::Receiver<ChildCommand>,
    pub(super) standing: Arc<watch::Sender<ChildStatus>>,
    pub(super) attending: TaskLease,
    pub(super) round: Option<ChildTurn>,
    pub(super) worktree: Option<Worktree>,
    /// Tells that somebody else may drive the task.
    pub(super) gone: DropGuard,
}

/// A round that runs.
pub(super) struct ChildTurn {
    text: String,
    cut: CancellationToken,
    /// Its questions are open.
    pub(super) asks: CancellationToken,
    pub(super) wake: NotifyParent,
    deadline: Instant,
    _seat: BudgetSlot,
}

/// Why a child cannot go on.
pub(super) enum ChildStop {
    /// Its round is over, and its folder goes with it.
    Over(ChildTurnEnd),
    /// It was stopped, or nobody wants it any longer.
    Stopped,
    /// It did not end when it was stopped.
    Deaf(ChildTurnEnd),
    /// It has ended, or the way to it has.
    Gone(String),
    /// It says that it cannot, or something here cannot.
    Failed(String),
}

impl From<Failure> for ChildStop {
    fn from(failure: Failure) -> Self {
        let sentence = failure.sentence.trim_end();
        let stop = if sentence.ends_with(['.', '!', '?']) { "" } else { "." };
        let sentence = format!("{sentence}{stop}");
        if failure.kind == FailureKind::Connection { Self::Gone(sentence) } else { Self::Failed(sentence) }
    }
}

impl ChildTurn {
    pub(super) fn new(order: ChildTurnRequest, time_max: Duration) -> Self {
        let ChildTurnRequest { text, seat, cut, wake, .. } = order;
        Self {
            text,
            cut,
            asks: CancellationToken::new(),
            wake,
            deadline: Instant::now() + time_max,
            _seat: seat,
        }
    }
}

impl ChildActor {
    /// Lives until nobody has orders for it any longer, or it cannot go on.
    pub(super) async fn run(mut self, opening: ChildSessionStart) {
        let cut = self.round.as_ref().map(|round| round.cut.clone()).unwrap_or_default();
        let launched = cut.run_until_cancelled(self.open_transport()).await;
        let (broke, last_words) = match launched {
            Some(Ok((lines, program))) => {
                let lived = self.drive_child(lines, opening, &cut).await;
                let last_words = end_program(program, lived.as_ref().err()).await;
                (lived.err(), last_words)
            }
            Some(Err(why)) => (Some(ChildStop::Failed(why)), String::new()),
            None => (Some(ChildStop::Stopped), String::new()),
        };
        let is_late = self.take_last_command();
        let end = match broke {
            _ if is_late => {
                let why = "its agent ended just then; send it again".to_owned();
                ChildTurnEnd { state: TaskState::Failed, why: Some(why) }
            }
            None | Some(ChildStop::Stopped) => ChildTurnEnd { state: TaskState::Cancelled, why: None },
            Some(ChildStop::Deaf(end) | ChildStop::Over(end)) => end,
            Some(ChildStop::Gone(why) | ChildStop::Failed(why)) => {
                ChildTurnEnd { state: TaskState::Failed, why: Some(format!("{why}{last_words}")) }
            }
        };
        self.finish_turn(end).await;
        let Self { attending, hearing, gone, .. } = self;
        hearing.family.kit.store.release_task_lease(attending).await;
        drop(gone);
    }

    /// Takes no more orders; tells whether one came when the way to the agent broke, which fails with it.
    fn take_last_command(&mut self) -> bool {
        let has_round = self.round.is_some();
        self.orders.close();
        while let Ok(order) = self.orders.try_recv() {
            if let (ChildCommand::Round(order), None) = (order, &self.round) {
                self.round = Some(ChildTurn::new(order, Duration::ZERO));
            }
        }
        !has_round && self.round.is_some()
    }

    /// Starts its program, or connects to it.
    async fn open_transport(&self) -> Result<(LineTransport, Option<AgentProgram>), String> {
        let kit = &self.hearing.family.kit;
        match &self.reach {
            AgentTransport::Program { command, args, env } => {
                let depth = (DEPTH_VARIABLE.to_owned(), (self.hearing.family.depth + 1).to_string());
                let is_given = |name: &String| env.iter().any(|(given, _)| given == name);
                let told = self.hearing.family.environment().workspace.variables();
                let secret = match self.hearing.trusted {
                    ChildKind::Itself => Vec::new(),
                    ChildKind::Nobody => kit.config().secret_variables.clone(),
                };
                let command = AgentCommand {
                    program: command.clone(),
                    args: args.clone(),
                    cwd: self.starts_in.clone(),
                    env: told.into_iter().chain(env.iter().cloned()).chain([depth]).collect(),
                    env_removed: secret.into_iter().filter(|name| !is_given(name)).collect(),
                };
                let started = kit.launcher.start(&self.agent, command).await;
                let (lines, program) =
                    started.map_err(|error| format!("it could not be started: {error}"))?;
                Ok((lines, Some(program)))
            }
            AgentTransport::Socket { url, headers } => {
                let connected = crow_acp::connect_socket(url, headers, Instant::now() + OPEN_WAIT_MAX).await;
                let lines = connected.map_err(|error| format!("it could not be reached: {error}"))?;
                Ok((lines, None))
            }
        }
    }

    /// Drives it for as long as its connection lasts.
    async fn drive_child(
        &mut self,
        lines: LineTransport,
        opening: ChildSessionStart,
        cut: &CancellationToken,
    ) -> Result<(), ChildStop> {
        let (events, heard) = mpsc::channel(EVENTS_LEN);
        let hello = ClientInfo {
            version: env!("CARGO_PKG_VERSION"),
            abilities: self.client_capabilities(),
            keeps_words: self.hearing.family.client.capabilities().children,
        };
        // From the first session on it hears itself that it is stopped.
        let (talks, is_silent) = (CancellationToken::new(), cut.clone());
        let begun = talks.clone();
        let (over, is_over) = oneshot::channel();
        let driven = drive_agent(lines, hello, events, async |connection| {
            begun.cancel();
            drop(over.send(self.run_connection(&connection, heard, opening).await));
        });
        tokio::pin!(driven);
        tokio::select! {
            biased;
            Ok(talked) = is_over => {
                // What was said to it last may leave; one that does not read it holds nobody up.
                drop(timeout(LEAVE_WAIT_MAX, driven).await);
                talked
            }
            driven = &mut driven => driven.map_err(ChildStop::from),
            () = async {
                is_silent.cancelled().await;
                if talks.is_cancelled() {
                    std::future::pending::<()>().await;
                }
            } => Err(ChildStop::Stopped),
        }
    }

    /// What the child is told that its client can do.
    fn client_capabilities(&self) -> AcpClientCapabilities {
        let depth = Some(self.hearing.family.depth + 1);
        let client = match self.hearing.upstream {
            Some(_) => self.hearing.family.client.capabilities(),
            None => AcpClientCapabilities::default(),
        };
        let AcpClientCapabilities { reads_files, writes_files, terminals, .. } = client;
        AcpClientCapabilities {
            reads_files,
            writes_files,
            terminals,
            depth,
            ..AcpClientCapabilities::default()
        }
    }

    async fn run_connection(
        &mut self,
        connection: &AgentConnection,
        mut heard: mpsc::Receiver<ClientEvent>,
        opening: ChildSessionStart,
    ) -> Result<(), ChildStop> {
        let session = self.open_session(connection, &mut heard, opening).await?;
        loop {
            let end = self.run_turn(connection, &mut heard, &session).await?;
            if self.worktree.is_some() {
                return Err(ChildStop::Over(end));
            }
            self.finish_turn(end).await;
            let Some(order) = self.wait_for_turn(connection, &mut heard).await else {
                // From here on whoever has an order waits for the end and begins anew.
                self.orders.close();
                return Ok(());
            };
            self.begin_turn(order).await?;
        }
    }

    /// Opens its session.
    async fn open_session(
        &mut self,
        connection: &AgentConnection,
        heard: &mut mpsc::Receiver<ClientEvent>,
        opening: ChildSessionStart,
    ) -> Result<SessionId, ChildStop> {
        let (task, cwd, store) = (self.task.clone(), self.cwd.clone(), self.hearing.family.kit.store.clone());
        let is_replay = matches!(opening, ChildSessionStart::Again { .. });
        let opened = async move {
            match opening {
                ChildSessionStart::Own => connection.resume_session(&task, &cwd).await.map(|()| task),
                ChildSessionStart::New { model } => {
                    let opened = connection.new_session(&cwd).await?;
                    if let Some(model) = model {
                        let option = opened.find_option("model").map_or("model", |option| option.id.as_str());
                        connection.set_option(&opened.session, option, &model).await?;
                    }
                    let session = opened.session;
                    let stored = store.set_agent_session(&task, session.as_str()).await;
                    stored.map_err(crate::run_turn::store_failure)?;
                    Ok(session)
                }
                ChildSessionStart::Again { name } => {
                    let session = SessionId::new(name);
                    resume_session(connection, &session, &cwd).await?;
                    Ok(session)
                }
            }
        };
        let round = self.round.as_ref();
        let (cut, asks) = round.map(|round| (round.cut.clone(), round.asks.clone())).unwrap_or_default();
        let late = Instant::now() + OPEN_WAIT_MAX;
        tokio::pin!(opened);
        loop {
            tokio::select! {
                biased;
                opened = &mut opened => return Ok(opened?),
                () = cut.cancelled() => return Err(ChildStop::Stopped),
                () = sleep_until(late) => {
                    let seconds = OPEN_WAIT_MAX.as_secs();
                    return Err(ChildStop::Failed(format!("it did not open a session within {seconds} s")));
                }
                // What an earlier session replays was seen when it was said.
                Some(event) = heard.recv() => if !is_replay {
                    self.hearing.handle_event(event, &asks);
                },
            }
        }
    }

    /// Begins a further round.
    async fn begin_turn(&mut self, order: ChildTurnRequest) -> Result<(), ChildStop> {
        *self.hearing.view.lock().unwrap_or_else(PoisonError::into_inner) = ChildView::default();
        self.hearing.n_round = 0;
        self.hearing.spot = order.spot.clone();
        // From here on it has an end, whatever comes.
        self.round = Some(ChildTurn::new(order, self.hearing.family.kit.config().tree_limits.time_max));
        let store = &self.hearing.family.kit.store;
        let begun = store.begin_task(&self.attending, &self.title, clock::now()).await;
        begun.map_err(|error| ChildStop::Failed(error.to_string()))?;
        self.hearing.send_child_state(true);
        self.standing.send_modify(|standing| standing.state = TaskState::Running);
        Ok(())
    }

    /// Has the child work until it is done or must not go on.
    async fn run_turn(
        &mut self,
        connection: &AgentConnection,
        heard: &mut mpsc::Receiver<ClientEvent>,
        session: &SessionId,
    ) -> Result<ChildTurnEnd, ChildStop> {
        let Some(round) = &self.round else { return Err(ChildStop::Stopped) };
        let (text, cut, asks) = (round.text.clone(), round.cut.clone(), round.asks.clone());
        let deadline = round.deadline;
        self.begin_record(&text).await?;
        let family = self.hearing.family.clone();
        let mut standing = family.standing.clone();
        let mode = standing.borrow_and_update().mode;
        self.sync_mode(connection, session, (mode, &cut)).await?;
        let prompt = vec![ContentPart::Text(text)];
        let prompted = connection.send_prompt(session, prompt, TurnScope::TasksEnded);
        let exhausted = family.book.wait_until_exhausted();
        tokio::pin!(prompted, exhausted);
        let mut stopping: Option<(Instant, ChildTurnEnd)> = None;
        let stop = |state, why| {
            connection.cancel_turn(session);
            // A child that loses its question first takes that for the end of its own turn.
            asks.cancel();
            Some((Instant::now() + STOP_WAIT_MAX, ChildTurnEnd { state, why }))
        };
        loop {
            let given_up = stopping.as_ref().map(|(at, _)| *at);
            tokio::select! {
                biased;
                () = cut.cancelled(), if stopping.is_none() => stopping = stop(TaskState::Cancelled, None),
                () = sleep_until(deadline), if stopping.is_none() => {
                    stopping = stop(TaskState::Failed, Some(timeout_message(family.kit.config().tree_limits.time_max)));
                }
                why = &mut exhausted, if stopping.is_none() => stopping = stop(TaskState::Failed, Some(why)),
                () = sleep_until(given_up.unwrap_or(deadline)), if given_up.is_some() => {
                    let Some((_, end)) = stopping else { return Err(ChildStop::Stopped) };
                    return Err(ChildStop::Deaf(end));
                }
                ended = &mut prompted => {
                    self.drain_events(heard, &asks);
                    let prompted = match (ended, stopping) {
                        // Some die of being stopped.
                        (Err(_), Some((_, end))) => return Err(ChildStop::Over(end)),
                        (Ok(_), Some((_, end))) => return Ok(end),
                        (ended, None) => ended?,
                    };
                    if let Some(spent) = prompted.spent {
                        self.hearing.record_spent(spent);
                    }
                    return Ok(turn_end_from(prompted.reason));
                }
                // A client that follows children is waited for, and so is everybody behind it.
                Some(event) = async {
                    family.client.wait_for_capacity().await;
                    heard.recv().await
                } => {
                    self.hearing.handle_event(event, &asks);
                    if self.hearing.is_flooded() && stopping.is_none() {
                        stopping = stop(TaskState::Failed, Some(FLOODED.to_owned()));
                    }
                }
                Some(order) = self.orders.recv() => steer_child(connection, session, order),
                Ok(()) = standing.changed(), if self.hearing.trusted == ChildKind::Itself => {
                    set_mode(connection, session, standing.borrow_and_update().mode);
                }
            }
        }
    }

    /// Hears what it said before it ended, which is here by then.
    fn drain_events(&mut self, heard: &mut mpsc::Receiver<ClientEvent>, asks: &CancellationToken) {
        while let Ok(event) = heard.try_recv() {
            self.hearing.handle_event(event, asks);
        }
    }

    /// Has a child that is Crow begin in the mode that its parent is in by now.
    async fn sync_mode(
        &self,
        connection: &AgentConnection,
        session: &SessionId,
        (mode, cut): (Mode, &CancellationToken),
    ) -> Result<(), ChildStop> {
        if self.hearing.trusted == ChildKind::Nobody {
            return Ok(());
        }
        let set = cut.run_until_cancelled(connection.set_option(session, "mode", mode.as_str())).await;
        Ok(set.ok_or(ChildStop::Stopped)??)
    }

    /// Begins to store what an agent of others is told and says; Crow itself does so on its own.
    async fn begin_record(&mut self, text: &str) -> Result<(), ChildStop> {
        if self.hearing.trusted == ChildKind::Nobody {
            let record = ChildRecorder::begin(&self.hearing.family.kit.store, &self.task, text).await;
            self.hearing.record = Some(record.map_err(|error| ChildStop::Failed(error.to_string()))?);
        }
        Ok(())
    }

    /// Waits for a further order; nothing when there will be none.
    async fn wait_for_turn(
        &mut self,
        connection: &AgentConnection,
        heard: &mut mpsc::Receiver<ClientEvent>,
    ) -> Option<ChildTurnRequest> {
        let family = self.hearing.family.clone();
        // Whoever finds no room here is started again when it is wanted.
        let Ok(_room) = family.idle.try_acquire() else { return None };
        let (late, ends) = (Instant::now() + IDLE_MAX, family.cut.clone());
        loop {
            tokio::select! {
                biased;
                () = ends.cancelled() => return None,
                order = self.orders.recv() => match order? {
                    ChildCommand::Round(order) => return Some(order),
                    ChildCommand::Steer { answer, .. } => {
                        // Whoever steers looks first whether there is a round.
                        drop(answer);
                    }
                },
                () = sleep_until(late) => return self.last_turn_request(),
                () = connection.wait_closed() => return self.last_turn_request(),
                Some(event) = heard.recv() => self.hearing.handle_idle_event(&event),
            }
        }
    }

    /// Takes no more orders; one that was given already would be waited for.
    fn last_turn_request(&mut self) -> Option<ChildTurnRequest> {
        self.orders.close();
        loop {
            match self.orders.try_recv().ok()? {
                ChildCommand::Round(order) => return Some(order),
                ChildCommand::Steer { answer, .. } => drop(answer),
            }
        }
    }
}

/// Has an agent of others open an earlier session. There are some that say they resume sessions, and only load them.
async fn resume_session(
    connection: &AgentConnection,
    session: &SessionId,
    cwd: &Path,
) -> Result<(), Failure> {
    let can = connection.capabilities();
    if can.resumes {
        let resumed = connection.resume_session(session, cwd).await;
        if resumed.is_ok() || !can.loads {
            return resumed;
        }
    }
    if can.loads {
        return connection.load_session(session, cwd).await.map(drop);
    }
    let why = "this agent cannot go on with an earlier session; give a new task";
    Err(Failure::new(FailureKind::InvalidValue, why))
}

fn timeout_message(time_max: Duration) -> String {
    let minutes = time_max.as_secs().div_ceil(60);
    format!("it was at work for {minutes} min, as long as agents.max_minutes allows")
}

/// Has a child that is Crow work in the mode of its parent from here on.
fn set_mode(connection: &AgentConnection, session: &SessionId, mode: Mode) {
    let (connection, session) = (connection.clone(), session.clone());
    tokio::spawn(async move {
        if let Err(failure) = connection.set_option(&session, "mode", mode.as_str()).await {
            tracing::warn!(%failure, "a child did not change its mode");
        }
    });
}

/// Passes words on to a round that runs.
fn steer_child(connection: &AgentConnection, session: &SessionId, order: ChildCommand) {
    match order {
        ChildCommand::Steer { text, answer } if connection.capabilities().steers => {
            let (connection, session) = (connection.clone(), session.clone());
            tokio::spawn(async move {
                let steering = connection.send_steering(&session, &text);
                tokio::pin!(steering);
                let steered = timeout(STEER_WAIT_MAX, &mut steering).await;
                let is_open = steered.is_err();
                let told = |_| Ok(());
                let steered =
                    steered.map_or_else(told, |steered| steered.map_err(|failure| failure.sentence));
                // Whoever asked may have been stopped meanwhile.
                drop(answer.send(steered));
                if is_open && let Err(failure) = steering.await {
                    tracing::info!(%failure, "a child did not take words for its turn");
                }
            });
        }
        ChildCommand::Steer { answer, .. } => {
            let why = "it is at work, and this agent takes no words meanwhile; wait for its end or cancel it";
            drop(answer.send(Err(why.to_owned())));
        }
        // A seat that is dropped is free again, and the sender sees no round begin.
        ChildCommand::Round(order) => drop(order),
    }
}

/// Gives a child the client of its parent.
pub(super) fn parent_client(family: &ChildrenShared) -> Arc<ParentClient> {
    Arc::new(ParentClient::new(family.client.clone(), family.parent.clone()))
}
