//! The children of one session: which exist, and how commands reach them.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crow_acp::Client;
use crow_core::{CallId, ChildTimes, SessionId};
use crow_fleet::FarmConnections;
use crow_store::{DeliveryId, Store, TaskRow, TaskState};
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::budget::TreeBudget;
use crate::handle::{AwaitedTurn, ChildHandle};
use crate::ports::{ChildLauncher, ParentSession};
use crate::questions::ParentCall;
use crate::report::task_resumed_text;
use crate::shared::{ChildrenShared, OWN_AGENT};
use crate::turn::ChildCommand;

/// Idle children that stay alive for another task: each is a process, and starting one takes milliseconds for Crow and
/// seconds for other agents.
const IDLE_CHILDREN_MAX: usize = 4;

/// Time that a session waits for its children when it ends; each of them takes less.
const END_WAIT_MAX: Duration = Duration::from_secs(2);

/// The children of one session.
pub struct ChildAgents {
    pub(crate) shared: Arc<ChildrenShared>,
    pub(crate) handles: Mutex<BTreeMap<SessionId, ChildHandle>>,
    /// Deliveries that results of calls contain, until these results are stored.
    pub(crate) call_deliveries: Mutex<HashMap<CallId, Vec<DeliveryId>>>,
}

/// The parts of a new set of children.
pub struct ChildAgentsInit {
    pub session: Arc<dyn ParentSession>,
    pub launcher: Arc<dyn ChildLauncher>,
    pub store: Store,
    /// The client of the session.
    pub client: Client,
    /// The ID of the session.
    pub parent: SessionId,
    /// The depth of the session in its tree of agents.
    pub depth: u32,
    /// The time limits of children besides that of a turn.
    pub times: ChildTimes,
    /// Ends the children.
    pub cancel: CancellationToken,
}

impl ChildAgents {
    /// Creates an empty set of children.
    pub fn new(init: ChildAgentsInit) -> Arc<Self> {
        let ChildAgentsInit { session, launcher, store, client, parent, depth, times, cancel } = init;
        let upstream = client.capabilities().tree_depth.is_some().then(|| (client.clone(), parent.clone()));
        let shared = ChildrenShared {
            budget: TreeBudget::new(session.agents_config().tree_limits, upstream),
            session,
            launcher,
            farms: FarmConnections::default(),
            store,
            client,
            parent,
            depth,
            times,
            has_mail: AtomicBool::new(false),
            has_urgent_mail: AtomicBool::new(false),
            idle_slots: Arc::new(Semaphore::new(IDLE_CHILDREN_MAX)),
            turn_ended: Notify::new(),
            question_lock: tokio::sync::Mutex::default(),
            failed_calls: Mutex::default(),
            cancel,
            tasks: TaskTracker::new(),
        };
        Arc::new(Self {
            shared: Arc::new(shared),
            handles: Mutex::default(),
            call_deliveries: Mutex::default(),
        })
    }

    /// Records that a call is shown as failed, although its task may go on.
    pub fn record_failed_call(&self, call: CallId, reason: &str) {
        self.shared.record_failed_call(call, reason);
    }

    /// Returns the budget that counts the tokens of the session and its children.
    pub fn tree_budget(&self) -> &TreeBudget {
        &self.shared.budget
    }

    /// Sends a prompt to a task: it starts another turn, or steers the running one.
    pub(crate) async fn send_to_task(
        &self,
        task: &SessionId,
        text: String,
        notify_parent: bool,
        parent_call: ParentCall,
    ) -> Result<TaskSendOutcome, String> {
        let parent_call =
            ParentCall { shown_text: notify_parent.then(|| task_resumed_text(task)), ..parent_call };
        if let Some(child) = self.child_handle(task) {
            if child.is_working() {
                let (answer, answered) = oneshot::channel();
                let is_sent = child.commands.try_send(ChildCommand::Steer { text, answer }).is_ok();
                let busy_error = || "its queue is full; wait until it ends".to_owned();
                return match (is_sent, answered.await) {
                    (true, Ok(steered)) => steered.map(|()| TaskSendOutcome::Steered),
                    (true, Err(_)) => Err("its turn has just ended; send the message again".to_owned()),
                    (false, _) => Err(busy_error()),
                };
            }
            let slot = self.acquire_slot().await?;
            let request = self.child_turn_request(text.clone(), slot, notify_parent, parent_call.clone());
            let cancel = request.cancel.clone();
            let previous = child.status.replace_state(TaskState::Running);
            if previous == TaskState::Running {
                return Err("another message was just sent to it; read the task first".to_owned());
            }
            if child.commands.try_send(ChildCommand::Turn(Box::new(request))).is_ok() {
                *child.turn_cancel.lock().unwrap_or_else(PoisonError::into_inner) = cancel;
                return Ok(TaskSendOutcome::Started);
            }
            child.status.replace_state(previous);
        }
        self.resume_task(task, text, notify_parent, parent_call).await.map(|()| TaskSendOutcome::Started)
    }

    /// Returns a handle to wait for the running turn of a task.
    pub fn running_turn(&self, task: &SessionId) -> Option<AwaitedTurn> {
        let child = self.child_handle(task)?;
        let n_ended = child.status.lock().n_ended;
        Some(AwaitedTurn { child, n_ended })
    }

    /// Returns the state of a task: its current view, or its last result.
    pub(crate) async fn read_task(&self, task: &SessionId) -> Result<TaskReport, String> {
        let told = |text: String| TaskReport { text, deliveries: Vec::new() };
        let row = self.task_row(task).await?;
        let agent = row.agent_type.as_deref().unwrap_or(OWN_AGENT);
        let heading = format!("Task {task} ({agent}: {}): {}.\n", row.title, row.state.as_str());
        let child = self.child_handle(task);
        if let Some(child) = child.as_ref().filter(|living| living.is_working()) {
            return Ok(told(format!("{heading}\n{}\n", child.lock_view().render_view())));
        }
        let mail = self.task_deliveries(task).await.map_err(|error| error.to_string())?;
        if !mail.is_empty() {
            let text = mail.iter().map(|delivery| delivery.text.as_str()).collect::<Vec<_>>().join("\n");
            return Ok(TaskReport { text, deliveries: mail.iter().map(|delivery| delivery.id).collect() });
        }
        Ok(told(match child {
            Some(child) => child.status.lock().report.clone(),
            None => format!("{heading}What was said in it: query_session with session_id {task}.\n"),
        }))
    }

    /// Returns the report on the end of a turn, with the deliveries that contain it.
    pub(crate) async fn task_report(&self, task: &SessionId, report: String) -> TaskReport {
        let mail = match self.task_deliveries(task).await {
            Ok(mail) => mail,
            Err(error) => {
                tracing::warn!(%error, %task, "could not read the mailbox; the report is a message of its own");
                // With the report in it, this text would tell the model what the message tells it again.
                self.mark_mail_pending();
                let text = format!("Task {task} has ended; its report comes to you as a message.\n");
                return TaskReport { text, deliveries: Vec::new() };
            }
        };
        let matching = mail.iter().filter(|delivery| delivery.text == report);
        TaskReport { deliveries: matching.map(|delivery| delivery.id).collect(), text: report }
    }

    /// Cancels a task and waits until it has stopped.
    pub(crate) async fn cancel_task(&self, task: &SessionId) -> Result<TaskReport, String> {
        let row = self.task_row(task).await?;
        match self.running_turn(task).filter(|awaited| awaited.child.is_working()) {
            Some(awaited) => {
                awaited.child.cancel_turn();
                let report = awaited.wait_for_end().await;
                Ok(self.task_report(task, report).await)
            }
            None => Err(format!("it is not running: it is {}", row.state.as_str())),
        }
    }

    /// Cancels one task, without waiting.
    pub(crate) fn cancel_one(&self, task: &SessionId) {
        if let Some(child) = self.child_handle(task) {
            child.cancel_turn();
        }
    }

    /// Cancels all running tasks, without waiting.
    pub fn cancel_all(&self) {
        self.lock_children().values().for_each(ChildHandle::cancel_turn);
    }

    /// Ends all children and waits for them for a limited time.
    pub async fn end_all(&self) {
        self.shared.cancel.cancel();
        self.lock_children().clear();
        self.shared.tasks.close();
        let ended = async {
            self.shared.tasks.wait().await;
            // The queues no longer have their tasks.
            self.shared.farms.close().await;
        };
        if tokio::time::timeout(END_WAIT_MAX, ended).await.is_err() {
            tracing::warn!(session = %self.shared.parent, "a child did not end in time; its program is killed");
        }
    }

    /// Renders the tasks of the session, one per line.
    pub async fn list_tasks(&self) -> Result<String, String> {
        let rows = self.shared.store.list_tasks(&self.shared.parent).await;
        let rows = rows.map_err(|error| error.to_string())?;
        if rows.is_empty() {
            return Ok("This session has no tasks.\n".to_owned());
        }
        let lines = rows.iter().map(|row| {
            let agent = row.agent_type.as_deref().unwrap_or(OWN_AGENT);
            let tokens = if row.n_tokens > 0 { format!(", {} tokens", row.n_tokens) } else { String::new() };
            format!("- `{}` {agent}: {} — {}{tokens}\n", row.task, row.title, row.state.as_str())
        });
        Ok(lines.collect())
    }

    /// Reads a task of this session; tasks of other sessions are not found.
    pub(crate) async fn task_row(&self, task: &SessionId) -> Result<TaskRow, String> {
        let row = self.shared.store.find_task(task).await.map_err(|error| error.to_string())?;
        row.filter(|row| row.parent == self.shared.parent).ok_or_else(|| unknown_task(task))
    }

    pub(crate) fn child_handle(&self, task: &SessionId) -> Option<ChildHandle> {
        let mut handles = self.lock_children();
        handles.retain(|_, child| !child.stopped.is_cancelled());
        handles.get(task).cloned()
    }

    pub(crate) fn lock_children(&self) -> MutexGuard<'_, BTreeMap<SessionId, ChildHandle>> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A text about a task, with the deliveries it contains.
#[derive(Debug)]
pub(crate) struct TaskReport {
    pub(crate) text: String,
    pub(crate) deliveries: Vec<DeliveryId>,
}

/// The outcome of a prompt sent to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskSendOutcome {
    /// It started a turn.
    Started,
    /// It was sent into the running turn.
    Steered,
}

pub(crate) fn unknown_task(task: &SessionId) -> String {
    format!("this session has no task {task}; /tasks lists its tasks")
}
