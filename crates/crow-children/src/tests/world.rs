//! A session with children, and the steps of a test.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crow_core::{CallId, ChildTimes, Mode, SessionId, ThoughtLevel, TreeLimits};
use crow_store::{DatabaseAddress, NewSession, Store, TaskLease, TaskPlace, Timestamp};
use crow_tools::Workspace;
use expect_test::Expect;
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::fake_session::{FakeSession, connect_client};
use super::scripted_agent::{ScriptedLauncher, call_info};
use crate::child_agents::{ChildAgents, ChildAgentsInit, TaskSendOutcome};
use crate::handle::AwaitedTurn;
use crate::questions::ParentCall;
use crate::start::NewTaskRequest;

/// Time that a scripted agent has to stop; one that stops does so at once.
const STOP_TIME: Duration = Duration::from_millis(20);

/// Lines that a test compares.
#[derive(Clone, Default)]
pub(super) struct TestLog(Arc<Mutex<String>>, Arc<Notify>);

impl TestLog {
    pub(super) fn push(&self, line: &str) {
        let mut log = self.0.lock().unwrap();
        log.push_str(line.trim_end());
        log.push('\n');
        self.1.notify_waiters();
    }

    /// Waits until it contains a text.
    async fn wait_for(&self, text: &str) {
        loop {
            let pushed = self.1.notified();
            if self.text().contains(text) {
                return;
            }
            pushed.await;
        }
    }

    fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

/// A session with its children.
struct TestWorld {
    children: Arc<ChildAgents>,
    session: Arc<FakeSession>,
    store: Store,
    folder: TempDir,
    log: TestLog,
    task: Option<SessionId>,
    /// The turn that `wait` waits for.
    turn: Option<AwaitedTurn>,
    crash: Arc<Notify>,
    /// A lease that another process holds.
    foreign_lease: Option<(Store, TaskLease)>,
}

fn parent() -> SessionId {
    SessionId::new("parent")
}

fn new_session(folder: &TempDir, parent: Option<SessionId>) -> NewSession {
    NewSession {
        cwd: folder.path().display().to_string(),
        model: String::new(),
        mode: Mode::Ask,
        thought_level: ThoughtLevel::default(),
        system_prompt: String::new(),
        parent,
        agent_type: None,
        now: Timestamp(0),
    }
}

impl TestWorld {
    async fn start(limits: TreeLimits, turns: &[&str]) -> Self {
        let (folder, log) = (tempfile::tempdir().unwrap(), TestLog::default());
        let store = Store::open(&DatabaseAddress::File(folder.path().join("crow.db"))).await.unwrap();
        store.create_session(&parent(), new_session(&folder, None)).await.unwrap();
        let workspace = Arc::new(Workspace::new(folder.path().to_owned(), &[], Vec::new()));
        let mode = watch::Sender::new(Mode::Ask);
        let session =
            Arc::new(FakeSession { workspace, limits, farm: Mutex::default(), mode, log: log.clone() });
        let crash = Arc::new(Notify::new());
        let turns = turns.iter().map(|turn| (*turn).to_owned()).collect();
        let children = ChildAgents::new(ChildAgentsInit {
            session: session.clone(),
            launcher: Arc::new(ScriptedLauncher {
                turns: Arc::new(Mutex::new(turns)),
                crash: crash.clone(),
                log: log.clone(),
            }),
            store: store.clone(),
            client: connect_client(log.clone()).await,
            parent: parent(),
            depth: 0,
            times: ChildTimes { stop: STOP_TIME, ..ChildTimes::default() },
            cancel: CancellationToken::new(),
        });
        Self { children, session, store, folder, log, task: None, turn: None, crash, foreign_lease: None }
    }

    fn task(&self) -> &SessionId {
        self.task.as_ref().expect("a task was started")
    }

    /// Carries out a step of the parent and writes down its result.
    async fn run_step(&mut self, step: &str) {
        self.log.push(&format!("> {step}"));
        let (word, text) = step.split_once(' ').unwrap_or((step, ""));
        match word {
            "start" => self.start_task(text, false).await,
            "background" => self.start_task(text, true).await,
            "send" => self.send(text).await,
            "until" => self.wait_for_view(text).await,
            "asked" => self.log.wait_for(&format!("user: {text}")).await,
            "shown" => self.log.push(&self.shown_view()),
            "wait" => {
                let report = self.turn.take().expect("a turn").wait_for_end().await;
                self.log.push(&report);
            }
            "cancel" => match self.children.cancel_task(self.task()).await {
                Ok(report) => self.log.push(&report.text),
                Err(reason) => self.log.push(&reason),
            },
            "read" => match self.children.read_task(self.task()).await {
                Ok(report) => self.log.push(&report.text),
                Err(reason) => self.log.push(&reason),
            },
            "mail" => {
                self.log.push(&format!("{:?}", self.children.wait_for_mail().await));
                for delivery in self.children.take_deliveries().await.unwrap() {
                    self.log.push(&delivery.text);
                }
            }
            "mode" => drop(self.session.mode.send_replace(Mode::parse(text).unwrap())),
            "crash" => self.crash.notify_one(),
            "gone" => self.child_has_ended().await,
            "taken" => {
                let address = DatabaseAddress::File(self.folder.path().join("crow.db"));
                let other = Store::open(&address).await.unwrap();
                let lease = other.acquire_task_lease(self.task()).await.unwrap();
                self.foreign_lease = Some((other, lease));
            }
            "lost" => self.lose_task(None).await,
            "worktree" => self.make_worktree(),
            "far" => self.lose_task(Some(text)).await,
            "farm" => *self.session.farm.lock().unwrap() = Some(text.to_owned()),
            "noticed" => self.log.wait_for(&format!("notice: {text}")).await,
            "attach" => self.turn = self.children.running_turn(self.task()),
            "recover" => {
                let recovered = self.children.recover_tasks().await;
                let resumed = match recovered.n_resumed {
                    0 => String::new(),
                    n => format!(", {n} resumed"),
                };
                self.log.push(&format!("{} deliveries{resumed}", recovered.n_deliveries));
            }
            "list" => self.log.push(&self.children.list_tasks().await.unwrap()),
            "end_all" => self.children.end_all().await,
            _ => panic!("{step}"),
        }
    }

    async fn start_task(&mut self, agent: &str, notify_parent: bool) {
        let request = NewTaskRequest {
            prompt: "count".to_owned(),
            agent: Some(agent.to_owned()).filter(|agent| !agent.is_empty()),
            cwd: None,
            model: None,
            title: None,
            worktree: false,
            notify_parent,
        };
        match self.children.start_task(request, parent_call(), &CancellationToken::new()).await {
            Ok(task) => {
                self.turn = self.children.running_turn(&task);
                self.task = Some(task);
            }
            Err(reason) => self.log.push(&reason),
        }
    }

    async fn send(&mut self, text: &str) {
        match self.children.send_to_task(self.task(), text.to_owned(), false, parent_call()).await {
            Ok(TaskSendOutcome::Started) => self.turn = self.children.running_turn(self.task()),
            Ok(TaskSendOutcome::Steered) => self.log.push("steered"),
            Err(reason) => self.log.push(&reason),
        }
    }

    /// Waits until the view of the running turn has a text.
    async fn wait_for_view(&self, text: &str) {
        let turn = self.turn.as_ref().expect("a turn");
        let mut view_changed = turn.subscribe_view();
        while !turn.child.lock_view().render_view().contains(text) {
            view_changed.changed().await.unwrap();
        }
    }

    /// Returns what the client is shown of the running turn.
    fn shown_view(&self) -> String {
        let turn = self.turn.as_ref().expect("a turn");
        let mut view_changed = turn.subscribe_view();
        view_changed.mark_changed();
        turn.changed_view(&mut view_changed).unwrap_or_default()
    }

    async fn child_has_ended(&self) {
        if let Some(child) = self.children.child_handle(self.task()) {
            child.stopped.cancelled().await;
        }
    }

    /// Stores a running task that no process drives.
    async fn lose_task(&mut self, place: Option<&str>) {
        let task = SessionId::new("lost-task");
        let agent_type = place.map(|_| "farm".to_owned());
        let session = NewSession { agent_type, ..new_session(&self.folder, Some(parent())) };
        self.store.create_session(&task, session).await.unwrap();
        let lease = self.store.acquire_task_lease(&task).await.unwrap();
        self.store.begin_task(&lease, "count", Timestamp(0)).await.unwrap();
        if let Some(place) = place {
            let place = if place == "broken" { place.to_owned() } else { place_at(place) };
            assert!(self.store.keep_task_place(&task, TaskPlace::new(place)).await.unwrap());
        }
        self.store.release_task_lease(lease).await;
        self.task = Some(task);
    }
}

/// The stored place of a task at this server.
fn place_at(server: &str) -> String {
    let message = json!({
        "version": 1, "task": "t1", "ticket": "07".repeat(32), "prompt": "count", "model": null, "mode": "ask",
        "depth": 1,
    });
    let farm = json!({
        "version": 1, "servers": [server], "queue": "build", "parent": "me", "given_at": 0, "message": message,
    });
    json!({ "call": "call-1-0", "farm": farm.to_string() }).to_string()
}

impl TestWorld {
    /// Makes the directory of a worktree, as the task has left it.
    fn make_worktree(&self) {
        std::fs::create_dir_all(self.folder.path().join("worktrees").join(self.task().as_str())).unwrap();
    }
}

fn parent_call() -> ParentCall {
    ParentCall { call: CallId::from_position(1, 0), info: call_info("Task: count"), shown_text: None }
}

/// Runs steps of a parent, separated by ` / `, with an agent whose turns are scripted. Shows what happened; the name of
/// the task is `TASK`.
#[track_caller]
pub(super) fn check(turns: &[&str], steps: &str, expected: &Expect) {
    check_limited(TreeLimits::default(), turns, steps, expected);
}

#[track_caller]
pub(super) fn check_limited(limits: TreeLimits, turns: &[&str], steps: &str, expected: &Expect) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let log = runtime.block_on(async {
        let mut world = TestWorld::start(limits, turns).await;
        for step in steps.split(" / ") {
            world.run_step(step).await;
        }
        let log = world.log.text();
        world.children.end_all().await;
        match &world.task {
            Some(task) => log.replace(task.as_str(), "TASK"),
            None => log,
        }
        .replace(&world.folder.path().display().to_string(), "FOLDER")
    });
    expected.assert_eq(&log);
}
