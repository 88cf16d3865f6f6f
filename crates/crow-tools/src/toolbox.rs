//! The tools of one session: Crow's own, and those of connected MCP servers.

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use crow_core::{CommandInfo, ContentPart, Failure, FailureKind, McpServer, ToolSpec, slash};
use futures_util::future::join_all;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    mcp::{McpEnvironment, McpServers},
    tool_offer::ToolOffer,
    tool_set::ToolSet,
};

/// Receives notices for the user.
type NoticeSink = Arc<dyn Fn(String) + Send + Sync>;

/// Time that a session's first request waits for its servers: most start within a second or two, and one that hangs
/// must not delay the user. Tools of late servers are available with the next request.
const SERVERS_WAIT_MAX: Duration = Duration::from_secs(5);

/// The tools of one session. Dropping it ends its servers.
pub struct Toolbox {
    base_tools: Arc<ToolSet>,
    /// Which tools the requests offer.
    offer: Arc<ToolOffer>,
    environment: McpEnvironment,
    send_notice: NoticeSink,
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
pub struct ToolboxInit {
    /// Crow's own tools.
    pub base_tools: Arc<ToolSet>,
    /// The servers that the session is opened with.
    pub servers: Vec<McpServer>,
    /// The environment of all servers.
    pub environment: McpEnvironment,
    /// The largest number of tools in a request.
    pub tools_max: usize,
    /// Receives notices of the servers for the user.
    pub send_notice: Arc<dyn Fn(String) + Send + Sync>,
}

impl Toolbox {
    /// Opens the tools of a session; its servers connect in the background.
    pub fn open(init: ToolboxInit) -> Self {
        let ToolboxInit { base_tools, servers, environment, tools_max, send_notice } = init;
        let mut toolbox = Self {
            base_tools,
            offer: ToolOffer::new(tools_max),
            environment,
            send_notice,
            session_servers: ConfiguredServers::default(),
            project_servers: RwLock::default(),
            commands_changed: watch::Sender::new(()),
        };
        toolbox.session_servers = toolbox.start_servers(servers);
        toolbox
    }

    /// Replaces the repository's servers; the session's own override those of the same name.
    pub fn set_project_servers(&self, servers: &[McpServer]) {
        let is_session_server =
            |server: &McpServer| self.session_servers.configs.iter().any(|config| config.name == server.name);
        let configs: Vec<McpServer> =
            servers.iter().filter(|server| !is_session_server(server)).cloned().collect();
        let mut project_servers = self.project_servers.write().unwrap_or_else(PoisonError::into_inner);
        if project_servers.configs != configs {
            *project_servers = self.start_servers(configs);
        }
    }

    fn start_servers(&self, configs: Vec<McpServer>) -> ConfiguredServers {
        if configs.is_empty() {
            return ConfiguredServers::default();
        }
        let servers =
            Arc::new(McpServers::start(configs.clone(), self.environment.clone(), &self.base_tools.tools));
        let stop = CancellationToken::new();
        tokio::spawn(forward_notices(servers.clone(), self.send_notice.clone(), stop.clone()));
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
    pub async fn wait_until_connected(&self, cancel: &CancellationToken) {
        let all_servers = self.running_servers();
        let ready = all_servers.iter().map(|servers| servers.wait_until_settled(SERVERS_WAIT_MAX));
        cancel.run_until_cancelled(join_all(ready)).await;
    }

    /// Returns the commands for prompts of connected servers.
    pub fn prompt_commands(&self) -> Vec<CommandInfo> {
        self.running_servers().iter().flat_map(|servers| servers.commands()).collect()
    }

    /// Subscribes to changes of the commands.
    pub fn subscribe_commands(&self) -> watch::Receiver<()> {
        self.commands_changed.subscribe()
    }

    /// Gets the prompt of a server, if a text is its command.
    pub async fn fetch_prompt(
        &self,
        text: &str,
        cancel: &CancellationToken,
    ) -> Option<Result<Vec<ContentPart>, Failure>> {
        let command = slash::parse_command(text)?;
        let all_servers = self.running_servers();
        let servers = all_servers.iter().find(|servers| servers.owns_command(&command))?;
        self.wait_until_connected(cancel).await;
        let prompt = servers.get_prompt(&command, cancel).await;
        Some(prompt.map_err(|reason| Failure::new(FailureKind::InvalidValue, reason)))
    }

    /// Returns the current tools.
    pub fn current_tools(&self) -> Arc<ToolSet> {
        let all_servers = self.running_servers();
        if all_servers.is_empty() {
            return self.base_tools.clone();
        }
        let tools = all_servers.iter().flat_map(|servers| servers.tools()).collect();
        Arc::new(self.offer.choose(&self.base_tools.tools, tools))
    }

    /// Takes the notice that not all tools are offered, which there is once.
    pub fn take_offer_notice(&self) -> Option<String> {
        self.offer.take_notice()
    }

    /// Notes that the model called a tool.
    pub fn note_use(&self, tool: &str) {
        self.offer.note_use(tool);
    }

    /// Returns the tools of its servers, each with the server's name and its name there.
    pub fn served(&self) -> Vec<(String, String, ToolSpec)> {
        self.current_tools().tools.mcp_tool_specs()
    }

    fn running_servers(&self) -> Vec<Arc<McpServers>> {
        let project_servers = self.project_servers.read().unwrap_or_else(PoisonError::into_inner);
        let all_servers = [&self.session_servers.running, &project_servers.running];
        all_servers.into_iter().flatten().map(|running| running.servers.clone()).collect()
    }
}

/// Forwards notices of the servers until `stop`.
async fn forward_notices(servers: Arc<McpServers>, send_notice: NoticeSink, stop: CancellationToken) {
    while let Some(notices) = stop.run_until_cancelled(servers.next_notices()).await {
        notices.into_iter().for_each(|sentence| send_notice(sentence));
    }
}
