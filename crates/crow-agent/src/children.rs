//! The agents that a session has at work: which there are, how a further one begins, and where orders for them go. What
//! a child does is its own affair; what it asks goes to the session's client, what it comes to into the session's mailbox.

mod begin;
mod book;
mod child;
mod ending;
mod family;
mod hearing;
mod living;
mod mail;
mod permit;
mod record;
mod report;
mod view;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crow_acp::Client;
use crow_core::{CallId, SessionId};
use crow_store::{DeliveryId, TaskRow, TaskState};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use self::begin::{NewTaskRequest, task_resumed_text, task_started_text};
pub(crate) use self::book::ContextUsage;
use self::book::TreeBudget;
use self::child::ChildCommand;
pub(crate) use self::child::NotifyParent;
pub(crate) use self::family::{ChildrenShared, SessionEnvironment};
pub(crate) use self::hearing::ParentCall;
pub(crate) use self::living::AwaitedTurn;
use self::living::ChildHandle;
pub(crate) use self::mail::MailWaitOutcome;
pub(crate) use self::view::single_line;
use crate::approvals::GrantStore;
use crate::handle::SessionMsg;
use crate::kit::AgentRuntime;
use crate::session;

/// Where an agent and all that it starts, whoever they are, can read how deep they stand.
pub const DEPTH_VARIABLE: &str = "CROW_DEPTH";

/// The name of the agent that every configuration has: Crow itself.
pub const OWN: &str = "crow";

/// Children without work that are kept for more: each is a process, and starting one again takes milliseconds for
/// Crow and seconds for others.
const IDLE_KEPT: usize = 4;

/// Orders that may wait for a child; it takes each at once.
const ORDERS_LEN: usize = 8;

/// How long a session that ends waits for its children; each of them takes less.
const END_WAIT_MAX: Duration = Duration::from_secs(2);

/// The children of one session.
pub(crate) struct ChildAgents {
    family: Arc<ChildrenShared>,
    living: Mutex<BTreeMap<SessionId, ChildHandle>>,
    /// What the outcomes of calls tell of the mailbox, until they are stored.
    telling: Mutex<HashMap<CallId, Vec<DeliveryId>>>,
}

impl ChildAgents {
    /// Has none yet.
    pub(crate) fn new(
        (kit, client, parent): (Arc<AgentRuntime>, Client, SessionId),
        (standing, surroundings): (
            watch::Receiver<session::SessionSettings>,
            watch::Receiver<SessionEnvironment>,
        ),
        own: mpsc::WeakSender<SessionMsg>,
        cut: CancellationToken,
    ) -> Arc<Self> {
        let settings = kit.config();
        let above = client.capabilities().depth.is_some().then(|| (client.clone(), parent.clone()));
        let depth = tree_depth(&kit, &client);
        let approvals = GrantStore::new(kit.clone(), parent.clone(), client.capabilities().depth.is_some());
        let family = ChildrenShared {
            book: TreeBudget::new(settings.tree_limits, above),
            kit,
            client,
            parent,
            standing,
            surroundings,
            approvals,
            depth,
            own,
            has_mail: AtomicBool::new(false),
            wakes: AtomicBool::new(false),
            idle: Semaphore::new(IDLE_KEPT),
            ended: Notify::new(),
            asking: tokio::sync::Mutex::default(),
            cut,
            lives: TaskTracker::new(),
        };
        Arc::new(Self { family: Arc::new(family), living: Mutex::default(), telling: Mutex::default() })
    }

    /// What its tokens and those of its children are written down in.
    pub(crate) fn tree_budget(&self) -> &TreeBudget {
        &self.family.book
    }

    /// What the person allowed beyond single calls, to the session and to its children.
    pub(crate) fn grant_store(&self) -> &GrantStore {
        &self.family.approvals
    }

    /// Tells a task more: a further round, or words for the one that runs.
    pub(crate) async fn send_to_task(
        &self,
        task: &SessionId,
        text: String,
        wake: NotifyParent,
        spot: ParentCall,
    ) -> Result<TaskSendOutcome, String> {
        let spot = ParentCall { shows: (wake == NotifyParent::Yes).then(|| task_resumed_text(task)), ..spot };
        if let Some(living) = self.child_handle(task) {
            if living.is_working() {
                let (answer, answered) = oneshot::channel();
                let sent = living.orders.try_send(ChildCommand::Steer { text, answer }).is_ok();
                let busy = || "it is too busy to be told anything; wait for its end".to_owned();
                return match (sent, answered.await) {
                    (true, Ok(steered)) => steered.map(|()| TaskSendOutcome::Steered),
                    (true, Err(_)) => Err("its round ended just now; say it again".to_owned()),
                    (false, _) => Err(busy()),
                };
            }
            let seat = self.acquire_slot().await?;
            let order = self.child_turn_request(text.clone(), seat, (wake, spot.clone()));
            let cut = order.cut.clone();
            let mut before = TaskState::Running;
            living.standing.send_modify(|standing| {
                before = std::mem::replace(&mut standing.state, TaskState::Running);
            });
            if before == TaskState::Running {
                return Err("somebody else has just told it something; look at it first".to_owned());
            }
            if living.orders.try_send(ChildCommand::Round(order)).is_ok() {
                *living.round.lock().unwrap_or_else(PoisonError::into_inner) = cut;
                return Ok(TaskSendOutcome::Begun);
            }
            living.standing.send_modify(|standing| standing.state = before);
        }
        self.resume_task(task, text, wake, spot).await.map(|()| TaskSendOutcome::Begun)
    }

    /// Waits for the round of a task that runs now.
    pub(crate) fn running_turn(&self, task: &SessionId) -> Option<AwaitedTurn> {
        let living = self.child_handle(task)?;
        let standing = living.standing.subscribe();
        let n_ended = standing.borrow().n_ended;
        Some(AwaitedTurn { living, standing, n_ended })
    }

    /// Reads what a task has come to.
    pub(crate) async fn read_task(&self, task: &SessionId) -> Result<TaskReport, String> {
        let told = |text: String| TaskReport { text, deliveries: Vec::new() };
        let row = self.task_row(task).await?;
        let agent = row.agent_type.as_deref().unwrap_or(OWN);
        let head = format!("Task {task} ({agent}: {}): {}.\n", row.title, row.state.as_str());
        let living = self.child_handle(task);
        if let Some(living) = living.as_ref().filter(|living| living.is_working()) {
            return Ok(told(format!("{head}\n{}\n", living.lock_view().render_view())));
        }
        let mail = self.task_deliveries(task).await;
        if !mail.is_empty() {
            let text = mail.iter().map(|delivery| delivery.text.as_str()).collect::<Vec<_>>().join("\n");
            return Ok(TaskReport { text, deliveries: mail.iter().map(|delivery| delivery.id).collect() });
        }
        Ok(told(match living {
            Some(living) => living.standing.borrow().report.clone(),
            None => format!("{head}What was said in it: query_session with session_id {task}.\n"),
        }))
    }

    /// Says what is told of the end of a round, with what waits of it in the mailbox.
    pub(crate) async fn task_report(&self, task: &SessionId, report: String) -> TaskReport {
        let mail = self.task_deliveries(task).await;
        let same = mail.iter().filter(|delivery| delivery.text == report);
        TaskReport { deliveries: same.map(|delivery| delivery.id).collect(), text: report }
    }

    /// Stops a task and waits until it has stopped.
    pub(crate) async fn cancel_task(&self, task: &SessionId) -> Result<TaskReport, String> {
        let row = self.task_row(task).await?;
        match self.running_turn(task).filter(|awaited| awaited.living.is_working()) {
            Some(mut awaited) => {
                awaited.living.cancel_turn();
                let report = awaited.wait_for_end().await;
                Ok(self.task_report(task, report).await)
            }
            None => Err(format!("it is not at work: it is {}", row.state.as_str())),
        }
    }

    /// Stops one, without waiting.
    pub(crate) fn cancel_one(&self, task: &SessionId) {
        if let Some(living) = self.child_handle(task) {
            living.cancel_turn();
        }
    }

    /// Stops all that are at work, without waiting.
    pub(crate) fn cancel_all(&self) {
        self.lock_children().values().for_each(ChildHandle::cancel_turn);
    }

    /// Ends all children and waits for that, though not for ever.
    pub(crate) async fn end_all(&self) {
        self.family.cut.cancel();
        self.lock_children().clear();
        self.family.lives.close();
        if tokio::time::timeout(END_WAIT_MAX, self.family.lives.wait()).await.is_err() {
            tracing::warn!(session = %self.family.parent, "a child has not ended; its program is killed with this one");
        }
    }

    /// The tasks of the session, a line each.
    pub(crate) async fn list_tasks(&self) -> Result<String, String> {
        let rows =
            self.family.kit.store.list_tasks(&self.family.parent).await.map_err(|error| error.to_string())?;
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

    /// Reads a task of this session; those of others are none of its business.
    async fn task_row(&self, task: &SessionId) -> Result<TaskRow, String> {
        let row = self.family.kit.store.find_task(task).await.map_err(|error| error.to_string())?;
        row.filter(|row| row.parent == self.family.parent).ok_or_else(|| unknown_task(task))
    }

    fn child_handle(&self, task: &SessionId) -> Option<ChildHandle> {
        let mut all = self.lock_children();
        all.retain(|_, living| !living.gone.is_cancelled());
        all.get(task).cloned()
    }

    fn lock_children(&self) -> MutexGuard<'_, BTreeMap<SessionId, ChildHandle>> {
        self.living.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the outcome of a call says of a task, and what of the mailbox it tells by that.
#[derive(Debug)]
pub(crate) struct TaskReport {
    pub(crate) text: String,
    pub(crate) deliveries: Vec<DeliveryId>,
}

/// What became of words for a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskSendOutcome {
    /// They began a round.
    Begun,
    /// The round that runs has them.
    Steered,
}

/// How many levels there are between the root of the tree and a session of this client: as its client says, or whoever
/// started the process.
pub(crate) fn tree_depth(kit: &AgentRuntime, client: &Client) -> u32 {
    kit.config().depth.max(client.capabilities().depth.unwrap_or(0))
}

fn unknown_task(task: &SessionId) -> String {
    format!("this session has given no task {task}; /tasks lists those it has")
}
