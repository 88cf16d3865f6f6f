//! A server with workers and one parent.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crow_acp::{
    AcpClientCapabilities, AgentCommand, AgentConnection, AgentLauncher, AgentUpdate, ClientEvent,
    ClientInfo, LineTransport, StopReason, TurnScope, drive_agent,
};
use crow_core::{ContentPart, FarmAddress, Mode, NatsCredentials, NatsServer as ServerAddress, SessionId};
use crow_fleet::{
    FarmConnections, FarmPlace, FarmTask, FleetWorker, PlaceKeeper, QueueOptions, QueuedFarmTask,
    ResumedFarmTask, SentCode, TaskBeginning, WorkerEvent, WorkerOptions,
};
use crow_testkit::{NatsCluster, NatsServer, agent};
use crow_tools::GitCli;
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The longest wait for an event on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a test on one thread, as the program does.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(test);
}

/// Waits for an event.
pub(crate) async fn soon<T>(what: &str, event: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, event)
        .await
        .unwrap_or_else(|_| panic!("{what}: it did not happen in time"))
}

/// A server or a cluster, its farm, and the directories of a test.
pub(crate) struct World<S = NatsServer> {
    pub(crate) server: S,
    urls: String,
    replicas: usize,
    pub(crate) directory: TempDir,
    pub(crate) ack_wait: Duration,
    pub(crate) farms: FarmConnections,
    n_workers: usize,
}

/// A worker in this process.
pub(crate) struct RunningWorker {
    pub(crate) stop: CancellationToken,
    crash: CancellationToken,
    thread: std::thread::JoinHandle<()>,
    pub(crate) events: mpsc::Receiver<WorkerEvent>,
}

impl World {
    /// Starts a server; `None` where there is none.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with("")
    }

    pub(crate) fn start_with(config: &str) -> Option<Self> {
        let server = NatsServer::start_with(config)?;
        let urls = server.url();
        Some(Self::new(server, urls, 1))
    }
}

impl World<NatsCluster> {
    /// Starts a cluster whose servers all store each message; `None` where there is none.
    pub(crate) fn start_cluster() -> Option<Self> {
        let cluster = NatsCluster::start()?;
        let (urls, replicas) = (cluster.url(), cluster.n_servers());
        Some(Self::new(cluster, urls, replicas))
    }
}

impl<S> World<S> {
    fn new(server: S, urls: String, replicas: usize) -> Self {
        Self {
            server,
            urls,
            replicas,
            directory: tempfile::tempdir().expect("a folder can be made"),
            ack_wait: Duration::from_secs(30),
            farms: FarmConnections::default(),
            n_workers: 0,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn address(&self) -> ServerAddress {
        ServerAddress { urls: self.urls.clone(), credentials: NatsCredentials::None, tls_ca_file: None }
    }

    pub(crate) fn farm(&self) -> FarmAddress {
        FarmAddress { server: self.address(), queue: "build".to_owned(), parent_name: "me".to_owned() }
    }

    pub(crate) fn queue_options(&self, name: &str) -> QueueOptions {
        QueueOptions { ack_wait: self.ack_wait, ..QueueOptions::new(name.to_owned(), self.replicas) }
    }

    /// The options of a worker whose agent behaves like this.
    pub(crate) fn worker_options(&mut self, behaviors: &[&str]) -> WorkerOptions {
        self.n_workers += 1;
        let behaviors: Vec<&str> = behaviors.iter().copied().chain(["options"]).collect();
        let (program, args) = agent::command(&behaviors);
        WorkerOptions {
            server: self.address(),
            queues: vec![self.queue_options("build")],
            name: format!("w{}", self.n_workers),
            n_slots: 1,
            agent: AgentCommand {
                program,
                args,
                cwd: self.directory.path().to_owned(),
                env: Vec::new(),
                env_removed: Vec::new(),
            },
            watchdog: None,
            depth_variable: "CROW_DEPTH",
            launcher: AgentLauncher::new(None),
            workspaces_dir: self.path("workspaces"),
            git: GitCli::standalone(),
            shares_sessions: false,
            mode_max: Mode::Auto,
            task_time_max: Duration::from_secs(600),
            drain_time_max: PATIENCE,
            version: "0",
        }
    }

    pub(crate) async fn start_worker(&mut self, behaviors: &[&str]) -> RunningWorker {
        let options = self.worker_options(behaviors);
        start_worker(options).await.expect("it connects")
    }

    /// Begins a task.
    pub(crate) async fn start_task(&self, prompt: &str) -> RunningTask {
        RunningTask::start(&self.farms, &self.farm(), prompt).await.expect("the server is reached")
    }
}

/// Starts a worker with a runtime of its own, as if it were a process.
pub(crate) async fn start_worker(options: WorkerOptions) -> Result<RunningWorker, String> {
    let (event_sender, events) = mpsc::channel(64);
    let report = move |event| event_sender.try_send(event).expect("the test reads events");
    let (stop, crash) = (CancellationToken::new(), CancellationToken::new());
    let (stopped, crashed) = (stop.clone(), crash.clone());
    let (connected, connection) = oneshot::channel();
    let thread = std::thread::spawn(move || {
        run(async move {
            let worker = match FleetWorker::connect(options, report).await {
                Ok(worker) => worker,
                Err(reason) => return connected.send(Err(reason)).expect("the test waits"),
            };
            connected.send(Ok(())).expect("the test waits");
            crashed.run_until_cancelled(worker.run(stopped)).await;
        });
    });
    soon("the worker connects", connection).await.expect("the thread does not panic")?;
    Ok(RunningWorker { stop, crash, thread, events })
}

impl RunningWorker {
    /// Waits until it has taken a task; returns how often that was delivered.
    pub(crate) async fn taken(&mut self) -> u32 {
        self.begun().await.0
    }

    /// Waits until it has taken a task; returns how often that was delivered, and how it begins.
    pub(crate) async fn begun(&mut self) -> (u32, TaskBeginning) {
        loop {
            match soon("a task is taken", self.events.recv()).await {
                Some(WorkerEvent::Taken { delivery, beginning, .. }) => return (delivery, beginning),
                Some(WorkerEvent::QueueUnavailable { .. }) => {}
                event => panic!("{event:?}"),
            }
        }
    }

    /// Waits until its task has ended; returns the words about it.
    pub(crate) async fn ended(&mut self) -> String {
        match soon("a task ends", self.events.recv()).await {
            Some(WorkerEvent::Ended { outcome, .. }) => outcome,
            event => panic!("{event:?}"),
        }
    }

    /// Stops it and waits until it has drained.
    pub(crate) async fn drain(self) {
        self.stop.cancel();
        self.join().await;
    }

    /// Ends it at once, without a word to the server.
    pub(crate) async fn crash(self) {
        self.crash.cancel();
        self.join().await;
    }

    async fn join(self) {
        let joined = tokio::task::spawn_blocking(move || self.thread.join());
        soon("the worker ends", joined).await.expect("it is waited for").expect("it does not panic");
    }
}

/// A task with a client like the driver of a child.
pub(crate) struct RunningTask {
    connection: AgentConnection,
    session: SessionId,
    events: mpsc::Receiver<ClientEvent>,
    prompt: JoinHandle<Result<StopReason, String>>,
    client: JoinHandle<()>,
    /// The received events, as text.
    pub(crate) log: String,
}

impl RunningTask {
    pub(crate) async fn start(
        farms: &FarmConnections,
        farm: &FarmAddress,
        prompt: &str,
    ) -> Result<Self, String> {
        Self::start_kept(farms, farm, prompt, None).await
    }

    /// Begins a task whose place is kept.
    pub(crate) async fn start_kept(
        farms: &FarmConnections,
        farm: &FarmAddress,
        prompt: &str,
        keeper: Option<Arc<dyn PlaceKeeper>>,
    ) -> Result<Self, String> {
        let task = FarmTask { mode: Mode::Ask, depth: 1, version: "0", keeper, code: None };
        let lines = farms.open_task(farm, task).await?;
        Ok(Self::drive(lines, None, prompt).await)
    }

    /// Begins a task with code.
    pub(crate) async fn start_with_code(
        farms: &FarmConnections,
        farm: &FarmAddress,
        code: SentCode,
    ) -> Result<Self, String> {
        let task = FarmTask { mode: Mode::Ask, depth: 1, version: "0", keeper: None, code: Some(code) };
        let lines = farms.open_task(farm, task).await?;
        Ok(Self::drive(lines, None, "count").await)
    }

    /// Takes up a task again; returns the reasons why its server was not reached as well.
    pub(crate) async fn resume(
        farms: &FarmConnections,
        server: ServerAddress,
        place: &str,
        keeper: Arc<dyn PlaceKeeper>,
    ) -> (Self, oneshot::Receiver<String>) {
        let place = FarmPlace::decode(place).expect("it is valid");
        assert!(place.is_at(&server), "{place:?}");
        let (session, prompt) = (place.session(), place.prompt().to_owned());
        let (report, unreachable) = oneshot::channel();
        let on_unreachable = Box::new(move |reason: &str| drop(report.send(reason.to_owned())));
        let lines = farms.resume_task(ResumedFarmTask {
            place,
            server,
            version: "0",
            keeper,
            code: None,
            on_unreachable,
        });
        (Self::drive(lines, Some(session), &prompt).await, unreachable)
    }

    /// Opens a task that a worker has begun.
    pub(crate) async fn open(queued: QueuedFarmTask) -> Self {
        Self::drive(queued.open(), None, "").await
    }

    async fn drive(lines: LineTransport, session: Option<SessionId>, prompt: &str) -> Self {
        let (event_sender, events) = mpsc::channel(64);
        let (connected, connection) = oneshot::channel();
        let client_info = ClientInfo {
            name: "test",
            version: "0",
            capabilities: AcpClientCapabilities::default(),
            agent_name: None,
            wants_raw_updates: false,
        };
        let client = tokio::spawn(async move {
            let ended = drive_agent(lines, client_info, event_sender, async |connection| {
                connected.send(connection).expect("the test waits");
                std::future::pending::<()>().await;
            });
            drop(ended.await);
        });
        let connection = connection.await.expect("the handshake is answered");
        let session = match session {
            Some(session) => {
                connection.continue_session(&session, "/".as_ref()).await.expect("it is resumed");
                session
            }
            None => connection.new_session("/".as_ref()).await.expect("a session is opened").session,
        };
        let (turn, opened, text) = (connection.clone(), session.clone(), prompt.to_owned());
        let prompt = tokio::spawn(async move {
            let content = vec![ContentPart::Text(text)];
            let outcome = turn.send_prompt(&opened, content, TurnScope::WithTasks).await;
            outcome.map(|outcome| outcome.stop_reason).map_err(|failure| failure.message)
        });
        Self { connection, session, events, prompt, client, log: String::new() }
    }

    /// The name of the task in its subjects.
    pub(crate) fn name(&self) -> &str {
        self.session.as_str()
    }

    pub(crate) fn cancel(&self) {
        self.connection.cancel_turn(&self.session);
    }

    pub(crate) async fn steer(&self, text: &str) -> Result<(), String> {
        self.connection.send_steering(&self.session, text).await.map_err(|failure| failure.message)
    }

    /// Receives events until one contains this text; permission requests are answered with `answer`.
    pub(crate) async fn until(&mut self, text: &str, answer: Option<&str>) {
        while !self.log.contains(text) {
            let event = soon(text, self.events.recv()).await.expect("the connection stays");
            self.handle_event(event, answer);
        }
    }

    fn handle_event(&mut self, event: ClientEvent, answer: Option<&str>) {
        match event {
            ClientEvent::Update { update: AgentUpdate::Text(text), .. } => self.log.push_str(&text),
            ClientEvent::Update { update: AgentUpdate::Notice(text), .. } => {
                self.log.push_str(&format!("\nnotice: {text}\n"));
            }
            ClientEvent::Permission { question, answer: reply, .. } => {
                self.log.push_str(&format!("\nquestion: {}\n", question.title));
                if let Some(answer) = answer {
                    let answer = crow_acp::PermissionAnswer::Selected(answer.to_owned());
                    reply.send(answer).expect("the agent waits");
                } else {
                    // A dropped question would be rejected.
                    std::mem::forget(reply);
                }
            }
            ClientEvent::Update { .. }
            | ClientEvent::RawUpdate { .. }
            | ClientEvent::Form { .. }
            | ClientEvent::AccessRequest(_)
            | ClientEvent::Claim { .. }
            | ClientEvent::Release { .. } => {}
        }
    }

    /// Waits for the end; returns how it ended and what was seen.
    pub(crate) async fn end(mut self, answer: Option<&str>) -> String {
        let outcome = loop {
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => self.handle_event(event, answer),
                outcome = soon("the prompt is answered", &mut self.prompt) => break outcome.expect("no panic"),
            }
        };
        while let Ok(event) = self.events.try_recv() {
            self.handle_event(event, answer);
        }
        self.client.abort();
        format!("{}\n{outcome:?}\n", self.log)
    }

    /// Ends the client without a word.
    pub(crate) fn leave(self) {
        self.client.abort();
        self.prompt.abort();
    }
}
