//! The options of an agent: its program or address, and what it gets from this process.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crow_acp::{
    AcpClientCapabilities, AgentCommand, AgentLauncher, AgentPermissionRequest, AgentProgram, ClientInfo,
    LineTransport, TransportSecurity, classify_address, connect_socket,
};
use crow_files::{AllowedRoot, read_bounded_text};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::agent::Agent;
use crate::connection::{AgentHandle, SharedConnection, TimeLimits, wait_for_end};
use crate::driver::AgentDriver;
use crate::error::AgentError;
use crate::files::FileAccess;
use crate::permission::{PermissionChoice, PermissionHandler};
use crate::router::{ClientPolicy, EventRouter};

/// The longest answer to a request other than a prompt: opening a session may start its servers.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(120);

/// The longest time for reaching an agent at an address.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(30);

/// A longer token does not fit into a request's header.
const TOKEN_BYTES_MAX: u64 = 4096;

/// Commands to the router, which takes each at once unless a turn is not read.
const COMMANDS_LEN: usize = 16;

const AUTHORIZATION: &str = "Authorization";

/// The options of an agent that is a program or at an address.
#[derive(Debug, Clone)]
#[must_use = "nothing is started before `start` or `connect`"]
pub struct AgentOptions<S> {
    source: S,
    cwd: PathBuf,
    policy: ClientPolicy,
    time_limits: TimeLimits,
    wants_raw_updates: bool,
}

/// A program that speaks ACP on its stdin and stdout.
#[derive(Debug, Clone)]
pub struct ProgramSource {
    program: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
    env_removed: Vec<String>,
}

/// An agent at the address of a WebSocket or of streamable HTTP.
#[derive(Debug, Clone)]
pub struct SocketSource {
    url: String,
    headers: Vec<(String, String)>,
    token_file: Option<PathBuf>,
    allows_unencrypted: bool,
}

impl Agent {
    /// Returns the options of a program that speaks ACP on its stdin and stdout, by its path or its name in `PATH`. It
    /// gets files inside the directory of its session, and terminals, from this process.
    pub fn program<A: Into<String>>(
        program: impl Into<String>,
        args: impl IntoIterator<Item = A>,
    ) -> AgentOptions<ProgramSource> {
        let args = args.into_iter().map(Into::into).collect();
        let source =
            ProgramSource { program: program.into(), args, env: Vec::new(), env_removed: Vec::new() };
        AgentOptions::new(source, FileAccess::ReadWrite, true)
    }

    /// Returns the options of an agent at the address of a WebSocket or of streamable HTTP, such as
    /// `ws://127.0.0.1:8766/acp`. It gets neither files nor terminals from this process.
    pub fn socket(url: impl Into<String>) -> AgentOptions<SocketSource> {
        let source = SocketSource {
            url: url.into(),
            headers: Vec::new(),
            token_file: None,
            allows_unencrypted: false,
        };
        AgentOptions::new(source, FileAccess::None, false)
    }
}

impl<S> AgentOptions<S> {
    fn new(source: S, files: FileAccess, terminals: bool) -> Self {
        let permission = PermissionHandler::Fixed(PermissionChoice::default());
        Self {
            source,
            cwd: PathBuf::from("."),
            policy: ClientPolicy { permission, files, terminals },
            time_limits: TimeLimits { request: REQUEST_TIME_MAX, turn: None },
            wants_raw_updates: false,
        }
    }

    /// Sets the directory of sessions, which is also the working directory of a program; by default the working
    /// directory of this process.
    pub fn cwd(mut self, cwd: impl AsRef<Path>) -> Self {
        self.cwd = cwd.as_ref().to_owned();
        self
    }

    /// Answers every permission request in the same way; by default each is rejected. A request about continuing although
    /// the model repeats itself is always rejected.
    pub fn permission(mut self, choice: PermissionChoice) -> Self {
        self.policy.permission = PermissionHandler::Fixed(choice);
        self
    }

    /// Answers each permission request by a callback. It runs on a task of its own, and is dropped when the turn is
    /// cancelled.
    pub fn on_permission<F>(
        mut self,
        callback: impl Fn(AgentPermissionRequest) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = PermissionChoice> + Send + 'static,
    {
        let callback = move |request| Box::pin(callback(request)) as _;
        self.policy.permission = PermissionHandler::Callback(std::sync::Arc::new(callback));
        self
    }

    /// Sets the access to files inside the directory of a session through this process.
    pub fn files(mut self, access: FileAccess) -> Self {
        self.policy.files = access;
        self
    }

    /// Whether the agent may run commands in terminals of this process: inside the directory of the session, without the
    /// variables of this process that hold keys.
    pub fn terminals(mut self, is_available: bool) -> Self {
        self.policy.terminals = is_available;
        self
    }

    /// Sets the time limit of requests other than prompts; by default 120 s. `initialize` always has 60 s.
    pub fn request_timeout(mut self, time_max: Duration) -> Self {
        self.time_limits.request = time_max;
        self
    }

    /// Sets the time limit of a turn, which is then cancelled and fails; by default there is none.
    pub fn turn_timeout(mut self, time_max: Duration) -> Self {
        self.time_limits.turn = Some(time_max);
        self
    }

    /// Whether a turn also yields each update as the agent sent it.
    pub fn raw_updates(mut self, is_wanted: bool) -> Self {
        self.wants_raw_updates = is_wanted;
        self
    }

    /// Opens the agent and waits until it has answered `initialize`.
    async fn open(self, to_source: impl FnOnce(S, &Path) -> AgentSource) -> Result<Agent, AgentError> {
        // A directory that cannot be made absolute is reported when the program starts or the session is opened.
        let cwd = std::path::absolute(&self.cwd).unwrap_or(self.cwd);
        let closing = CancellationToken::new();
        let guard = closing.clone().drop_guard();
        let (command_sender, commands) = mpsc::channel(COMMANDS_LEN);
        let (ready, connected) = oneshot::channel();
        let (end_sender, end) = watch::channel(None);
        let driver = AgentDriver {
            source: to_source(self.source, &cwd),
            client_info: client_info(&self.policy, self.wants_raw_updates),
            router: EventRouter::new(self.policy, closing.clone()),
            commands,
            ready,
            end: end_sender,
            closing: closing.clone(),
        };
        tokio::spawn(driver.run());
        let Ok(agent) = connected.await else { return Err(wait_for_end(end).await) };
        let connection = SharedConnection {
            agent,
            commands: command_sender,
            end,
            time_limits: self.time_limits,
            cwd,
            runtime: Handle::current(),
            closing,
        };
        Ok(Agent { handle: AgentHandle::new(connection, guard) })
    }
}

impl AgentOptions<ProgramSource> {
    /// Sets a variable of the program, in addition to those of this process, which it inherits.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.source.env.push((name.into(), value.into()));
        self
    }

    /// Removes a variable of this process from those that the program inherits.
    pub fn env_remove(mut self, name: impl Into<String>) -> Self {
        self.source.env_removed.push(name.into());
        self
    }

    /// Starts the program and waits until it has answered `initialize`. It ends, with its process group, when the agent,
    /// its sessions and its turns are dropped.
    ///
    /// # Errors
    /// If there is no such program or directory, or it ends or does not speak ACP.
    pub async fn start(self) -> Result<Agent, AgentError> {
        self.open(|source, cwd| AgentSource::Program(to_command(source, cwd))).await
    }
}

impl AgentOptions<SocketSource> {
    /// Adds a header of the handshake.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.source.headers.push((name.into(), value.into()));
        self
    }

    /// Sends the token in a file as `Authorization: Bearer`.
    pub fn token_file(mut self, file: impl AsRef<Path>) -> Self {
        self.source.token_file = Some(file.as_ref().to_owned());
        self
    }

    /// Whether a token may be sent over an unencrypted connection to another machine.
    pub fn allow_unencrypted(mut self, is_allowed: bool) -> Self {
        self.source.allows_unencrypted = is_allowed;
        self
    }

    /// Connects and waits until the agent has answered `initialize`. The connection is closed when the agent, its
    /// sessions and its turns are dropped.
    ///
    /// # Errors
    /// If the address cannot be reached within 30 s, rejects the token, or is not an agent.
    pub async fn connect(self) -> Result<Agent, AgentError> {
        self.open(|source, _| AgentSource::Socket(source)).await
    }
}

fn to_command(source: ProgramSource, cwd: &Path) -> AgentCommand {
    let ProgramSource { program, args, env, env_removed } = source;
    AgentCommand { program, args, cwd: cwd.to_owned(), env, env_removed }
}

fn client_info(policy: &ClientPolicy, wants_raw_updates: bool) -> ClientInfo {
    let capabilities = AcpClientCapabilities {
        reads_files: policy.files != FileAccess::None,
        writes_files: policy.files == FileAccess::ReadWrite,
        terminals: policy.terminals,
        compactions: true,
        notices: true,
        ..AcpClientCapabilities::default()
    };
    ClientInfo {
        name: env!("CARGO_PKG_NAME"),
        version: env!("CARGO_PKG_VERSION"),
        capabilities,
        agent_name: None,
        wants_raw_updates,
    }
}

/// The program or the address of an agent.
#[derive(Debug)]
pub(crate) enum AgentSource {
    Program(AgentCommand),
    Socket(SocketSource),
}

impl AgentSource {
    /// Returns the name of the agent in errors.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Program(command) => command.program.clone(),
            // Nothing after the path: it may be a secret.
            Self::Socket(source) => source.url.split('?').next().unwrap_or_default().to_owned(),
        }
    }

    /// Starts the program, or connects to the address by one of `tasks`.
    pub(crate) async fn open(
        self,
        launcher: &AgentLauncher,
        tasks: &TaskTracker,
    ) -> Result<(LineTransport, Option<AgentProgram>), AgentError> {
        let agent = self.name();
        match self {
            Self::Program(command) => {
                let started = launcher.start(&agent, command).await;
                let (lines, program) =
                    started.map_err(|error| AgentError::NotStarted { agent, reason: error.to_string() })?;
                Ok((lines, Some(program)))
            }
            Self::Socket(source) => {
                let lines = source.connect(tasks).await;
                let lines = lines.map_err(|reason| AgentError::NotReached { agent, reason })?;
                Ok((lines, None))
            }
        }
    }
}

impl SocketSource {
    /// Connects; the error is the reason.
    async fn connect(mut self, tasks: &TaskTracker) -> Result<LineTransport, String> {
        if let Some(file) = self.token_file.take() {
            let token = tokio::task::spawn_blocking(move || read_token(&file)).await;
            let token = token.map_err(|error| error.to_string())??;
            self.headers.push((AUTHORIZATION.to_owned(), format!("Bearer {token}")));
        }
        let security = classify_address(&self.url, &self.headers).map_err(|error| error.to_string())?;
        let has_token = self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(AUTHORIZATION));
        if security == TransportSecurity::Unencrypted && has_token && !self.allows_unencrypted {
            let reason = "the token would be sent unencrypted; use wss://, or a tunnel such as `ssh -L`";
            return Err(reason.to_owned());
        }
        let deadline = Instant::now() + CONNECT_TIME_MAX;
        connect_socket(&self.url, &self.headers, deadline, tasks).await.map_err(|error| error.to_string())
    }
}

fn read_token(file: &Path) -> Result<String, String> {
    match read_bounded_text(file, AllowedRoot::Anywhere, TOKEN_BYTES_MAX) {
        Ok(Some(token)) => Ok(token.trim().to_owned()),
        Ok(None) => Err(format!("the token file {} does not exist", file.display())),
        Err(error) => Err(format!("the token file {} cannot be read: {error}", file.display())),
    }
}
