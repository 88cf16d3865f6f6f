//! What every session of a process works with: loaded once, after the client has its first answer.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use crow_acp::AgentLauncher;
use crow_core::{
    AgentServer, Failure, FailureKind, HookConfig, McpServer, MessageId, Mode, NetworkAccess,
    PermissionRules, SandboxMode, SessionId, TreeLimits, TurnLimits,
};
use crow_model::{HttpClients, ModelSettings, RequestRecorder};
use crow_speckit::{SpecsLink, SpecsRoot};
use crow_store::Store;
use crow_tools::ToolRegistry;
use tokio::sync::OnceCell;

use crate::project_config::RepositoryConfigReader;
use crate::tasks::{self, ChildAgentsCell};
use crate::toolbox::ToolSet;
use crate::{clock, memory};

/// A client that opens a session and comes back to speak in it does so within days.
const EMPTY_SESSION_AGE_MAX: Duration = Duration::from_hours(7 * 24);

/// What the configuration says about sessions.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// Models on offer; the first is the default.
    pub models: Vec<ModelSettings>,
    /// The mode of a new session.
    pub mode: Mode,
    /// What is allowed and denied for good.
    pub rules: PermissionRules,
    /// Which commands run in the sandbox.
    pub sandbox: SandboxMode,
    /// Whether those may use the network.
    pub network: NetworkAccess,
    /// How far one turn may go.
    pub limits: TurnLimits,
    /// Environment variables that hold keys; no command gets them.
    pub secret_variables: Vec<String>,
    /// Where the person's own prompts are.
    pub prompts_dir: PathBuf,
    /// Where skills are beside those of the configuration folder.
    pub skills_dir: Option<PathBuf>,
    /// The template of the system prompt that the configuration names, as earlier versions did.
    pub system_prompt_path: Option<PathBuf>,
    /// What is added to the end of the system prompt.
    pub system_prompt_addition: Option<String>,
    /// How the Spec Kit workflow goes.
    pub workflow: WorkflowConfig,
    /// The MCP servers of every session, beside those its client names.
    pub mcp_servers: Vec<McpServer>,
    /// Where sign-ins at MCP servers are kept.
    pub mcp_auth_dir: PathBuf,
    /// The person's commands for certain moments, in their order.
    pub hooks: Vec<HookConfig>,
    /// How the configuration files of repositories are read.
    pub repositories: Arc<dyn RepositoryConfigReader>,
    /// Where output goes that is too long for the model.
    pub spill_dir: PathBuf,
    /// Agents of others that tasks can be given to.
    pub agent_servers: Vec<AgentServer>,
    /// How this program is started as an agent; tasks go to it unless they name another.
    pub own_agent: Option<AgentServer>,
    /// How far a tree of agents may grow.
    pub tree_limits: TreeLimits,
    /// How many levels below a root this process was started.
    pub depth: u32,
    /// Where the worktrees of tasks are made.
    pub worktrees_dir: PathBuf,
    /// Where older versions made them; those that are there are worked in to their end.
    pub legacy_worktrees_dir: PathBuf,
    /// Where everything is kept that is asked of models and answered, if anywhere.
    pub recordings_dir: Option<PathBuf>,
    /// Where the configuration and the keys are, by its real path.
    pub config_dir: PathBuf,
    /// The address of the database, without a password.
    pub db_uri: String,
    /// How a person sets up a model, for the error when there is none.
    pub setup_hint: String,
    /// What the person is told once, in the first session of the process.
    pub notices: Vec<String>,
}

/// What the configuration and the environment say about the Spec Kit workflow.
#[derive(Debug, Clone, Default)]
pub struct WorkflowConfig {
    /// Where new features go.
    pub specs_root: SpecsRoot,
    /// Whether a link leads other programs there.
    pub specs_link: SpecsLink,
    /// Whether tasks marked `[P]` go to child agents.
    pub parallel: ParallelMode,
    /// What the environment says about the project and its feature.
    pub variables: crow_speckit::SpeckitVariables,
    /// The variables that a project's hook may depend on.
    pub environment: PublicEnvironment,
}

/// Variables of the environment that are no secrets.
#[derive(Clone, Default)]
pub struct PublicEnvironment(Arc<BTreeMap<String, String>>);

impl PublicEnvironment {
    /// Takes them.
    pub fn new(variables: BTreeMap<String, String>) -> Self {
        Self(Arc::new(variables))
    }

    pub(crate) fn get(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }
}

impl fmt::Debug for PublicEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What people keep in variables is nobody's business in a log.
        write!(f, "{} variables", self.0.len())
    }
}

/// Whether tasks that may be done side by side are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ParallelMode {
    /// The person is asked.
    #[default]
    Ask,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl ParallelMode {
    /// Reads the setting.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "ask" => Some(Self::Ask),
            "always" => Some(Self::Always),
            "never" => Some(Self::Never),
            _ => None,
        }
    }
}

/// Everything that sessions share.
pub struct AgentRuntime {
    config: RwLock<Arc<AgentConfig>>,
    pub(crate) store: Store,
    /// Starts agents.
    pub(crate) launcher: AgentLauncher,
    /// The tools that work alike in every session.
    shared_tools: ToolRegistry,
    /// The tools that Crow brings along, of no session in particular.
    pub(crate) own_tools: Arc<ToolSet>,
    http: OnceCell<HttpClients>,
    /// Old sessions that nobody spoke in were looked for.
    has_swept_empty_sessions: AtomicBool,
    n_ids: AtomicU64,
    /// The notices were told.
    has_sent_notices: AtomicBool,
}

impl fmt::Debug for AgentRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kit").field("settings", &self.config()).finish_non_exhaustive()
    }
}

impl AgentRuntime {
    /// Puts the parts together.
    pub fn new(config: AgentConfig, store: Store, tools: ToolRegistry, launcher: AgentLauncher) -> Self {
        let builtin_tools = memory::memory_tools(&store, None)
            .into_iter()
            .chain(tasks::task_tools(&ChildAgentsCell::default(), &config.agent_servers))
            .collect();
        let own_tools = Arc::new(ToolSet::new(tools.with_tools(builtin_tools)));
        Self {
            config: RwLock::new(Arc::new(config)),
            store,
            shared_tools: tools,
            launcher,
            own_tools,
            http: OnceCell::new(),
            has_swept_empty_sessions: AtomicBool::new(false),
            n_ids: AtomicU64::new(0),
            has_sent_notices: AtomicBool::new(false),
        }
    }

    /// Names a message that is not stored, as no other of this process is named.
    pub(crate) fn next_message_id(&self) -> MessageId {
        MessageId::new(format!("note-{}", self.next_number()))
    }

    /// A number that nothing else of this process has.
    pub(crate) fn next_number(&self) -> u64 {
        self.n_ids.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// What the configuration says now.
    pub(crate) fn config(&self) -> Arc<AgentConfig> {
        self.config.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes the tools that Crow brings along into those of a session. Whoever stands too deep to give tasks is not told
    /// of them.
    pub(crate) fn session_tools(
        &self,
        session: &SessionId,
        children: Option<&ChildAgentsCell>,
    ) -> Arc<ToolSet> {
        let own = memory::memory_tools(&self.store, Some(session));
        let given = children.map(|children| tasks::task_tools(children, &self.config().agent_servers));
        let tools =
            self.shared_tools.with_tools(own.into_iter().chain(given.into_iter().flatten()).collect());
        if children.is_none() {
            return Arc::new(ToolSet::new(tools));
        }
        Arc::new(ToolSet { tools, specs: self.own_tools.specs.clone() })
    }

    /// What the person is told once in a process; whoever asks first tells it.
    pub(crate) fn take_notices(&self) -> Vec<String> {
        let was_sent = self.has_sent_notices.swap(true, Ordering::Relaxed);
        if was_sent { Vec::new() } else { self.config().notices.clone() }
    }

    /// Takes over what the configuration says by now.
    pub(crate) fn replace_config(&self, other: &Self) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = other.config();
    }

    /// Shows the HTTP client; made off the loop on first use, since reading the system's certificates takes
    /// milliseconds.
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

    /// Makes what the first prompt needs while the person types it.
    pub(crate) async fn warm_up(&self) {
        // The first write after a start waits for the disk once; let it be this one.
        if let Err(error) = self.store.sync().await {
            tracing::info!(%error, "the store does not work yet; the first prompt says so");
        }
        if !self.has_swept_empty_sessions.swap(true, Ordering::Relaxed)
            && let Err(error) =
                self.store.delete_empty_sessions(clock::time_before_now(EMPTY_SESSION_AGE_MAX)).await
        {
            tracing::info!(%error, "could not forget sessions that nobody spoke in");
        }
        if let Err(failure) = self.http_client().await {
            tracing::info!(%failure, "could not make the HTTP client yet; the first prompt says so");
        }
    }

    /// Finds a model by its name, or the default without one.
    pub(crate) fn find_model(&self, name: Option<&str>) -> Result<ModelSettings, Failure> {
        let config = self.config();
        let models = &config.models;
        match name {
            _ if models.is_empty() => Err(Failure::new(FailureKind::Config, config.setup_hint.clone())),
            None => Ok(models[0].clone()),
            Some(name) => models.iter().find(|model| model.name == name).cloned().ok_or_else(|| {
                let names = models.iter().map(|model| model.name.as_str()).collect::<Vec<_>>().join(", ");
                let reason = format!("The model {name} is not configured. Configured: {names}.");
                Failure::new(FailureKind::InvalidValue, reason)
            }),
        }
    }
}

fn build_http_client(recordings_dir: Option<&Path>) -> Result<HttpClients, Failure> {
    let client = HttpClients::new()?;
    match recordings_dir {
        Some(directory) => Ok(client.with_recorder(RequestRecorder::start(directory)?)),
        None => Ok(client),
    }
}
