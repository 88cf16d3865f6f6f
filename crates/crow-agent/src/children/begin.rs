//! How a task begins or is gone on with: which agent, where, and in whose name.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crow_core::{AgentServer, AgentTransport, SessionId};
use crow_store::{NewSession, TaskLease, invent_name};
use crow_tools::Worktree;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::children::book::BudgetSlot;
use crate::children::child::{
    self, ChildActor, ChildSessionStart, ChildStatus, ChildTurn, ChildTurnRequest, NotifyParent,
};
use crate::children::hearing::{ChildEventHandler, ChildKind, OPEN_MAX, ParentCall};
use crate::children::living::ChildHandle;
use crate::children::view::{self, ChildView};
use crate::children::{ChildAgents, ORDERS_LEN, OWN, unknown_task};
use crate::clock;

/// Characters of a title that is made of a prompt.
const TITLE_CHARS: usize = 40;

/// A task about to begin.
#[derive(Debug)]
pub(crate) struct NewTaskRequest {
    pub(crate) prompt: String,
    pub(crate) agent: Option<String>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) model: Option<String>,
    pub(crate) title: Option<String>,
    /// It gets a git worktree of its own.
    pub(crate) worktree: bool,
    pub(crate) wake: NotifyParent,
}

/// What a child is to be.
struct ChildSpec {
    task: SessionId,
    title: String,
    agent: AgentServer,
    /// Where its session works, perhaps on another machine.
    cwd: PathBuf,
    /// Where its program starts.
    starts_in: PathBuf,
    worktree: Option<Worktree>,
    /// What its agent has told of its cost in an earlier life.
    n_before: u64,
}

impl ChildAgents {
    /// Begins a task; gives its name, or says why there is none.
    pub(crate) async fn start_task(
        &self,
        new: NewTaskRequest,
        spot: ParentCall,
        cut: &CancellationToken,
    ) -> Result<SessionId, String> {
        let family = &self.family;
        let agent = self.find_agent(new.agent.as_deref())?;
        let seat = self.acquire_slot().await?;
        let surroundings = family.environment();
        let here = surroundings.place.cwd.clone();
        let is_far = agent.cwd.is_some();
        let cwd = new.cwd.clone().or_else(|| agent.cwd.clone()).unwrap_or_else(|| here.clone());
        if !is_far {
            check_folder(&cwd).await?;
        }
        let title =
            new.title.as_deref().map_or_else(|| self::title_from_prompt(&new.prompt), view::single_line);
        let task = invent_name();
        let worktree = match new.worktree {
            true if is_far || matches!(agent.reach, AgentTransport::Socket { .. }) => {
                return Err(format!("{} does not share our folders; it can have no worktree", agent.name));
            }
            true => Some(self.create_worktree(&cwd, &task, cut).await?),
            false => None,
        };
        let folder = cwd.clone();
        let cwd = worktree.as_ref().map_or(cwd, |worktree| worktree.path.clone());
        let trusted = self.child_kind(&agent);
        let stood = family.standing.borrow().clone();
        let model = match trusted {
            ChildKind::Itself => self.resolve_own_model(new.model.as_deref())?,
            ChildKind::Nobody => new.model.clone(),
        };
        let session = NewSession {
            cwd: cwd.display().to_string(),
            model: model.clone().unwrap_or_default(),
            mode: stood.mode,
            thought_level: stood.thought_level,
            // Crow makes its own when it opens the session.
            system_prompt: String::new(),
            parent: Some(family.parent.clone()),
            agent_type: (trusted == ChildKind::Nobody).then(|| agent.name.clone()),
            now: clock::now(),
        };
        let stored = async {
            family.kit.store.create_session(&task, session).await?;
            if worktree.is_some() {
                family.kit.store.set_config(&task, WORKTREE_OF, Some(json!(folder))).await?;
            }
            family.kit.store.acquire_task_lease(&task).await
        };
        let attending = stored.await.map_err(|error| error.to_string())?;
        let opening = match trusted {
            ChildKind::Itself => ChildSessionStart::Own,
            ChildKind::Nobody => ChildSessionStart::New { model },
        };
        let shows = (new.wake == NotifyParent::Yes).then(|| task_started_text(&task));
        let order = self.child_turn_request(new.prompt, seat, (new.wake, ParentCall { shows, ..spot }));
        let starts_in = if is_far { here } else { cwd.clone() };
        let work = ChildSpec { task: task.clone(), title, agent, cwd, starts_in, worktree, n_before: 0 };
        self.start_child(work, (attending, opening, order)).await?;
        Ok(task)
    }

    /// Finds the model that Crow itself is to ask: the one named, or that of the session.
    fn resolve_own_model(&self, name: Option<&str>) -> Result<Option<String>, String> {
        match name {
            None => Ok(self.family.standing.borrow().model.clone()),
            Some(name) => {
                let found = self.family.kit.find_model(Some(name));
                found.map(|model| Some(model.name)).map_err(|failure| failure.sentence)
            }
        }
    }

    /// Goes on with a task whose agent has ended.
    pub(super) async fn resume_task(
        &self,
        task: &SessionId,
        text: String,
        wake: NotifyParent,
        spot: ParentCall,
    ) -> Result<(), String> {
        let family = &self.family;
        let store = &family.kit.store;
        let row = self.task_row(task).await?;
        if let Some(living) = self.child_handle(task) {
            // It takes no orders any longer and ends in a moment.
            living.gone.cancelled().await;
        }
        let seat = self.acquire_slot().await?;
        let stored = store.load_session(task).await.map_err(|error| error.to_string())?;
        let Some(stored) = stored else { return Err(unknown_task(task)) };
        let agent = self.find_agent(row.agent_type.as_deref())?;
        let opening = match (self.child_kind(&agent), stored.session.agent_session_id) {
            (ChildKind::Itself, _) => ChildSessionStart::Own,
            (ChildKind::Nobody, Some(name)) => ChildSessionStart::Again { name },
            (ChildKind::Nobody, None) => {
                return Err("its agent never opened a session; give a new task".to_owned());
            }
        };
        let attending = store.acquire_task_lease(task).await.map_err(|error| error.to_string())?;
        let cwd = PathBuf::from(stored.session.cwd);
        let tip = store.session_tip(task).await.map_err(|error| error.to_string())?;
        let worktree = match tip.as_ref().and_then(|tip| stored_worktree(&tip.config)) {
            Some(folder) => Some(self.create_worktree(&folder, task, &family.cut).await?),
            None => None,
        };
        // The same folder, if the repository has not moved.
        let cwd = worktree.as_ref().map_or(cwd, |worktree| worktree.path.clone());
        let order = self.child_turn_request(text, seat, (wake, spot));
        let starts_in = match agent.cwd {
            Some(_) => family.environment().place.cwd,
            None => cwd.clone(),
        };
        let work = ChildSpec {
            task: task.clone(),
            title: row.title,
            agent,
            cwd,
            starts_in,
            worktree,
            n_before: row.n_tokens,
        };
        self.start_child(work, (attending, opening, order)).await
    }

    pub(super) fn child_turn_request(
        &self,
        text: String,
        seat: BudgetSlot,
        (wake, spot): (NotifyParent, ParentCall),
    ) -> ChildTurnRequest {
        ChildTurnRequest { text, seat, cut: self.family.cut.child_token(), wake, spot }
    }

    async fn start_child(
        &self,
        ChildSpec { task, title, agent, cwd, starts_in, worktree, n_before }: ChildSpec,
        (attending, opening, order): (TaskLease, ChildSessionStart, ChildTurnRequest),
    ) -> Result<(), String> {
        let family = self.family.clone();
        let begun = family.kit.store.begin_task(&attending, &title, clock::now()).await;
        begun.map_err(|error| error.to_string())?;
        let (orders, inbox) = mpsc::channel(ORDERS_LEN);
        let standing = Arc::new(watch::Sender::new(ChildStatus::new_working()));
        let (view, seen) = (Arc::<Mutex<ChildView>>::default(), Arc::new(watch::Sender::new(())));
        let trusted = self.child_kind(&agent);
        let gone = CancellationToken::new();
        let living = ChildHandle {
            gone: gone.clone(),
            orders,
            standing: standing.clone(),
            view: view.clone(),
            seen: seen.clone(),
            round: Arc::new(Mutex::new(order.cut.clone())),
        };
        let hearing = ChildEventHandler {
            // A client shows files of its own folders; a worktree is none of them.
            upstream: worktree.is_none().then(|| child::parent_client(&family)),
            task: task.clone(),
            who: child_label(trusted, &agent.name, &title),
            spot: order.spot.clone(),
            trusted,
            is_near: agent.cwd.is_none() && matches!(agent.reach, AgentTransport::Program { .. }),
            cwd: cwd.clone(),
            view,
            seen,
            record: None,
            approved: Arc::default(),
            shares_approvals: trusted == ChildKind::Itself
                && (worktree.is_some() || family.is_session_folder(&cwd)),
            seats: Arc::default(),
            // Crow counts anew with each process, others over a session.
            n_told: if trusted == ChildKind::Itself { 0 } else { n_before },
            n_round: 0,
            open: Arc::new(Semaphore::new(OPEN_MAX)),
            n_refused: 0,
            family: family.clone(),
        };
        hearing.send_child_state(true);
        let round = Some(ChildTurn::new(order, family.kit.config().tree_limits.time_max));
        let AgentServer { name, reach, .. } = agent;
        let child = ChildActor {
            task: task.clone(),
            title,
            agent: name,
            reach,
            cwd,
            starts_in,
            hearing,
            orders: inbox,
            standing,
            attending,
            round,
            worktree,
            gone: gone.drop_guard(),
        };
        self.lock_children().insert(task, living);
        family.lives.spawn(child.run(opening));
        Ok(())
    }

    /// Tells whether an agent of this name is Crow itself.
    pub(crate) fn is_own_agent(&self, name: &str) -> bool {
        self.find_agent(Some(name)).is_ok_and(|agent| self.child_kind(&agent) == ChildKind::Itself)
    }

    async fn create_worktree(
        &self,
        folder: &Path,
        task: &SessionId,
        cut: &CancellationToken,
    ) -> Result<Worktree, String> {
        let (kit, workspace) = (&self.family.kit, self.family.environment().workspace);
        let git = kit.own_tools.tools.git_for(&workspace);
        let settings = kit.config();
        let former = &settings.former_worktrees_dir;
        let is_former = tokio::fs::try_exists(former.join(task.as_str())).await.unwrap_or_default();
        let at = if is_former { former } else { &settings.worktrees_dir };
        let made = Worktree::create(&git, folder, at, task.as_str(), cut).await;
        made.map_err(|error| format!("could not make a worktree: {error}"))
    }

    pub(super) async fn acquire_slot(&self) -> Result<BudgetSlot, String> {
        let family = &self.family;
        let limits = family.kit.config().tree_limits;
        if !limits.may_start(family.depth) {
            return Err(format!(
                "this agent stands {} levels below the root, and agents.max_depth allows {}; do it yourself",
                family.depth, limits.depth_max
            ));
        }
        family.book.acquire_slot().await
    }

    /// Finds an agent by its name.
    pub(super) fn find_agent(&self, name: Option<&str>) -> Result<AgentServer, String> {
        let settings = self.family.kit.config();
        let name = name.unwrap_or(OWN);
        let configured = settings.agent_servers.iter().find(|server| server.name == name);
        let own = || settings.own_agent.clone().filter(|_| name == OWN);
        configured.cloned().or_else(own).ok_or_else(|| {
            let names = settings.agent_servers.iter().map(|server| server.name.as_str());
            let known: Vec<_> = std::iter::once(OWN).chain(names).collect();
            format!("there is no agent {}; the agents are: {}", view::single_line(name), known.join(", "))
        })
    }

    pub(super) fn child_kind(&self, agent: &AgentServer) -> ChildKind {
        match self.family.kit.config().own_agent.as_ref() == Some(agent) {
            true => ChildKind::Itself,
            false => ChildKind::Nobody,
        }
    }
}

/// What a call shows that began a task and does not wait for its end.
pub(crate) fn task_started_text(task: &SessionId) -> String {
    format!(
        "Task {task} has begun. Its end comes to you as a message; do something else meanwhile, or end your turn. To \
         look at it: task_read. To stop it: task_cancel.\n"
    )
}

/// What a call shows that began a further round and does not wait for its end.
pub(crate) fn task_resumed_text(task: &SessionId) -> String {
    format!("Task {task} goes on. Its end comes to you as a message.\n")
}

/// How a child is called where it asks.
fn child_label(trusted: ChildKind, agent: &str, title: &str) -> String {
    match trusted {
        ChildKind::Itself => title.to_owned(),
        ChildKind::Nobody => format!("{agent}, {title}"),
    }
}

/// Where a session remembers, beside what else is set in it, the folder that its worktree was made of.
const WORKTREE_OF: &str = "worktree_of";

fn stored_worktree(config: &str) -> Option<PathBuf> {
    let config: Value = serde_json::from_str(config).ok()?;
    config.get(WORKTREE_OF)?.as_str().map(PathBuf::from)
}

async fn check_folder(path: &Path) -> Result<(), String> {
    match tokio::fs::metadata(path).await {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) | Err(_) => Err(format!("there is no folder {}", path.display())),
    }
}

/// Makes a title of a prompt.
fn title_from_prompt(prompt: &str) -> String {
    let line = view::single_line(prompt);
    match line.char_indices().nth(TITLE_CHARS) {
        Some((cut, _)) => format!("{}…", line[..cut].trim_end()),
        None => line,
    }
}
