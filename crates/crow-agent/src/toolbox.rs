//! The tools of one session: those Crow brings along, and those of its MCP servers as they come.

use std::sync::Arc;
use std::time::Duration;

use crow_acp::{Client, Place};
use crow_core::{McpServer, SessionId, ToolSpec, Update};
use crow_tools::{McpHome, McpServers, Tools};
use tokio_util::sync::{CancellationToken, DropGuard};

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
        let home = McpHome { cwd: place.cwd.clone(), secret_variables: settings.secret_variables.clone() };
        let servers = Arc::new(McpServers::start(wanted, home, &own.tools));
        let end = CancellationToken::new();
        tokio::spawn(tell_news(servers.clone(), client.clone(), session.clone(), end.clone()));
        Self { own, servers: Some(Servers { servers, _end: end.drop_guard() }) }
    }

    /// Waits a little for servers that still connect.
    pub(crate) async fn settled(&self, cut: &CancellationToken) {
        if let Some(Servers { servers, .. }) = &self.servers {
            cut.run_until_cancelled(servers.settled(SERVERS_WAIT_MAX)).await;
        }
    }

    /// The tools there are now.
    pub(crate) fn now(&self) -> Arc<ToolSet> {
        match &self.servers {
            None => self.own.clone(),
            Some(Servers { servers, .. }) => Arc::new(ToolSet::new(self.own.tools.with(servers.tools()))),
        }
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
