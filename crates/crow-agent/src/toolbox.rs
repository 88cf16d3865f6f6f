//! The tools of one session: Crow's own, and those of connected MCP servers.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use crow_acp::{Client, PromptBlock, SessionLocation};
use crow_core::{
    CommandInfo, ContentPart, Failure, FailureKind, McpServer, SessionId, SessionUpdate, ToolSpec, slash,
};
use crow_tools::{McpClientFeatures, McpEnvironment, McpServers, OfferedTools, ToolOffer, Workspace};
use futures_util::future::join_all;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::runtime::AgentRuntime;
use crate::tool_set::ToolSet;

/// Time that a session's first request waits for its servers: most start within a second or two, and one that hangs
/// must not delay the user. Tools of late servers are available with the next request.
const SERVERS_WAIT_MAX: Duration = Duration::from_secs(5);

/// The tools of one session. Dropping it ends its servers.
pub(crate) struct Toolbox {
    base_tools: Arc<ToolSet>,
    /// Which tools the requests offer.
    offer: Arc<ToolOffer>,
    environment: McpEnvironment,
    /// The servers that the session was opened with.
    session_servers: ConfiguredServers,
    /// The trusted servers of the repository.
    project_servers: RwLock<ConfiguredServers>,
    /// Signals a change of the servers' prompts.
    commands_changed: watch::Sender<()>,
}

/// Servers with their configuration; dropping them ends them.
#[derive(Default)]
struct ConfiguredServers {
    configs: Vec<McpServer>,
    running: Option<RunningServers>,
}

struct RunningServers {
    servers: Arc<McpServers>,
    _stop: DropGuard,
}

/// The parameters of a session's tools.
pub(crate) struct ToolboxInit<'a> {
    pub(crate) runtime: &'a AgentRuntime,
    pub(crate) client: &'a Client,
    pub(crate) session: &'a SessionId,
    pub(crate) location: &'a SessionLocation,
    pub(crate) workspace: &'a Workspace,
    /// Crow's own tools.
    pub(crate) base_tools: Arc<ToolSet>,
}

impl Toolbox {
    /// Opens the tools of a session; its servers connect in the background. A server of the client overrides a
    /// configured one of the same name.
    pub(crate) fn open(init: ToolboxInit<'_>) -> Self {
        let ToolboxInit { runtime, client, session, location, workspace, base_tools } = init;
        let (config, client_servers) = (runtime.config(), &location.servers);
        let is_from_client = |name: &str| client_servers.iter().any(|server| server.name == name);
        let configured = config.mcp_servers.iter().filter(|server| !is_from_client(&server.name)).cloned();
        let configs: Vec<McpServer> = configured.chain(client_servers.iter().cloned()).collect();
        let environment = McpEnvironment {
            cwd: location.cwd.clone(),
            secret_variables: config.secret_variables.clone(),
            variables: workspace.subscribe_variables(),
            roots: std::iter::once(&location.cwd).chain(&location.additional_directories).cloned().collect(),
            auth_dir: config.mcp_auth_dir.clone(),
            features: McpClientFeatures { elicitation: client.capabilities().forms, sampling: true },
            slow_servers: runtime.slow_servers.clone(),
        };
        let commands_changed = watch::Sender::new(());
        let mut toolbox = Self {
            base_tools,
            offer: ToolOffer::new(config.tools_max),
            environment,
            session_servers: ConfiguredServers::default(),
            project_servers: RwLock::default(),
            commands_changed,
        };
        toolbox.session_servers = toolbox.start_servers(configs, client, session);
        toolbox
    }

    /// Replaces the repository's servers; the session's own override those of the same name.
    pub(crate) fn set_project_servers(&self, client: &Client, session: &SessionId, servers: &[McpServer]) {
        let is_session_server =
            |server: &McpServer| self.session_servers.configs.iter().any(|config| config.name == server.name);
        let configs: Vec<McpServer> =
            servers.iter().filter(|server| !is_session_server(server)).cloned().collect();
        let mut project_servers = self.project_servers.write().unwrap_or_else(PoisonError::into_inner);
        if project_servers.configs != configs {
            *project_servers = self.start_servers(configs, client, session);
        }
    }

    fn start_servers(
        &self,
        configs: Vec<McpServer>,
        client: &Client,
        session: &SessionId,
    ) -> ConfiguredServers {
        if configs.is_empty() {
            return ConfiguredServers::default();
        }
        let servers =
            Arc::new(McpServers::start(configs.clone(), self.environment.clone(), &self.base_tools.tools));
        let stop = CancellationToken::new();
        tokio::spawn(forward_server_news(servers.clone(), client.clone(), session.clone(), stop.clone()));
        let (mut server_commands, commands_changed) =
            (servers.subscribe_commands(), self.commands_changed.clone());
        tokio::spawn(stop.clone().run_until_cancelled_owned(async move {
            while server_commands.changed().await.is_ok() {
                commands_changed.send_replace(());
            }
        }));
        ConfiguredServers { configs, running: Some(RunningServers { servers, _stop: stop.drop_guard() }) }
    }

    /// Waits for a limited time for servers that are still connecting.
    pub(crate) async fn wait_until_connected(&self, cancel: &CancellationToken) {
        let all_servers = self.running_servers();
        let ready = all_servers.iter().map(|servers| servers.wait_until_settled(SERVERS_WAIT_MAX));
        cancel.run_until_cancelled(join_all(ready)).await;
    }

    /// Returns the commands for prompts of connected servers.
    pub(crate) fn prompt_commands(&self) -> Vec<CommandInfo> {
        self.running_servers().iter().flat_map(|servers| servers.commands()).collect()
    }

    /// Subscribes to changes of the commands.
    pub(crate) fn subscribe_commands(&self) -> watch::Receiver<()> {
        self.commands_changed.subscribe()
    }

    /// Gets the prompt of a server, if the content begins with its command.
    pub(crate) async fn fetch_prompt(
        &self,
        content: &[PromptBlock],
        cancel: &CancellationToken,
    ) -> Option<Result<Vec<ContentPart>, Failure>> {
        let Some(PromptBlock::Part(ContentPart::Text(text))) = content.first() else { return None };
        let command = slash::parse_command(text)?;
        let all_servers = self.running_servers();
        let servers = all_servers.iter().find(|servers| servers.owns_command(&command))?;
        self.wait_until_connected(cancel).await;
        let prompt = servers.get_prompt(&command, cancel).await;
        Some(prompt.map_err(|reason| Failure::new(FailureKind::InvalidValue, reason)))
    }

    /// Returns the current tools.
    pub(crate) fn current_tools(&self) -> Arc<ToolSet> {
        let all_servers = self.running_servers();
        if all_servers.is_empty() {
            return self.base_tools.clone();
        }
        let tools = all_servers.iter().flat_map(|servers| servers.tools()).collect();
        let OfferedTools { tools, specs } = self.offer.choose(&self.base_tools.tools, tools);
        Arc::new(ToolSet { tools, specs: specs.into() })
    }

    /// Takes the notice that not all tools are offered, which there is once.
    pub(crate) fn take_offer_notice(&self) -> Option<String> {
        self.offer.take_notice()
    }

    /// Notes that the model called a tool.
    pub(crate) fn note_use(&self, tool: &str) {
        self.offer.note_use(tool);
    }

    /// Returns the tools of its servers, each with the server's name and its name there.
    pub(crate) fn served(&self) -> Vec<(String, String, ToolSpec)> {
        self.current_tools().tools.mcp_tool_specs()
    }

    fn running_servers(&self) -> Vec<Arc<McpServers>> {
        let project_servers = self.project_servers.read().unwrap_or_else(PoisonError::into_inner);
        let all_servers = [&self.session_servers.running, &project_servers.running];
        all_servers.into_iter().flatten().map(|running| running.servers.clone()).collect()
    }
}

/// Forwards notices of the servers to the client until `stop`.
async fn forward_server_news(
    servers: Arc<McpServers>,
    client: Client,
    session: SessionId,
    stop: CancellationToken,
) {
    while let Some(notices) = stop.run_until_cancelled(servers.next_notices()).await {
        for sentence in notices {
            client.send_update(&session, SessionUpdate::Notice(sentence));
        }
    }
}
