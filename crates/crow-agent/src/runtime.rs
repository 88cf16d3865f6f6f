//! The runtime that all sessions of a process share: loaded once, after the first answer to the client.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use crow_acp::{AgentLauncher, Client};
use crow_core::{
    AgentServer, Failure, FailureKind, HookConfig, McpServer, MessageId, Mode, NetworkAccess,
    PermissionRules, SandboxMode, TreeLimits, TurnLimits,
};
use crow_model::{HttpClients, ModelSettings, RequestRecorder};
use crow_project::{ConfigHost, ConfigSources, RepositoryConfigReader};
use crow_store::Store;
use crow_tools::{SlowServers, ToolRegistry, ToolSet};
use crow_workflow::WorkflowConfig;
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;

use crate::clock;
use crate::simulated_ports::SimulatedPorts;

/// A client that opens a session and uses it later does so within days.
const EMPTY_SESSION_AGE_MAX: Duration = Duration::from_hours(7 * 24);

/// The configuration of sessions.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// The configured models; the first is the default.
    pub models: Vec<ModelSettings>,
    /// The mode of a new session.
    pub mode: Mode,
    /// Configured permission rules.
    pub rules: PermissionRules,
    /// Which commands run in the sandbox.
    pub sandbox: SandboxMode,
    /// Whether sandboxed commands may use the network.
    pub network: NetworkAccess,
    /// The name of the shell that runs commands.
    pub shell_name: String,
    /// The directories in which commands find programs, as `PATH` has them.
    pub search_path: String,
    /// The limits of one turn.
    pub limits: TurnLimits,
    /// The largest number of tools in a request.
    pub tools_max: usize,
    /// Environment variables with keys; commands do not get them.
    pub secret_variables: Vec<String>,
    /// Directory of the user's own prompts.
    pub prompts_dir: PathBuf,
    /// Directory of skills in addition to those in the configuration directory.
    pub skills_dir: Option<PathBuf>,
    /// The configured template of the system prompt, as in earlier versions.
    pub system_prompt_path: Option<PathBuf>,
    /// Text appended to the system prompt.
    pub system_prompt_addition: Option<String>,
    /// The configuration of the Spec Kit workflow.
    pub workflow: WorkflowConfig,
    /// The MCP servers of every session, in addition to those of its client.
    pub mcp_servers: Vec<McpServer>,
    /// Directory of stored logins at MCP servers.
    pub mcp_auth_dir: PathBuf,
    /// The user's hooks, in their order.
    pub hooks: Vec<HookConfig>,
    /// Parses the configuration files of repositories.
    pub repositories: Arc<dyn RepositoryConfigReader>,
    /// Directory for output that is too long for the model.
    pub spill_dir: PathBuf,
    /// External agents for tasks.
    pub agent_servers: Vec<AgentServer>,
    /// The command that starts this program as an agent, the default for tasks.
    pub own_agent: Option<AgentServer>,
    /// The limits of a tree of agents.
    pub tree_limits: TreeLimits,
    /// Depth of this process in its tree of agents.
    pub depth: u32,
    /// Directory of the worktrees of tasks.
    pub worktrees_dir: PathBuf,
    /// Directory of worktrees in older versions; existing ones are still used.
    pub legacy_worktrees_dir: PathBuf,
    /// Directory for recordings of requests and responses, if they are recorded.
    pub recordings_dir: Option<PathBuf>,
    /// The configuration directory, without links.
    pub config_dir: PathBuf,
    /// The address of the database, without the password.
    pub db_uri: String,
    /// Instructions for setting up a model, for the error when there is none.
    pub setup_hint: String,
    /// Notices for the user, shown once in the first session of the process.
    pub notices: Vec<String>,
}

impl AgentConfig {
    /// Returns the places of the project configuration.
    pub(crate) fn config_sources(&self) -> ConfigSources {
        ConfigSources {
            config_dir: self.config_dir.clone(),
            prompts_dir: self.prompts_dir.clone(),
            skills_dir: self.skills_dir.clone(),
            rules: self.rules.clone(),
            hooks: self.hooks.clone(),
            repositories: self.repositories.clone(),
        }
    }
}

/// The state that all sessions share.
pub struct AgentRuntime {
    config: RwLock<Arc<AgentConfig>>,
    pub(crate) store: Store,
    pub(crate) launcher: AgentLauncher,
    /// Tools without session state.
    pub(crate) shared_tools: ToolRegistry,
    /// Crow's own tools, not bound to a session.
    pub(crate) own_tools: OnceLock<Arc<ToolSet>>,
    /// The MCP servers that no session waits for again.
    pub(crate) slow_servers: Arc<SlowServers>,
    http: OnceCell<HttpClients>,
    /// `None` outside of simulations.
    pub(crate) simulated_ports: Option<SimulatedPorts>,
    /// True after empty old sessions were deleted.
    has_swept_empty_sessions: AtomicBool,
    n_ids: AtomicU64,
    has_sent_notices: AtomicBool,
}

impl fmt::Debug for AgentRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentRuntime").field("config", &self.config()).finish_non_exhaustive()
    }
}

impl AgentRuntime {
    /// Creates a runtime.
    pub fn new(config: AgentConfig, store: Store, tools: ToolRegistry, launcher: AgentLauncher) -> Self {
        Self {
            config: RwLock::new(Arc::new(config)),
            store,
            shared_tools: tools,
            launcher,
            own_tools: OnceLock::new(),
            slow_servers: Arc::default(),
            http: OnceCell::new(),
            simulated_ports: None,
            has_swept_empty_sessions: AtomicBool::new(false),
            n_ids: AtomicU64::new(0),
            has_sent_notices: AtomicBool::new(false),
        }
    }

    /// Lets a simulation replace what is outside of the process.
    #[must_use]
    pub fn with_simulated_ports(self, ports: SimulatedPorts) -> Self {
        let http = OnceCell::new_with(Some(ports.http.clone()));
        Self { http, simulated_ports: Some(ports), ..self }
    }

    /// Returns an id for a message that is not stored, unique in this process.
    pub(crate) fn next_message_id(&self) -> MessageId {
        MessageId::new(format!("note-{}", self.next_number()))
    }

    /// Returns a number that is unique in this process.
    pub(crate) fn next_number(&self) -> u64 {
        self.n_ids.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the current configuration.
    pub(crate) fn config(&self) -> Arc<AgentConfig> {
        self.config.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the depth of a client's sessions in their tree of agents.
    pub(crate) fn tree_depth(&self, client: &Client) -> u32 {
        self.config().depth.max(client.capabilities().tree_depth.unwrap_or(0))
    }

    /// Takes over the configuration of another runtime.
    pub(crate) fn replace_config(&self, other: &Self) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = other.config();
    }

    /// Returns the HTTP clients; created on first use, on a blocking thread, since a recorder creates its directory.
    pub(crate) async fn http_client(&self) -> Result<&HttpClients, Failure> {
        let build = async || {
            let recordings_dir = self.config().recordings_dir.clone();
            match tokio::task::spawn_blocking(move || build_http_client(recordings_dir.as_deref())).await {
                Ok(client) => client,
                Err(error) => Err(Failure::new(FailureKind::Internal, error.to_string())),
            }
        };
        self.http.get_or_try_init(build).await
    }

    /// Prepares what the first prompt needs, in the background.
    pub(crate) async fn warm_up(&self) {
        // The first write after a start waits for the disk once; let it be this one.
        if let Err(error) = self.store.sync().await {
            tracing::info!(%error, "the store does not work yet; the first prompt reports it");
        }
        if !self.has_swept_empty_sessions.swap(true, Ordering::Relaxed)
            && let Err(error) =
                self.store.delete_empty_sessions(clock::time_before_now(EMPTY_SESSION_AGE_MAX)).await
        {
            tracing::info!(%error, "could not delete empty sessions");
        }
        if let Err(failure) = self.prepare_http_client().await {
            tracing::info!(%failure, "could not create the HTTP client yet; the first prompt reports it");
        }
    }

    /// Creates the HTTP client for the default model.
    async fn prepare_http_client(&self) -> Result<(), Failure> {
        let http = self.http_client().await?;
        match self.config().models.first() {
            Some(model) => http.prepare_for(&model.provider).await,
            None => Ok(()),
        }
    }

    /// Finds a model by its name; `None` is the default.
    pub(crate) fn find_model(&self, name: Option<&str>) -> Result<ModelSettings, Failure> {
        let config = self.config();
        let models = &config.models;
        match name {
            _ if models.is_empty() => Err(Failure::new(FailureKind::Config, config.setup_hint.clone())),
            None => Ok(models[0].clone()),
            Some(name) => models.iter().find(|model| model.name == name).cloned().ok_or_else(|| {
                let names = models.iter().map(|model| model.name.as_str()).collect::<Vec<_>>().join(", ");
                let reason = format!("the model {name} is not configured; the models are: {names}");
                Failure::new(FailureKind::InvalidValue, reason)
            }),
        }
    }
}

impl ConfigHost for AgentRuntime {
    fn config_dir(&self) -> PathBuf {
        self.config().config_dir.clone()
    }

    fn config_sources(&self) -> ConfigSources {
        self.config().config_sources()
    }

    fn take_notices(&self) -> Vec<String> {
        let was_sent = self.has_sent_notices.swap(true, Ordering::Relaxed);
        if was_sent { Vec::new() } else { self.config().notices.clone() }
    }

    fn spawn_blocking<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        // The method of the runtime itself.
        Self::spawn_blocking(self, work)
    }
}

fn build_http_client(recordings_dir: Option<&Path>) -> Result<HttpClients, Failure> {
    let client = HttpClients::new()?;
    match recordings_dir {
        Some(directory) => Ok(client.with_recorder(RequestRecorder::start(directory)?)),
        None => Ok(client),
    }
}
