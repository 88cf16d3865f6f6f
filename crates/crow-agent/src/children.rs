//! The agents that a session has at work: which there are, how a further one begins, and where orders for them go. What
//! a child does is its own affair; what it asks goes to the session's client, what it comes to into the session's mailbox.

mod book;
mod child;
mod hearing;
mod permit;
mod record;
mod report;
mod view;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crow_acp::{Client, Place};
use crow_core::{AgentServer, CallId, Content, SessionId, Status};
use crow_store::{Delivery, DeliveryId, NewSession, TaskRow, TaskState, invent_name};
use crow_tools::{Workspace, Worktree};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::book::{Book, Seat};
use self::child::{Child, Opening, Order, Round, RoundOrder};
pub(crate) use self::child::{Standing, Wake};
pub(crate) use self::hearing::Spot;
use self::hearing::{Hearing, Trusted};
use self::view::View;
pub(crate) use self::view::line;
use crate::clock;
use crate::handle::SessionMsg;
use crate::kit::Kit;
use crate::session;
use crate::supplies::Stock;

/// Where an agent and all that it starts, whoever they are, can read how deep they stand.
pub const DEPTH_VARIABLE: &str = "CROW_DEPTH";

/// The name of the agent that every configuration has: Crow itself.
pub const OWN: &str = "crow";

/// Orders that may wait for a child; it takes each at once.
const ORDERS_LEN: usize = 8;

/// How long a session that ends waits for its children; each of them takes less.
const END_WAIT_MAX: Duration = Duration::from_secs(2);

/// Characters of a title that is made of a prompt.
const TITLE_CHARS: usize = 40;

/// What surrounds a session, which may move.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) place: Place,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) stock: Arc<Stock>,
}

/// What all children of a session share.
pub(crate) struct Family {
    pub(crate) kit: Arc<Kit>,
    pub(crate) client: Client,
    pub(crate) parent: SessionId,
    pub(crate) standing: watch::Receiver<session::Standing>,
    surroundings: watch::Receiver<Surroundings>,
    pub(crate) book: Arc<Book>,
    /// Levels between the root and the session.
    depth: u32,
    own: mpsc::WeakSender<SessionMsg>,
    has_mail: AtomicBool,
    /// Rings when a round ends that nobody waits for.
    ended: Notify,
    /// One question at a time.
    asking: tokio::sync::Mutex<()>,
    /// Ends every child.
    cut: CancellationToken,
    lives: TaskTracker,
}

impl Family {
    pub(crate) fn surroundings(&self) -> Surroundings {
        self.surroundings.borrow().clone()
    }

    /// Tells the session that something waits in its mailbox. What a person stopped wakes nobody.
    fn mail_came(&self, state: TaskState) {
        self.has_mail.store(true, Ordering::Relaxed);
        self.ended.notify_waiters();
        if state != TaskState::Cancelled
            && let Some(own) = self.own.upgrade()
            && own.try_send(SessionMsg::Mail).is_err()
        {
            tracing::debug!(session = %self.parent, "the mail is found at the end of the turn");
        }
    }
}

/// A task about to begin.
#[derive(Debug)]
pub(crate) struct NewTask {
    pub(crate) prompt: String,
    pub(crate) agent: Option<String>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) model: Option<String>,
    pub(crate) title: Option<String>,
    /// It gets a git worktree of its own.
    pub(crate) worktree: bool,
    pub(crate) wake: Wake,
}

/// What a child is to be.
struct Work {
    task: SessionId,
    title: String,
    agent: AgentServer,
    cwd: PathBuf,
    worktree: Option<Worktree>,
}

/// A child with all that can be had of it.
#[derive(Clone)]
struct Living {
    orders: mpsc::Sender<Order>,
    standing: Arc<watch::Sender<Standing>>,
    view: Arc<Mutex<View>>,
    seen: Arc<watch::Sender<()>>,
    /// Stops the round that runs.
    round: Arc<Mutex<CancellationToken>>,
}

impl Living {
    fn is_working(&self) -> bool {
        self.standing.borrow().state == TaskState::Running
    }

    fn cancel(&self) {
        self.round.lock().unwrap_or_else(PoisonError::into_inner).cancel();
    }

    fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The children of one session.
pub(crate) struct Children {
    family: Arc<Family>,
    living: Mutex<BTreeMap<SessionId, Living>>,
    /// Calls whose outcome tells of the end of a round, until the outcome is stored.
    telling: Mutex<HashMap<CallId, SessionId>>,
}

/// A round that somebody waits for.
#[derive(Clone)]
pub(crate) struct Awaited {
    living: Living,
    standing: watch::Receiver<Standing>,
    n_ended: u32,
}

impl Children {
    /// Has none yet.
    pub(crate) fn new(
        (kit, client, parent): (Arc<Kit>, Client, SessionId),
        (standing, surroundings): (watch::Receiver<session::Standing>, watch::Receiver<Surroundings>),
        own: mpsc::WeakSender<SessionMsg>,
        cut: CancellationToken,
    ) -> Arc<Self> {
        let settings = kit.settings();
        let above = client.abilities().depth.is_some().then(|| (client.clone(), parent.clone()));
        let depth = depth(&kit, &client);
        let family = Family {
            book: Book::new(settings.tree_limits, above),
            kit,
            client,
            parent,
            standing,
            surroundings,
            depth,
            own,
            has_mail: AtomicBool::new(false),
            ended: Notify::new(),
            asking: tokio::sync::Mutex::default(),
            cut,
            lives: TaskTracker::new(),
        };
        Arc::new(Self { family: Arc::new(family), living: Mutex::default(), telling: Mutex::default() })
    }

    /// What its tokens and those of its children are written down in.
    pub(crate) fn book(&self) -> &Book {
        &self.family.book
    }

    /// Begins a task; gives its name, or says why there is none.
    pub(crate) async fn begin(
        &self,
        new: NewTask,
        spot: Spot,
        cut: &CancellationToken,
    ) -> Result<SessionId, String> {
        let family = &self.family;
        let agent = self.agent(new.agent.as_deref())?;
        let seat = self.seat().await?;
        let surroundings = family.surroundings();
        let cwd = new.cwd.clone().unwrap_or_else(|| surroundings.place.cwd.clone());
        is_folder(&cwd).await?;
        let title = new.title.as_deref().map_or_else(|| self::title(&new.prompt), view::line);
        let task = invent_name();
        let worktree = match new.worktree {
            true => Some(self.worktree(&cwd, &task, cut).await?),
            false => None,
        };
        let cwd = worktree.as_ref().map_or(cwd, |worktree| worktree.path.clone());
        let trusted = self.trusted(&agent);
        let stood = family.standing.borrow().clone();
        let model = match trusted {
            Trusted::Itself => new.model.clone().or(stood.model),
            Trusted::Nobody => new.model.clone(),
        };
        let session = NewSession {
            cwd: cwd.display().to_string(),
            model: model.clone().unwrap_or_default(),
            mode: stood.mode,
            thought_level: stood.thought_level,
            // Crow makes its own when it opens the session.
            system_prompt: String::new(),
            parent: Some(family.parent.clone()),
            agent_type: (trusted == Trusted::Nobody).then(|| agent.name.clone()),
            now: clock::now(),
        };
        let stored = async {
            family.kit.store.create_session(&task, session).await?;
            family.kit.store.attend(&task).await
        };
        let attending = stored.await.map_err(|error| error.to_string())?;
        let opening = match trusted {
            Trusted::Itself => Opening::Own,
            Trusted::Nobody => Opening::New { model },
        };
        let order = self.order(new.prompt, seat, new.wake);
        let work = Work { task: task.clone(), title, agent, cwd, worktree };
        self.start(work, (attending, opening, order), spot).await?;
        Ok(task)
    }

    /// Tells a task more: a further round, or words for the one that runs.
    pub(crate) async fn send(
        &self,
        task: &SessionId,
        text: String,
        wake: Wake,
        spot: Spot,
    ) -> Result<Sent, String> {
        if let Some(living) = self.living(task) {
            if living.is_working() {
                let (answer, answered) = oneshot::channel();
                let sent = living.orders.try_send(Order::Steer { text, answer }).is_ok();
                let busy = || "it is too busy to be told anything; wait for its end".to_owned();
                return match (sent, answered.await) {
                    (true, Ok(steered)) => steered.map(|()| Sent::Steered),
                    (true, Err(_)) => Err("its round ended just now; say it again".to_owned()),
                    (false, _) => Err(busy()),
                };
            }
            let seat = self.seat().await?;
            let order = self.order(text.clone(), seat, wake);
            let cut = order.cut.clone();
            let begins = living.standing.send_if_modified(|standing| {
                let begins = standing.state != TaskState::Running;
                standing.state = TaskState::Running;
                begins
            });
            if begins && living.orders.try_send(Order::Round(order)).is_ok() {
                *living.round.lock().unwrap_or_else(PoisonError::into_inner) = cut;
                return Ok(Sent::Begun);
            }
        }
        self.again(task, text, wake, spot).await.map(|()| Sent::Begun)
    }

    /// Goes on with a task whose agent has ended.
    async fn again(&self, task: &SessionId, text: String, wake: Wake, spot: Spot) -> Result<(), String> {
        let family = &self.family;
        let store = &family.kit.store;
        let row = self.row(task).await?;
        let seat = self.seat().await?;
        let stored = store.load(task).await.map_err(|error| error.to_string())?;
        let Some(stored) = stored else { return Err(unknown(task)) };
        let agent = self.agent(row.agent_type.as_deref())?;
        let opening = match (self.trusted(&agent), stored.session.agent_session_id) {
            (Trusted::Itself, _) => Opening::Own,
            (Trusted::Nobody, Some(name)) => Opening::Again { name },
            (Trusted::Nobody, None) => {
                return Err("its agent never opened a session; give a new task".to_owned());
            }
        };
        let attending = store.attend(task).await.map_err(|error| error.to_string())?;
        let cwd = PathBuf::from(stored.session.cwd);
        let worktree = match cwd.starts_with(&family.kit.settings().worktrees_dir) {
            true => Some(self.worktree(&family.surroundings().place.cwd, task, &family.cut).await?),
            false => None,
        };
        let order = self.order(text, seat, wake);
        let work = Work { task: task.clone(), title: row.title, agent, cwd, worktree };
        self.start(work, (attending, opening, order), spot).await
    }

    fn order(&self, text: String, seat: Seat, wake: Wake) -> RoundOrder {
        RoundOrder { text, seat, cut: self.family.cut.child_token(), wake }
    }

    async fn start(
        &self,
        Work { task, title, agent, cwd, worktree }: Work,
        (attending, opening, order): (crow_store::Attending, Opening, RoundOrder),
        spot: Spot,
    ) -> Result<(), String> {
        let family = self.family.clone();
        let begun = family.kit.store.begin_task(&attending, &title, clock::now()).await;
        begun.map_err(|error| error.to_string())?;
        let (orders, inbox) = mpsc::channel(ORDERS_LEN);
        let standing = Arc::new(watch::Sender::new(Standing {
            n_ended: 0,
            state: TaskState::Running,
            report: String::new(),
        }));
        let (view, seen) = (Arc::<Mutex<View>>::default(), Arc::new(watch::Sender::new(())));
        let trusted = self.trusted(&agent);
        let who = match trusted {
            Trusted::Itself => title.clone(),
            Trusted::Nobody => format!("{}, {title}", agent.name),
        };
        let status = if order.wake == Wake::No { Status::Running } else { Status::Done };
        let living = Living {
            orders,
            standing: standing.clone(),
            view: view.clone(),
            seen: seen.clone(),
            round: Arc::new(Mutex::new(order.cut.clone())),
        };
        let hearing = Hearing {
            // A client shows files of its own folders; a worktree is none of them.
            upstream: worktree.is_none().then(|| child::upstream(&family)),
            who,
            spot,
            trusted,
            cwd: cwd.clone(),
            view,
            seen,
            record: None,
            yeses: Arc::default(),
            seats: Arc::default(),
            n_told: 0,
            n_round: 0,
            status,
            family: family.clone(),
        };
        let round = Some(Round::new(order, family.kit.settings().tree_limits.time_max));
        let AgentServer { name, reach } = agent;
        let child = Child {
            task: task.clone(),
            title,
            agent: name,
            reach,
            cwd,
            hearing,
            orders: inbox,
            standing,
            attending,
            round,
            worktree,
        };
        self.all().insert(task, living);
        family.lives.spawn(child.run(opening));
        Ok(())
    }

    /// Waits for the round of a task that runs now.
    pub(crate) fn awaited(&self, task: &SessionId) -> Option<Awaited> {
        let living = self.living(task)?;
        let standing = living.standing.subscribe();
        let n_ended = standing.borrow().n_ended;
        Some(Awaited { living, standing, n_ended })
    }

    /// Reads what a task has come to.
    pub(crate) async fn read(&self, task: &SessionId) -> Result<String, String> {
        let row = self.row(task).await?;
        let agent = row.agent_type.as_deref().unwrap_or(OWN);
        let head = format!("Task {task} ({agent}: {}): {}.\n", row.title, row.state.as_str());
        let Some(living) = self.living(task) else {
            return Ok(format!("{head}What was said in it: query_session with session_id {task}.\n"));
        };
        let standing = living.standing.borrow().clone();
        Ok(match standing.state {
            TaskState::Running => format!("{head}\n{}\n", living.view().shown()),
            TaskState::Done | TaskState::Failed | TaskState::Cancelled | TaskState::Lost => standing.report,
        })
    }

    /// Stops a task and waits until it has stopped.
    pub(crate) async fn cancel(&self, task: &SessionId) -> Result<String, String> {
        let row = self.row(task).await?;
        match self.awaited(task).filter(|awaited| awaited.living.is_working()) {
            Some(mut awaited) => {
                awaited.living.cancel();
                Ok(awaited.ended().await)
            }
            None => Err(format!("it is not at work: it is {}", row.state.as_str())),
        }
    }

    /// Stops all that are at work, without waiting.
    pub(crate) fn cancel_all(&self) {
        self.all().values().for_each(Living::cancel);
    }

    /// Ends all children and waits for that, though not for ever.
    pub(crate) async fn end(&self) {
        self.family.cut.cancel();
        self.all().clear();
        self.family.lives.close();
        if tokio::time::timeout(END_WAIT_MAX, self.family.lives.wait()).await.is_err() {
            tracing::warn!(session = %self.family.parent, "a child has not ended; its program is killed with this one");
        }
    }

    /// The tasks of the session, a line each.
    pub(crate) async fn listed(&self) -> Result<String, String> {
        let rows =
            self.family.kit.store.tasks_of(&self.family.parent).await.map_err(|error| error.to_string())?;
        if rows.is_empty() {
            return Ok("This session has given no tasks.\n".to_owned());
        }
        let lines = rows.iter().map(|row| {
            let agent = row.agent_type.as_deref().unwrap_or(OWN);
            let tokens = if row.n_tokens > 0 { format!(", {} tokens", row.n_tokens) } else { String::new() };
            format!("- `{}` {agent}: {} — {}{tokens}\n", row.task, row.title, row.state.as_str())
        });
        Ok(lines.collect())
    }

    /// Looks for tasks that ended, or were lost, while nobody had the session open; tells how many the model has not
    /// heard of.
    pub(crate) async fn recover(&self) -> usize {
        let (store, parent) = (&self.family.kit.store, &self.family.parent);
        let lost = store.lose_tasks(parent, clock::now(), lost).await;
        if let Err(error) = lost {
            tracing::warn!(%error, session = %parent, "could not look for tasks that were lost");
        }
        match store.mail(parent).await {
            Ok(mail) => {
                if !mail.is_empty() {
                    self.family.has_mail.store(true, Ordering::Relaxed);
                }
                mail.len()
            }
            Err(error) => {
                tracing::warn!(%error, session = %parent, "could not look into the mailbox");
                0
            }
        }
    }

    /// Tells whether something may wait in the mailbox.
    pub(crate) fn has_mail(&self) -> bool {
        self.family.has_mail.load(Ordering::Relaxed)
    }

    /// Remembers that the outcome of a call tells of the end of a task's round.
    pub(crate) fn tells(&self, call: CallId, task: &SessionId) {
        self.telling().insert(call, task.clone());
    }

    /// What waits in the mailbox and is told by the outcome of a call.
    pub(crate) async fn claims(&self, call: CallId) -> Vec<DeliveryId> {
        let Some(task) = self.telling().remove(&call) else { return Vec::new() };
        match self.family.kit.store.mail(&self.family.parent).await {
            Ok(mail) => {
                mail.iter().filter(|delivery| delivery.task == task).map(|delivery| delivery.id).collect()
            }
            Err(error) => {
                tracing::warn!(%error, "could not look into the mailbox; the model may hear of a task twice");
                Vec::new()
            }
        }
    }

    fn telling(&self) -> MutexGuard<'_, HashMap<CallId, SessionId>> {
        self.telling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what waits in the mailbox; whoever puts it into the history claims it.
    pub(crate) async fn mail(&self) -> Vec<Delivery> {
        if !self.family.has_mail.swap(false, Ordering::Relaxed) {
            return Vec::new();
        }
        match self.family.kit.store.mail(&self.family.parent).await {
            Ok(mail) => mail,
            Err(error) => {
                self.family.has_mail.store(true, Ordering::Relaxed);
                tracing::warn!(%error, "could not look into the mailbox");
                Vec::new()
            }
        }
    }

    /// Tells whether a round of a task runs.
    pub(crate) fn is_at_work(&self, task: &SessionId) -> bool {
        self.living(task).is_some_and(|living| living.is_working())
    }

    /// Waits for mail for as long as a task is at work.
    pub(crate) async fn next_mail(&self) -> Came {
        loop {
            let ended = self.family.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if self.has_mail() {
                return Came::Mail;
            }
            if !self.all().values().any(Living::is_working) {
                return Came::Nothing;
            }
            ended.await;
        }
    }

    /// Tells whether an agent of this name is Crow itself.
    pub(crate) fn is_own(&self, name: &str) -> bool {
        self.agent(Some(name)).is_ok_and(|agent| self.trusted(&agent) == Trusted::Itself)
    }

    async fn worktree(
        &self,
        folder: &Path,
        task: &SessionId,
        cut: &CancellationToken,
    ) -> Result<Worktree, String> {
        let (kit, workspace) = (&self.family.kit, self.family.surroundings().workspace);
        let git = kit.own_tools.tools.git(&workspace);
        let at = &kit.settings().worktrees_dir;
        let made = Worktree::make(&git, folder, at, task.as_str(), cut).await;
        made.map_err(|error| format!("could not make a worktree: {error}"))
    }

    async fn seat(&self) -> Result<Seat, String> {
        let family = &self.family;
        let limits = family.kit.settings().tree_limits;
        if !limits.may_start(family.depth) {
            return Err(format!(
                "this agent stands {} levels below the root, and agents.max_depth allows {}; do it yourself",
                family.depth, limits.depth_max
            ));
        }
        family.book.claim().await
    }

    /// Finds an agent by its name.
    fn agent(&self, name: Option<&str>) -> Result<AgentServer, String> {
        let settings = self.family.kit.settings();
        let name = name.unwrap_or(OWN);
        let configured = settings.agent_servers.iter().find(|server| server.name == name);
        let own = || settings.own_agent.clone().filter(|_| name == OWN);
        configured.cloned().or_else(own).ok_or_else(|| {
            let names = settings.agent_servers.iter().map(|server| server.name.as_str());
            let known: Vec<_> = std::iter::once(OWN).chain(names).collect();
            format!("there is no agent {}; the agents are: {}", view::line(name), known.join(", "))
        })
    }

    fn trusted(&self, agent: &AgentServer) -> Trusted {
        match self.family.kit.settings().own_agent.as_ref() == Some(agent) {
            true => Trusted::Itself,
            false => Trusted::Nobody,
        }
    }

    /// Reads a task of this session; those of others are none of its business.
    async fn row(&self, task: &SessionId) -> Result<TaskRow, String> {
        let row = self.family.kit.store.task(task).await.map_err(|error| error.to_string())?;
        row.filter(|row| row.parent == self.family.parent).ok_or_else(|| unknown(task))
    }

    fn living(&self, task: &SessionId) -> Option<Living> {
        let mut all = self.all();
        all.retain(|_, living| !living.orders.is_closed() || living.is_working());
        all.get(task).cloned()
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<SessionId, Living>> {
        self.living.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What somebody who waited for mail got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Came {
    /// Some.
    Mail,
    /// None, and nobody is at work who could send any.
    Nothing,
}

/// What became of words for a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// They began a round.
    Begun,
    /// The round that runs has them.
    Steered,
}

impl Awaited {
    /// Waits for the end of the round; gives what the parent is told of it.
    pub(crate) async fn ended(&mut self) -> String {
        let n_ended = self.n_ended;
        match self.standing.wait_for(|standing| standing.n_ended > n_ended).await {
            Ok(standing) => standing.report.clone(),
            // The sender lives with the child.
            Err(_) => "the task is gone".to_owned(),
        }
    }

    /// How the round ended.
    pub(crate) fn state(&self) -> TaskState {
        self.standing.borrow().state
    }

    /// Stops the round.
    pub(crate) fn cancel(&self) {
        self.living.cancel();
    }

    /// Rings whenever there is something else to see.
    pub(crate) fn seen(&self) -> watch::Receiver<()> {
        self.living.seen.subscribe()
    }

    /// What is seen of the child.
    pub(crate) fn shown(&self) -> String {
        self.living.view().shown()
    }

    /// What the child did to files, for a client.
    pub(crate) fn diffs(&self) -> Vec<Content> {
        self.living.view().diffs().collect()
    }
}

/// How many levels there are between the root of the tree and a session of this client: as its client says, or whoever
/// started the process.
pub(crate) fn depth(kit: &Kit, client: &Client) -> u32 {
    kit.settings().depth.max(client.abilities().depth.unwrap_or(0))
}

async fn is_folder(path: &Path) -> Result<(), String> {
    match tokio::fs::metadata(path).await {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) | Err(_) => Err(format!("there is no folder {}", path.display())),
    }
}

fn unknown(task: &SessionId) -> String {
    format!("this session has given no task {task}; /tasks lists those it has")
}

fn lost(row: &TaskRow) -> String {
    let TaskRow { task, title, .. } = row;
    format!(
        "Task {task} ({title}) was lost: Crow ended while it was at work.\n\nWhat it said until then: query_session with \
         session_id {task}. To go on with it: task_send.\n"
    )
}

/// Makes a title of a prompt.
fn title(prompt: &str) -> String {
    let line = view::line(prompt);
    match line.char_indices().nth(TITLE_CHARS) {
        Some((cut, _)) => format!("{}…", line[..cut].trim_end()),
        None => line,
    }
}
