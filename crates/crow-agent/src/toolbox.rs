//! The tools of one session: those Crow brings along, and those of its MCP servers as they come.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use crow_acp::{Client, Place, Spoken};
use crow_core::{CommandInfo, Failure, FailureKind, McpServer, Part, SessionId, ToolSpec, Update, slash};
use crow_tools::{McpHome, McpServers, Tools, Workspace};
use futures_util::future::join_all;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::kit::Kit;
use crate::tasks::Door;

/// How long a session's first request waits for its servers: most start within a second or two, and one that
/// hangs must not keep a person waiting. Late ones are there with the next request.
const SERVERS_WAIT_MAX: Duration = Duration::from_secs(5);

/// Tools at one moment, and how the model is told of them.
#[derive(Clone)]
pub(crate) struct ToolSet {
    pub(crate) tools: Tools,
    pub(crate) specs: Arc<[ToolSpec]>,
}

impl ToolSet {
    pub(crate) fn new(tools: Tools) -> Self {
        let specs = tools.specs().into();
        Self { tools, specs }
    }
}

/// The tools of one session. Dropping it ends its servers.
pub(crate) struct Toolbox {
    own: Arc<ToolSet>,
    home: McpHome,
    /// Those that the session was opened with.
    servers: Servers,
    /// Those of the repository, as far as they are trusted now.
    supplied: RwLock<Servers>,
    /// Rings when a server's prompts come or go.
    commands: watch::Sender<()>,
}

/// Servers with what they were started from; dropping them ends them.
#[derive(Default)]
struct Servers {
    wanted: Vec<McpServer>,
    running: Option<Running>,
}

struct Running {
    servers: Arc<McpServers>,
    _end: DropGuard,
}

impl Toolbox {
    /// Opens the tools of a session; its servers connect in the background. One the client brings along stands
    /// in for a configured one of the same name.
    pub(crate) fn open(
        kit: &Kit,
        (client, session): (&Client, &SessionId),
        (place, workspace): (&Place, &Workspace),
        children: Option<&Door>,
    ) -> Self {
        let (settings, brought) = (kit.settings(), &place.servers);
        let is_brought = |name: &str| brought.iter().any(|server| server.name == name);
        let configured = settings.mcp_servers.iter().filter(|server| !is_brought(&server.name)).cloned();
        let wanted: Vec<McpServer> = configured.chain(brought.iter().cloned()).collect();
        let home = McpHome {
            cwd: place.cwd.clone(),
            secret_variables: settings.secret_variables.clone(),
            variables: workspace.variables_watched(),
            roots: std::iter::once(&place.cwd).chain(&place.more_roots).cloned().collect(),
            auth_dir: settings.mcp_auth_dir.clone(),
        };
        let commands = watch::Sender::new(());
        let mut toolbox = Self {
            own: kit.tools_of(session, children),
            home,
            servers: Servers::default(),
            supplied: RwLock::default(),
            commands,
        };
        toolbox.servers = toolbox.start(wanted, (client, session));
        toolbox
    }

    /// Has these servers of the repository and no others of it; the session's own stand in for those of their name.
    pub(crate) fn supply(&self, told: (&Client, &SessionId), servers: &[McpServer]) {
        let is_own = |server: &McpServer| self.servers.wanted.iter().any(|own| own.name == server.name);
        let wanted: Vec<McpServer> = servers.iter().filter(|server| !is_own(server)).cloned().collect();
        let mut supplied = self.supplied.write().unwrap_or_else(PoisonError::into_inner);
        if supplied.wanted != wanted {
            *supplied = self.start(wanted, told);
        }
    }

    fn start(&self, wanted: Vec<McpServer>, (client, session): (&Client, &SessionId)) -> Servers {
        if wanted.is_empty() {
            return Servers::default();
        }
        let servers = Arc::new(McpServers::start(wanted.clone(), self.home.clone(), &self.own.tools));
        let end = CancellationToken::new();
        tokio::spawn(tell_news(servers.clone(), client.clone(), session.clone(), end.clone()));
        let (mut changed, commands) = (servers.commands_changed(), self.commands.clone());
        tokio::spawn(end.clone().run_until_cancelled_owned(async move {
            while changed.changed().await.is_ok() {
                commands.send_replace(());
            }
        }));
        Servers { wanted, running: Some(Running { servers, _end: end.drop_guard() }) }
    }

    /// Waits a little for servers that still connect.
    pub(crate) async fn settled(&self, cut: &CancellationToken) {
        let all = self.running();
        let settled = all.iter().map(|servers| servers.settled(SERVERS_WAIT_MAX));
        cut.run_until_cancelled(join_all(settled)).await;
    }

    /// The commands that stand for prompts of servers, as far as these are connected.
    pub(crate) fn commands(&self) -> Vec<CommandInfo> {
        self.running().iter().flat_map(|servers| servers.commands()).collect()
    }

    /// Tells when those change, for as long as the session has its servers.
    pub(crate) fn commands_changed(&self) -> watch::Receiver<()> {
        self.commands.subscribe()
    }

    /// Has a server fill in its prompt, when what was said begins with the command for one.
    pub(crate) async fn prompt(
        &self,
        said: &[Spoken],
        cut: &CancellationToken,
    ) -> Option<Result<Vec<Part>, Failure>> {
        let Some(Spoken::Part(Part::Text(text))) = said.first() else { return None };
        let command = slash::parse(text)?;
        let all = self.running();
        let servers = all.iter().find(|servers| servers.may_answer(&command))?;
        self.settled(cut).await;
        let prompted = servers.prompt(&command, cut).await;
        Some(prompted.map_err(|why| Failure::new(FailureKind::InvalidValue, why)))
    }

    /// The tools there are now.
    pub(crate) fn now(&self) -> Arc<ToolSet> {
        let all = self.running();
        if all.is_empty() {
            return self.own.clone();
        }
        let tools = all.iter().flat_map(|servers| servers.tools()).collect();
        Arc::new(ToolSet::new(self.own.tools.with(tools)))
    }

    /// The tools of its servers, each with the server's name and the name that it has there.
    pub(crate) fn served(&self) -> Vec<(String, String, ToolSpec)> {
        self.now().tools.served()
    }

    fn running(&self) -> Vec<Arc<McpServers>> {
        let supplied = self.supplied.read().unwrap_or_else(PoisonError::into_inner);
        let all = [&self.servers.running, &supplied.running];
        all.into_iter().flatten().map(|running| running.servers.clone()).collect()
    }
}

/// Tells the client what becomes of the servers, for as long as the session has them.
async fn tell_news(servers: Arc<McpServers>, client: Client, session: SessionId, end: CancellationToken) {
    while let Some(news) = end.run_until_cancelled(servers.news()).await {
        for sentence in news {
            client.tell(&session, Update::Notice(sentence));
        }
    }
}
