//! One simulated process: the agent over channels, with a configuration whose ports are simulated.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crow_acp::{AgentInfo, AgentLauncher, channel_transport};
use crow_agent::{AgentConfig, AgentRuntime, SimulatedPorts, serve_sessions};
use crow_core::{
    AgentServer, AgentTransport, Mode, NetworkAccess, PermissionRules, SandboxMode, ToolProfile,
    ToolSelection, TreeLimits, TurnLimits,
};
use crow_model::{HttpClients, ModelApi, ModelSettings, ProviderSettings, ToolCallMode};
use crow_project::{RepositoryConfig, RepositoryConfigReader, VariableExpansion};
use crow_store::MemoryDatabase;
use crow_tools::ToolRegistry;
use crow_workflow::WorkflowConfig;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::client::ClientPipes;
use crate::launcher::FakeLauncher;
use crate::provider::FakeProvider;
use crate::tools::fake_tools;
use crate::world::World;

/// The configured name of the simulated child.
pub(crate) const CHILD_AGENT: &str = "helper";

/// Lines in a pipe.
const PIPE_LINES: usize = 64;

/// The parts of a run that outlive its processes.
pub(crate) struct Machine<'a> {
    pub(crate) project: &'a Path,
    pub(crate) config_dir: &'a Path,
    pub(crate) database: &'a MemoryDatabase,
    pub(crate) no_tools: &'a ToolRegistry,
}

/// Starts an agent; the task ends with its connection.
pub(crate) fn start_agent(machine: &Machine<'_>, world: &Arc<World>) -> (ClientPipes, JoinHandle<bool>) {
    let (to_agent, agent_receiver) = mpsc::channel::<io::Result<String>>(PIPE_LINES);
    let (agent_sender, from_agent) = mpsc::channel(PIPE_LINES);
    let lines = channel_transport(agent_receiver, agent_sender);
    let about = AgentInfo { version: "0", program: None, reads_images: true };
    let (config, store) = (agent_config(machine.config_dir), machine.database.open(world.clone()));
    let no_tools = machine.no_tools.clone();
    let world = world.clone();
    let load = move || {
        let provider = Arc::new(FakeProvider { world: world.clone() });
        let runtime = HttpClients::simulated(provider).map(|http| {
            let child_launcher = Arc::new(FakeLauncher { world: world.clone() });
            let ports = SimulatedPorts { http, child_launcher, disk: world.clone() };
            AgentRuntime::new(
                config.clone(),
                store.clone(),
                fake_tools(&world, &no_tools),
                AgentLauncher::new(None),
            )
            .with_simulated_ports(ports)
        });
        async move { runtime }
    };
    let served =
        tokio::spawn(async move { serve_sessions(lines, about, std::future::pending(), load).await.is_ok() });
    (ClientPipes { to_agent, from_agent }, served)
}

fn agent_config(directory: &Path) -> AgentConfig {
    AgentConfig {
        tools_max: 128,
        models: vec![scripted_model()],
        mode: Mode::Ask,
        rules: PermissionRules::default(),
        shell_name: "bash".to_owned(),
        search_path: String::new(),
        limits: TurnLimits { requests_max: 12, compact_tokens_max: 20_000 },
        secret_variables: Vec::new(),
        prompts_dir: directory.join("prompts"),
        skills_dir: None,
        system_prompt_path: None,
        system_prompt_addition: None,
        workflow: WorkflowConfig::default(),
        sandbox: SandboxMode::default(),
        network: NetworkAccess::default(),
        mcp_servers: Vec::new(),
        mcp_auth_dir: directory.join("mcp-auth"),
        hooks: Vec::new(),
        repositories: Arc::new(NoRepositoryConfig),
        agent_servers: vec![child_agent()],
        own_agent: None,
        tree_limits: TreeLimits::default(),
        depth: 0,
        worktrees_dir: directory.join("worktrees"),
        legacy_worktrees_dir: directory.join("legacy-worktrees"),
        recordings_dir: None,
        spill_dir: directory.join("spill"),
        db_uri: String::new(),
        setup_hint: String::new(),
        notices: Vec::new(),
        config_dir: directory.to_owned(),
    }
}

/// The agent of children; its program is never started.
fn child_agent() -> AgentServer {
    let transport =
        AgentTransport::Program { command: "helper".to_owned(), args: Vec::new(), env: Vec::new() };
    AgentServer { name: CHILD_AGENT.to_owned(), transport, cwd: None }
}

fn scripted_model() -> ModelSettings {
    ModelSettings {
        name: "scripted".to_owned(),
        provider: ProviderSettings {
            name: "fake".to_owned(),
            base_url: "https://model.test/v1".to_owned(),
            api: ModelApi::CHAT,
            api_key: None,
            key_variable: None,
            headers: Vec::new(),
        },
        model: "scripted".to_owned(),
        context_window: 32_000,
        reads_images: true,
        compact_tokens_max: None,
        max_tokens: None,
        temperature: None,
        reasoning_effort: None,
        thought_levels: std::collections::BTreeMap::new(),
        send_reasoning: None,
        tool_calls: ToolCallMode::default(),
        tools: ToolSelection { profile: ToolProfile::Full, ..ToolSelection::default() },
        price: None,
        extra_body: serde_json::Map::new(),
        retries_max: 2,
        fallbacks: Vec::new(),
    }
}

/// Repositories of simulations configure nothing.
#[derive(Debug)]
struct NoRepositoryConfig;

impl RepositoryConfigReader for NoRepositoryConfig {
    fn read_config(&self, _: &Path, _: &str, _: VariableExpansion<'_>) -> RepositoryConfig {
        RepositoryConfig::default()
    }
}
