//! The tools of one session: those Crow brings along, and those of its MCP servers as they come.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use crow_acp::{Client, PromptBlock, SessionLocation};
use crow_core::{
    CommandInfo, ContentPart, Failure, FailureKind, McpServer, SessionId, SessionUpdate, ToolSpec, slash,
};
use crow_tools::{McpEnvironment, McpServers, ToolRegistry, Workspace};
use futures_util::future::join_all;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::kit::AgentRuntime;
use crate::tasks::ChildAgentsCell;

/// How long a session's first request waits for its servers: most start within a second or two, and one that
/// hangs must not keep a person waiting. Late ones are there with the next request.
const SERVERS_WAIT_MAX: Duration = Duration::from_secs(5);

/// Tools at one moment, and how the model is told of them.
#[derive(Clone)]
pub(crate) struct ToolSet {
    pub(crate) tools: ToolRegistry,
    pub(crate) specs: Arc<[ToolSpec]>,
}

impl ToolSet {
    pub(crate) fn new(tools: ToolRegistry) -> Self {
        let specs = tools.tool_specs().into();
        Self { tools, specs }
    }
}

/// The tools of one session. Dropping it ends its servers.
pub(crate) struct Toolbox {
    own: Arc<ToolSet>,
    home: McpEnvironment,
    /// Those that the session was opened with.
    servers: ConfiguredServers,
    /// Those of the repository, as far as they are trusted now.
    supplied: RwLock<ConfiguredServers>,
    /// Rings when a server's prompts come or go.
    commands: watch::Sender<()>,
}

/// Servers with what they were started from; dropping them ends them.
#[derive(Default)]
struct ConfiguredServers {
    wanted: Vec<McpServer>,
    running: Option<RunningServers>,
}

struct RunningServers {
    servers: Arc<McpServers>,
    _end: DropGuard,
}

impl Toolbox {
    /// Opens the tools of a session; its servers connect in the background. One the client brings along stands
    /// in for a configured one of the same name.
    pub(crate) fn open(
        kit: &AgentRuntime,
        (client, session): (&Client, &SessionId),
        (place, workspace): (&SessionLocation, &Workspace),
        children: Option<&ChildAgentsCell>,
    ) -> Self {
        let (settings, brought) = (kit.config(), &place.servers);
        let is_brought = |name: &str| brought.iter().any(|server| server.name == name);
        let configured = settings.mcp_servers.iter().filter(|server| !is_brought(&server.name)).cloned();
        let wanted: Vec<McpServer> = configured.chain(brought.iter().cloned()).collect();
        let home = McpEnvironment {
            cwd: place.cwd.clone(),
            secret_variables: settings.secret_variables.clone(),
            variables: workspace.variables_watched(),
            roots: std::iter::once(&place.cwd).chain(&place.more_roots).cloned().collect(),
            auth_dir: settings.mcp_auth_dir.clone(),
        };
        let commands = watch::Sender::new(());
        let mut toolbox = Self {
            own: kit.session_tools(session, children),
            home,
            servers: ConfiguredServers::default(),
            supplied: RwLock::default(),
            commands,
        };
        toolbox.servers = toolbox.start_servers(wanted, (client, session));
        toolbox
    }

    /// Has these servers of the repository and no others of it; the session's own stand in for those of their name.
    pub(crate) fn set_supplied_servers(&self, told: (&Client, &SessionId), servers: &[McpServer]) {
        let is_own = |server: &McpServer| self.servers.wanted.iter().any(|own| own.name == server.name);
        let wanted: Vec<McpServer> = servers.iter().filter(|server| !is_own(server)).cloned().collect();
        let mut supplied = self.supplied.write().unwrap_or_else(PoisonError::into_inner);
        if supplied.wanted != wanted {
            *supplied = self.start_servers(wanted, told);
        }
    }

    fn start_servers(
        &self,
        wanted: Vec<McpServer>,
        (client, session): (&Client, &SessionId),
    ) -> ConfiguredServers {
        if wanted.is_empty() {
            return ConfiguredServers::default();
        }
        let servers = Arc::new(McpServers::start(wanted.clone(), self.home.clone(), &self.own.tools));
        let end = CancellationToken::new();
        tokio::spawn(forward_server_news(servers.clone(), client.clone(), session.clone(), end.clone()));
        let (mut changed, commands) = (servers.subscribe_commands(), self.commands.clone());
        tokio::spawn(end.clone().run_until_cancelled_owned(async move {
            while changed.changed().await.is_ok() {
                commands.send_replace(());
            }
        }));
        ConfiguredServers { wanted, running: Some(RunningServers { servers, _end: end.drop_guard() }) }
    }

    /// Waits a little for servers that still connect.
    pub(crate) async fn wait_until_connected(&self, cut: &CancellationToken) {
        let all = self.running_servers();
        let settled = all.iter().map(|servers| servers.wait_until_settled(SERVERS_WAIT_MAX));
        cut.run_until_cancelled(join_all(settled)).await;
    }

    /// The commands that stand for prompts of servers, as far as these are connected.
    pub(crate) fn prompt_commands(&self) -> Vec<CommandInfo> {
        self.running_servers().iter().flat_map(|servers| servers.commands()).collect()
    }

    /// Tells when those change, for as long as the session has its servers.
    pub(crate) fn subscribe_commands(&self) -> watch::Receiver<()> {
        self.commands.subscribe()
    }

    /// Has a server fill in its prompt, when what was said begins with the command for one.
    pub(crate) async fn fetch_prompt(
        &self,
        said: &[PromptBlock],
        cut: &CancellationToken,
    ) -> Option<Result<Vec<ContentPart>, Failure>> {
        let Some(PromptBlock::Part(ContentPart::Text(text))) = said.first() else { return None };
        let command = slash::parse_command(text)?;
        let all = self.running_servers();
        let servers = all.iter().find(|servers| servers.owns_command(&command))?;
        self.wait_until_connected(cut).await;
        let prompted = servers.get_prompt(&command, cut).await;
        Some(prompted.map_err(|why| Failure::new(FailureKind::InvalidValue, why)))
    }

    /// The tools there are now.
    pub(crate) fn current_tools(&self) -> Arc<ToolSet> {
        let all = self.running_servers();
        if all.is_empty() {
            return self.own.clone();
        }
        let tools = all.iter().flat_map(|servers| servers.tools()).collect();
        Arc::new(ToolSet::new(self.own.tools.with_tools(tools)))
    }

    /// The tools of its servers, each with the server's name and the name that it has there.
    pub(crate) fn served(&self) -> Vec<(String, String, ToolSpec)> {
        self.current_tools().tools.served()
    }

    fn running_servers(&self) -> Vec<Arc<McpServers>> {
        let supplied = self.supplied.read().unwrap_or_else(PoisonError::into_inner);
        let all = [&self.servers.running, &supplied.running];
        all.into_iter().flatten().map(|running| running.servers.clone()).collect()
    }
}

/// Tells the client what becomes of the servers, for as long as the session has them.
async fn forward_server_news(
    servers: Arc<McpServers>,
    client: Client,
    session: SessionId,
    end: CancellationToken,
) {
    while let Some(news) = end.run_until_cancelled(servers.next_notices()).await {
        for sentence in news {
            client.send_update(&session, SessionUpdate::Notice(sentence));
        }
    }
}
