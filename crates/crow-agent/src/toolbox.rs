//! The tools of one session: those Crow brings along, and those of its MCP servers as they come.

use std::sync::Arc;
use std::time::Duration;

use crow_acp::{Client, Place, Spoken};
use crow_core::{CommandInfo, Failure, FailureKind, McpServer, Part, SessionId, ToolSpec, Update, slash};
use crow_tools::{McpHome, McpServers, Tools};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::commands;
use crate::kit::Kit;

/// How long a session's first request waits for its servers: most start within a second or two, and one that
/// hangs must not keep a person waiting. Late ones are there with the next request.
const SERVERS_WAIT_MAX: Duration = Duration::from_secs(5);

/// Tools at one moment, and how the model is told of them.
#[derive(Clone)]
pub(crate) struct ToolSet {
    pub(crate) tools: Tools,
    pub(crate) specs: Vec<ToolSpec>,
}

impl ToolSet {
    pub(crate) fn new(tools: Tools) -> Self {
        let specs = tools.specs();
        Self { tools, specs }
    }
}

/// The tools of one session. Dropping it ends its servers.
pub(crate) struct Toolbox {
    own: Arc<ToolSet>,
    servers: Option<Servers>,
}

struct Servers {
    servers: Arc<McpServers>,
    _end: DropGuard,
}

impl Toolbox {
    /// Opens the tools of a session; its servers connect in the background. One the client brings along stands
    /// in for a configured one of the same name.
    pub(crate) fn open(kit: &Kit, client: &Client, session: &SessionId, place: &Place) -> Self {
        let (settings, brought) = (kit.settings(), &place.servers);
        let is_brought = |name: &str| brought.iter().any(|server| server.name == name);
        let configured = settings.mcp_servers.iter().filter(|server| !is_brought(&server.name)).cloned();
        let wanted: Vec<McpServer> = configured.chain(brought.iter().cloned()).collect();
        let own = kit.own_tools.clone();
        if wanted.is_empty() {
            return Self { own, servers: None };
        }
        let home = McpHome {
            cwd: place.cwd.clone(),
            secret_variables: settings.secret_variables.clone(),
            roots: std::iter::once(&place.cwd).chain(&place.more_roots).cloned().collect(),
            auth_dir: settings.mcp_auth_dir.clone(),
        };
        let servers = Arc::new(McpServers::start(wanted, home, &own.tools));
        let end = CancellationToken::new();
        tokio::spawn(tell_news(servers.clone(), client.clone(), session.clone(), end.clone()));
        let changed = servers.commands_changed();
        let (client, session) = (client.clone(), session.clone());
        tokio::spawn(end.clone().run_until_cancelled_owned(tell_commands(
            servers.clone(),
            changed,
            client,
            session,
        )));
        Self { own, servers: Some(Servers { servers, _end: end.drop_guard() }) }
    }

    /// Waits a little for servers that still connect.
    pub(crate) async fn settled(&self, cut: &CancellationToken) {
        if let Some(Servers { servers, .. }) = &self.servers {
            cut.run_until_cancelled(servers.settled(SERVERS_WAIT_MAX)).await;
        }
    }

    /// The commands on offer now.
    pub(crate) fn commands(&self) -> Vec<CommandInfo> {
        match &self.servers {
            None => commands::on_offer(),
            Some(Servers { servers, .. }) => with_prompts(servers),
        }
    }

    /// Has a server fill in its prompt, when what was said begins with the command for one.
    pub(crate) async fn prompt(
        &self,
        said: &[Spoken],
        cut: &CancellationToken,
    ) -> Option<Result<Vec<Part>, Failure>> {
        let Some(Servers { servers, .. }) = &self.servers else { return None };
        let Some(Spoken::Part(Part::Text(text))) = said.first() else { return None };
        let command = slash::parse(text).filter(|command| servers.may_answer(command))?;
        self.settled(cut).await;
        let prompted = servers.prompt(&command, cut).await;
        Some(prompted.map_err(|why| Failure::new(FailureKind::InvalidValue, why)))
    }

    /// The tools there are now.
    pub(crate) fn now(&self) -> Arc<ToolSet> {
        match &self.servers {
            None => self.own.clone(),
            Some(Servers { servers, .. }) => Arc::new(ToolSet::new(self.own.tools.with(servers.tools()))),
        }
    }
}

/// Tells the client which commands there are whenever a server's prompts come or go.
async fn tell_commands(
    servers: Arc<McpServers>,
    mut changed: watch::Receiver<()>,
    client: Client,
    session: SessionId,
) {
    while changed.changed().await.is_ok() {
        client.tell(&session, Update::Commands(with_prompts(&servers)));
    }
}

fn with_prompts(servers: &McpServers) -> Vec<CommandInfo> {
    commands::on_offer().into_iter().chain(servers.commands()).collect()
}

/// Tells the client what becomes of the servers, for as long as the session has them.
async fn tell_news(servers: Arc<McpServers>, client: Client, session: SessionId, end: CancellationToken) {
    while let Some(news) = end.run_until_cancelled(servers.news()).await {
        for sentence in news {
            client.tell(&session, Update::Notice(sentence));
        }
    }
}
