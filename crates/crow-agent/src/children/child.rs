//! One child's life: started, told, heard, and ended, whatever it does. Owns the child's process and its connection, so
//! it waits for several things at once; whoever wants something of it sends an order.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crow_acp::{
    Abilities, AgentCommand, AgentProgram, ClientEvent, Connection, Hello, Lines, Until, Upstream, drive,
};
use crow_core::{AgentReach, Failure, FailureKind, Mode, SessionId};
use crow_store::{Attending, TaskState};
use crow_tools::Worktree;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::children::book::Seat;
use crate::children::ending::{RoundEnd, came_to, ended};
use crate::children::hearing::{Hearing, Spot, Trusted};
use crate::children::record::Record;
use crate::children::view::View;
use crate::children::{DEPTH_VARIABLE, Family};
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
pub(super) enum Order {
    /// A further round.
    Round(RoundOrder),
    /// Words for the round that runs.
    Steer { text: String, answer: oneshot::Sender<Result<(), String>> },
}

/// A round with all that it needs.
#[derive(Debug)]
pub(super) struct RoundOrder {
    pub(super) text: String,
    pub(super) seat: Seat,
    pub(super) cut: CancellationToken,
    pub(super) wake: Wake,
    pub(super) spot: Spot,
}

/// Whether the parent is woken by the end of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    /// It is.
    Yes,
    /// A call of it waits for the end already.
    No,
}

/// What a child has come to.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    /// How many rounds have ended.
    pub(crate) n_ended: u32,
    pub(crate) state: TaskState,
    /// What the parent is told of the newest round that ended.
    pub(crate) report: String,
    /// What that round did in a worktree of its own, for a client.
    pub(crate) diff: Option<String>,
}

impl Standing {
    /// Its first round runs.
    pub(super) fn begun() -> Self {
        Self { n_ended: 0, state: TaskState::Running, report: String::new(), diff: None }
    }
}

/// Which session of its agent a child goes on with.
#[derive(Debug)]
pub(super) enum Opening {
    /// The one that its parent stored: the agent is Crow itself.
    Own,
    /// A new one of an agent of others.
    New { model: Option<String> },
    /// An earlier one of an agent of others.
    Again { name: String },
}

/// One child.
pub(super) struct Child {
    pub(super) task: SessionId,
    pub(super) title: String,
    pub(super) agent: String,
    pub(super) reach: AgentReach,
    pub(super) cwd: PathBuf,
    pub(super) starts_in: PathBuf,
    pub(super) hearing: Hearing,
    pub(super) orders: mpsc::Receiver<Order>,
    pub(super) standing: Arc<watch::Sender<Standing>>,
    pub(super) attending: Attending,
    pub(super) round: Option<Round>,
    pub(super) worktree: Option<Worktree>,
    /// Tells that somebody else may drive the task.
    pub(super) gone: DropGuard,
}

/// A round that runs.
pub(super) struct Round {
    text: String,
    cut: CancellationToken,
    /// Its questions are open.
    pub(super) asks: CancellationToken,
    pub(super) wake: Wake,
    deadline: Instant,
    _seat: Seat,
}

/// Why a child cannot go on.
pub(super) enum Broke {
    /// Its round is over, and its folder goes with it.
    Over(RoundEnd),
    /// It was stopped, or nobody wants it any longer.
    Stopped,
    /// It did not end when it was stopped.
    Deaf(RoundEnd),
    /// It has ended, or the way to it has.
    Gone(String),
    /// It says that it cannot, or something here cannot.
    Failed(String),
}

impl From<Failure> for Broke {
    fn from(failure: Failure) -> Self {
        let sentence = failure.sentence.trim_end();
        let stop = if sentence.ends_with(['.', '!', '?']) { "" } else { "." };
        let sentence = format!("{sentence}{stop}");
        if failure.kind == FailureKind::Connection { Self::Gone(sentence) } else { Self::Failed(sentence) }
    }
}

impl Round {
    pub(super) fn new(order: RoundOrder, time_max: Duration) -> Self {
        let RoundOrder { text, seat, cut, wake, .. } = order;
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

impl Child {
    /// Lives until nobody has orders for it any longer, or it cannot go on.
    pub(super) async fn run(mut self, opening: Opening) {
        let cut = self.round.as_ref().map(|round| round.cut.clone()).unwrap_or_default();
        let launched = cut.run_until_cancelled(self.launch()).await;
        let (broke, last_words) = match launched {
            Some(Ok((lines, program))) => {
                let lived = self.live(lines, opening, &cut).await;
                let last_words = ended(program, lived.as_ref().err()).await;
                (lived.err(), last_words)
            }
            Some(Err(why)) => (Some(Broke::Failed(why)), String::new()),
            None => (Some(Broke::Stopped), String::new()),
        };
        let is_late = self.take_last_order();
        let end = match broke {
            _ if is_late => {
                let why = "its agent ended just then; send it again".to_owned();
                RoundEnd { state: TaskState::Failed, why: Some(why) }
            }
            None | Some(Broke::Stopped) => RoundEnd { state: TaskState::Cancelled, why: None },
            Some(Broke::Deaf(end) | Broke::Over(end)) => end,
            Some(Broke::Gone(why) | Broke::Failed(why)) => {
                RoundEnd { state: TaskState::Failed, why: Some(format!("{why}{last_words}")) }
            }
        };
        self.finish(end).await;
        let Self { attending, hearing, gone, .. } = self;
        hearing.family.kit.store.end_attending(attending).await;
        drop(gone);
    }

    /// Takes no more orders; tells whether one came when the way to the agent broke, which fails with it.
    fn take_last_order(&mut self) -> bool {
        let has_round = self.round.is_some();
        self.orders.close();
        while let Ok(order) = self.orders.try_recv() {
            if let (Order::Round(order), None) = (order, &self.round) {
                self.round = Some(Round::new(order, Duration::ZERO));
            }
        }
        !has_round && self.round.is_some()
    }

    /// Starts its program, or connects to it.
    async fn launch(&self) -> Result<(Lines, Option<AgentProgram>), String> {
        let kit = &self.hearing.family.kit;
        match &self.reach {
            AgentReach::Program { command, args, env } => {
                let depth = (DEPTH_VARIABLE.to_owned(), (self.hearing.family.depth + 1).to_string());
                let is_given = |name: &String| env.iter().any(|(given, _)| given == name);
                let told = self.hearing.family.surroundings().workspace.variables();
                let secret = match self.hearing.trusted {
                    Trusted::Itself => Vec::new(),
                    Trusted::Nobody => kit.settings().secret_variables.clone(),
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
            AgentReach::Socket { url, headers } => {
                let connected = crow_acp::connect(url, headers, Instant::now() + OPEN_WAIT_MAX).await;
                let lines = connected.map_err(|error| format!("it could not be reached: {error}"))?;
                Ok((lines, None))
            }
        }
    }

    /// Drives it for as long as its connection lasts.
    async fn live(&mut self, lines: Lines, opening: Opening, cut: &CancellationToken) -> Result<(), Broke> {
        let (events, heard) = mpsc::channel(EVENTS_LEN);
        let hello = Hello {
            version: env!("CARGO_PKG_VERSION"),
            abilities: self.abilities(),
            keeps_words: self.hearing.family.client.abilities().children,
        };
        // From the first session on it hears itself that it is stopped.
        let (talks, is_silent) = (CancellationToken::new(), cut.clone());
        let begun = talks.clone();
        let (over, is_over) = oneshot::channel();
        let driven = drive(lines, hello, events, async |connection| {
            begun.cancel();
            drop(over.send(self.talk(&connection, heard, opening).await));
        });
        tokio::pin!(driven);
        tokio::select! {
            biased;
            Ok(talked) = is_over => {
                // What was said to it last may leave; one that does not read it holds nobody up.
                drop(timeout(LEAVE_WAIT_MAX, driven).await);
                talked
            }
            driven = &mut driven => driven.map_err(Broke::from),
            () = async {
                is_silent.cancelled().await;
                if talks.is_cancelled() {
                    std::future::pending::<()>().await;
                }
            } => Err(Broke::Stopped),
        }
    }

    /// What the child is told that its client can do.
    fn abilities(&self) -> Abilities {
        let depth = Some(self.hearing.family.depth + 1);
        let client = match self.hearing.upstream {
            Some(_) => self.hearing.family.client.abilities(),
            None => Abilities::default(),
        };
        let Abilities { reads_files, writes_files, terminals, .. } = client;
        Abilities { reads_files, writes_files, terminals, depth, ..Abilities::default() }
    }

    async fn talk(
        &mut self,
        connection: &Connection,
        mut heard: mpsc::Receiver<ClientEvent>,
        opening: Opening,
    ) -> Result<(), Broke> {
        let session = self.open(connection, &mut heard, opening).await?;
        loop {
            let end = self.round(connection, &mut heard, &session).await?;
            if self.worktree.is_some() {
                return Err(Broke::Over(end));
            }
            self.finish(end).await;
            let Some(order) = self.idle(connection, &mut heard).await else {
                // From here on whoever has an order waits for the end and begins anew.
                self.orders.close();
                return Ok(());
            };
            self.begin(order).await?;
        }
    }

    /// Opens its session.
    async fn open(
        &mut self,
        connection: &Connection,
        heard: &mut mpsc::Receiver<ClientEvent>,
        opening: Opening,
    ) -> Result<SessionId, Broke> {
        let (task, cwd, store) = (self.task.clone(), self.cwd.clone(), self.hearing.family.kit.store.clone());
        let is_replay = matches!(opening, Opening::Again { .. });
        let opened = async move {
            match opening {
                Opening::Own => connection.resume_session(&task, &cwd).await.map(|()| task),
                Opening::New { model } => {
                    let opened = connection.new_session(&cwd).await?;
                    if let Some(model) = model {
                        let option = opened.option("model").map_or("model", |option| option.id.as_str());
                        connection.set_option(&opened.session, option, &model).await?;
                    }
                    let session = opened.session;
                    let stored = store.set_agent_session(&task, session.as_str()).await;
                    stored.map_err(crate::run_turn::store_failure)?;
                    Ok(session)
                }
                Opening::Again { name } => {
                    let session = SessionId::new(name);
                    go_on(connection, &session, &cwd).await?;
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
                () = cut.cancelled() => return Err(Broke::Stopped),
                () = sleep_until(late) => {
                    let seconds = OPEN_WAIT_MAX.as_secs();
                    return Err(Broke::Failed(format!("it did not open a session within {seconds} s")));
                }
                // What an earlier session replays was seen when it was said.
                Some(event) = heard.recv() => if !is_replay {
                    self.hearing.hear(event, &asks);
                },
            }
        }
    }

    /// Begins a further round.
    async fn begin(&mut self, order: RoundOrder) -> Result<(), Broke> {
        *self.hearing.view.lock().unwrap_or_else(PoisonError::into_inner) = View::default();
        self.hearing.n_round = 0;
        self.hearing.spot = order.spot.clone();
        // From here on it has an end, whatever comes.
        self.round = Some(Round::new(order, self.hearing.family.kit.settings().tree_limits.time_max));
        let store = &self.hearing.family.kit.store;
        let begun = store.begin_task(&self.attending, &self.title, clock::now()).await;
        begun.map_err(|error| Broke::Failed(error.to_string()))?;
        self.hearing.tell_state(true);
        self.standing.send_modify(|standing| standing.state = TaskState::Running);
        Ok(())
    }

    /// Has the child work until it is done or must not go on.
    async fn round(
        &mut self,
        connection: &Connection,
        heard: &mut mpsc::Receiver<ClientEvent>,
        session: &SessionId,
    ) -> Result<RoundEnd, Broke> {
        let Some(round) = &self.round else { return Err(Broke::Stopped) };
        let (text, cut, asks) = (round.text.clone(), round.cut.clone(), round.asks.clone());
        let deadline = round.deadline;
        self.record(&text).await?;
        let family = self.hearing.family.clone();
        let mut standing = family.standing.clone();
        let mode = standing.borrow_and_update().mode;
        self.has_mode(connection, session, (mode, &cut)).await?;
        let (prompted, exhausted) =
            (connection.prompt(session, &text, Until::TasksEnded), family.book.exhausted());
        tokio::pin!(prompted, exhausted);
        let mut stopping: Option<(Instant, RoundEnd)> = None;
        let stop = |state, why| {
            connection.cancel(session);
            // A child that loses its question first takes that for the end of its own turn.
            asks.cancel();
            Some((Instant::now() + STOP_WAIT_MAX, RoundEnd { state, why }))
        };
        loop {
            let given_up = stopping.as_ref().map(|(at, _)| *at);
            tokio::select! {
                biased;
                () = cut.cancelled(), if stopping.is_none() => stopping = stop(TaskState::Cancelled, None),
                () = sleep_until(deadline), if stopping.is_none() => {
                    stopping = stop(TaskState::Failed, Some(too_long(family.kit.settings().tree_limits.time_max)));
                }
                why = &mut exhausted, if stopping.is_none() => stopping = stop(TaskState::Failed, Some(why)),
                () = sleep_until(given_up.unwrap_or(deadline)), if given_up.is_some() => {
                    let Some((_, end)) = stopping else { return Err(Broke::Stopped) };
                    return Err(Broke::Deaf(end));
                }
                ended = &mut prompted => {
                    self.hear_rest(heard, &asks);
                    let prompted = match (ended, stopping) {
                        // Some die of being stopped.
                        (Err(_), Some((_, end))) => return Err(Broke::Over(end)),
                        (Ok(_), Some((_, end))) => return Ok(end),
                        (ended, None) => ended?,
                    };
                    if let Some(spent) = prompted.spent {
                        self.hearing.spent(spent);
                    }
                    return Ok(came_to(prompted.reason));
                }
                // A client that follows children is waited for, and so is everybody behind it.
                Some(event) = async {
                    family.client.room().await;
                    heard.recv().await
                } => {
                    self.hearing.hear(event, &asks);
                    if self.hearing.is_flooded() && stopping.is_none() {
                        stopping = stop(TaskState::Failed, Some(FLOODED.to_owned()));
                    }
                }
                Some(order) = self.orders.recv() => steer(connection, session, order),
                Ok(()) = standing.changed(), if self.hearing.trusted == Trusted::Itself => {
                    set_mode(connection, session, standing.borrow_and_update().mode);
                }
            }
        }
    }

    /// Hears what it said before it ended, which is here by then.
    fn hear_rest(&mut self, heard: &mut mpsc::Receiver<ClientEvent>, asks: &CancellationToken) {
        while let Ok(event) = heard.try_recv() {
            self.hearing.hear(event, asks);
        }
    }

    /// Has a child that is Crow begin in the mode that its parent is in by now.
    async fn has_mode(
        &self,
        connection: &Connection,
        session: &SessionId,
        (mode, cut): (Mode, &CancellationToken),
    ) -> Result<(), Broke> {
        if self.hearing.trusted == Trusted::Nobody {
            return Ok(());
        }
        let set = cut.run_until_cancelled(connection.set_option(session, "mode", mode.as_str())).await;
        Ok(set.ok_or(Broke::Stopped)??)
    }

    /// Begins to store what an agent of others is told and says; Crow itself does so on its own.
    async fn record(&mut self, text: &str) -> Result<(), Broke> {
        if self.hearing.trusted == Trusted::Nobody {
            let record = Record::begin(&self.hearing.family.kit.store, &self.task, text).await;
            self.hearing.record = Some(record.map_err(|error| Broke::Failed(error.to_string()))?);
        }
        Ok(())
    }

    /// Waits for a further order; nothing when there will be none.
    async fn idle(
        &mut self,
        connection: &Connection,
        heard: &mut mpsc::Receiver<ClientEvent>,
    ) -> Option<RoundOrder> {
        let family = self.hearing.family.clone();
        // Whoever finds no room here is started again when it is wanted.
        let Ok(_room) = family.idle.try_acquire() else { return None };
        let (late, ends) = (Instant::now() + IDLE_MAX, family.cut.clone());
        loop {
            tokio::select! {
                biased;
                () = ends.cancelled() => return None,
                order = self.orders.recv() => match order? {
                    Order::Round(order) => return Some(order),
                    Order::Steer { answer, .. } => {
                        // Whoever steers looks first whether there is a round.
                        drop(answer);
                    }
                },
                () = sleep_until(late) => return self.last_order(),
                () = connection.closed() => return self.last_order(),
                Some(event) = heard.recv() => self.hearing.hear_between(&event),
            }
        }
    }

    /// Takes no more orders; one that was given already would be waited for.
    fn last_order(&mut self) -> Option<RoundOrder> {
        self.orders.close();
        loop {
            match self.orders.try_recv().ok()? {
                Order::Round(order) => return Some(order),
                Order::Steer { answer, .. } => drop(answer),
            }
        }
    }
}

/// Has an agent of others open an earlier session. There are some that say they resume sessions, and only load them.
async fn go_on(connection: &Connection, session: &SessionId, cwd: &Path) -> Result<(), Failure> {
    let can = connection.abilities();
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

fn too_long(time_max: Duration) -> String {
    let minutes = time_max.as_secs().div_ceil(60);
    format!("it was at work for {minutes} min, as long as agents.max_minutes allows")
}

/// Has a child that is Crow work in the mode of its parent from here on.
fn set_mode(connection: &Connection, session: &SessionId, mode: Mode) {
    let (connection, session) = (connection.clone(), session.clone());
    tokio::spawn(async move {
        if let Err(failure) = connection.set_option(&session, "mode", mode.as_str()).await {
            tracing::warn!(%failure, "a child did not change its mode");
        }
    });
}

/// Passes words on to a round that runs.
fn steer(connection: &Connection, session: &SessionId, order: Order) {
    match order {
        Order::Steer { text, answer } if connection.abilities().steers => {
            let (connection, session) = (connection.clone(), session.clone());
            tokio::spawn(async move {
                let steering = connection.steer(&session, &text);
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
        Order::Steer { answer, .. } => {
            let why = "it is at work, and this agent takes no words meanwhile; wait for its end or cancel it";
            drop(answer.send(Err(why.to_owned())));
        }
        // A seat that is dropped is free again, and the sender sees no round begin.
        Order::Round(order) => drop(order),
    }
}

/// Gives a child the client of its parent.
pub(super) fn upstream(family: &Family) -> Arc<Upstream> {
    Arc::new(Upstream::new(family.client.clone(), family.parent.clone()))
}
