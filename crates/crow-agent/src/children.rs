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

pub(crate) use self::begin::{NewTask, goes_on, has_begun};
use self::book::Book;
pub(crate) use self::book::Context;
use self::child::Order;
pub(crate) use self::child::Wake;
pub(crate) use self::family::{Family, Surroundings};
pub(crate) use self::hearing::Spot;
pub(crate) use self::living::Awaited;
use self::living::Living;
pub(crate) use self::mail::Came;
pub(crate) use self::view::line;
use crate::approvals::Approvals;
use crate::handle::SessionMsg;
use crate::kit::Kit;
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
pub(crate) struct Children {
    family: Arc<Family>,
    living: Mutex<BTreeMap<SessionId, Living>>,
    /// What the outcomes of calls tell of the mailbox, until they are stored.
    telling: Mutex<HashMap<CallId, Vec<DeliveryId>>>,
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
        let approvals = Approvals::new(kit.clone(), parent.clone(), client.abilities().depth.is_some());
        let family = Family {
            book: Book::new(settings.tree_limits, above),
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
    pub(crate) fn book(&self) -> &Book {
        &self.family.book
    }

    /// What the person allowed beyond single calls, to the session and to its children.
    pub(crate) fn approvals(&self) -> &Approvals {
        &self.family.approvals
    }

    /// Tells a task more: a further round, or words for the one that runs.
    pub(crate) async fn send(
        &self,
        task: &SessionId,
        text: String,
        wake: Wake,
        spot: Spot,
    ) -> Result<Sent, String> {
        let spot = Spot { shows: (wake == Wake::Yes).then(|| goes_on(task)), ..spot };
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
            let order = self.order(text.clone(), seat, (wake, spot.clone()));
            let cut = order.cut.clone();
            let mut before = TaskState::Running;
            living.standing.send_modify(|standing| {
                before = std::mem::replace(&mut standing.state, TaskState::Running);
            });
            if before == TaskState::Running {
                return Err("somebody else has just told it something; look at it first".to_owned());
            }
            if living.orders.try_send(Order::Round(order)).is_ok() {
                *living.round.lock().unwrap_or_else(PoisonError::into_inner) = cut;
                return Ok(Sent::Begun);
            }
            living.standing.send_modify(|standing| standing.state = before);
        }
        self.again(task, text, wake, spot).await.map(|()| Sent::Begun)
    }

    /// Waits for the round of a task that runs now.
    pub(crate) fn awaited(&self, task: &SessionId) -> Option<Awaited> {
        let living = self.living(task)?;
        let standing = living.standing.subscribe();
        let n_ended = standing.borrow().n_ended;
        Some(Awaited { living, standing, n_ended })
    }

    /// Reads what a task has come to.
    pub(crate) async fn read(&self, task: &SessionId) -> Result<Told, String> {
        let told = |text: String| Told { text, deliveries: Vec::new() };
        let row = self.row(task).await?;
        let agent = row.agent_type.as_deref().unwrap_or(OWN);
        let head = format!("Task {task} ({agent}: {}): {}.\n", row.title, row.state.as_str());
        let living = self.living(task);
        if let Some(living) = living.as_ref().filter(|living| living.is_working()) {
            return Ok(told(format!("{head}\n{}\n", living.view().shown())));
        }
        let mail = self.mail_of(task).await;
        if !mail.is_empty() {
            let text = mail.iter().map(|delivery| delivery.text.as_str()).collect::<Vec<_>>().join("\n");
            return Ok(Told { text, deliveries: mail.iter().map(|delivery| delivery.id).collect() });
        }
        Ok(told(match living {
            Some(living) => living.standing.borrow().report.clone(),
            None => format!("{head}What was said in it: query_session with session_id {task}.\n"),
        }))
    }

    /// Says what is told of the end of a round, with what waits of it in the mailbox.
    pub(crate) async fn told(&self, task: &SessionId, report: String) -> Told {
        let mail = self.mail_of(task).await;
        let same = mail.iter().filter(|delivery| delivery.text == report);
        Told { deliveries: same.map(|delivery| delivery.id).collect(), text: report }
    }

    /// Stops a task and waits until it has stopped.
    pub(crate) async fn cancel(&self, task: &SessionId) -> Result<Told, String> {
        let row = self.row(task).await?;
        match self.awaited(task).filter(|awaited| awaited.living.is_working()) {
            Some(mut awaited) => {
                awaited.living.cancel();
                let report = awaited.ended().await;
                Ok(self.told(task, report).await)
            }
            None => Err(format!("it is not at work: it is {}", row.state.as_str())),
        }
    }

    /// Stops one, without waiting.
    pub(crate) fn cancel_one(&self, task: &SessionId) {
        if let Some(living) = self.living(task) {
            living.cancel();
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

    /// Reads a task of this session; those of others are none of its business.
    async fn row(&self, task: &SessionId) -> Result<TaskRow, String> {
        let row = self.family.kit.store.task(task).await.map_err(|error| error.to_string())?;
        row.filter(|row| row.parent == self.family.parent).ok_or_else(|| unknown(task))
    }

    fn living(&self, task: &SessionId) -> Option<Living> {
        let mut all = self.all();
        all.retain(|_, living| !living.gone.is_cancelled());
        all.get(task).cloned()
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<SessionId, Living>> {
        self.living.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the outcome of a call says of a task, and what of the mailbox it tells by that.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) text: String,
    pub(crate) deliveries: Vec<DeliveryId>,
}

/// What became of words for a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// They began a round.
    Begun,
    /// The round that runs has them.
    Steered,
}

/// How many levels there are between the root of the tree and a session of this client: as its client says, or whoever
/// started the process.
pub(crate) fn depth(kit: &Kit, client: &Client) -> u32 {
    kit.settings().depth.max(client.abilities().depth.unwrap_or(0))
}

fn unknown(task: &SessionId) -> String {
    format!("this session has given no task {task}; /tasks lists those it has")
}
