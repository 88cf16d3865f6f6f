//! The MCP servers of a session: connects them, restarts them and ends them with the session.
//!
//! Must not know permissions: a server's tools are handled like the built-in ones, and a server's statements about
//! itself are untrusted. Only this module uses the MCP SDK.

mod actor;
mod auth;
mod call;
mod call_result;
mod connect;
mod elicitation;
mod environment;
mod filtered_reader;
mod http;
mod http_client;
mod link;
mod message_filter;
mod notices;
mod pagination;
mod prompt_list;
mod prompts;
mod request_authorizer;
mod request_error;
mod resources;
mod sampling;
mod server;
mod server_requests;
mod session_port;
mod sse;
mod tool;
mod tool_list;

use std::{sync::Arc, time::Duration};

use crow_core::{CommandInfo, ContentPart, McpServer, McpTransport, slash};
use tokio::{sync::watch, time::timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::{
    actor::McpServerActor, call::McpRequestOptions, notices::McpNotices, server::McpServerHandle,
    tool::McpTool,
};
pub use self::{
    auth::{McpSignIn, SignInError, SignInStatus, forget_sign_in, sign_in_status},
    environment::{McpClientFeatures, McpEnvironment, SlowServers},
    session_port::{McpSessionPort, ServerRequestFuture},
};
use crate::{Tool, ToolRegistry};

/// The MCP servers of one session. Dropping it ends them.
pub struct McpServers {
    servers: Vec<Arc<McpServerHandle>>,
    notices: Arc<McpNotices>,
    commands_changed: Arc<watch::Sender<()>>,
    slow_servers: Arc<SlowServers>,
    _cancel_guard: DropGuard,
}

impl McpServers {
    /// Starts connecting to all servers concurrently, in the background. Their programs end with the programs of
    /// `tools` at the latest.
    pub fn start(servers: Vec<McpServer>, environment: McpEnvironment, tools: &ToolRegistry) -> Self {
        let slow_servers = environment.slow_servers.clone();
        let (environment, cancel) = (Arc::new(environment), CancellationToken::new());
        let (notices, commands_changed) = (Arc::new(McpNotices::default()), Arc::new(watch::Sender::new(())));
        let mut started: Vec<Arc<McpServerHandle>> = Vec::with_capacity(servers.len());
        for settings in servers {
            let name = unique_server_name(&settings.name, &started);
            let server = Arc::new(McpServerHandle::new(name, settings.timeout, commands_changed.clone()));
            let actor = McpServerActor {
                server: server.clone(),
                settings: McpServer { transport: supervise_transport(settings.transport, tools), ..settings },
                environment: environment.clone(),
                groups: tools.process_groups().clone(),
                refreshes: tools.token_refreshes().clone(),
                notices: notices.clone(),
                cancel: cancel.clone(),
            };
            tokio::spawn(actor.run());
            started.push(server);
        }
        Self { servers: started, notices, commands_changed, slow_servers, _cancel_guard: cancel.drop_guard() }
    }

    /// Waits until each server is ready or has failed, for at most `limit`. A server that is silent for so long is waited
    /// for once in this process.
    pub async fn wait_until_settled(&self, limit: Duration) {
        let expected: Vec<_> =
            self.servers.iter().filter(|server| !self.slow_servers.contains(&server.name)).collect();
        let all = async {
            for server in &expected {
                server.wait_until_settled().await;
            }
        };
        if timeout(limit, all).await.is_ok() || limit.is_zero() {
            return;
        }
        // The tools of a slower server are added once it is ready.
        for server in expected.into_iter().filter(|server| server.is_connecting()) {
            if self.slow_servers.insert(&server.name) {
                self.notices.post(format!(
                    "The MCP server {} has not answered within {} s. Its tools are added when it does, and nothing waits \
                     for it again.",
                    server.name,
                    limit.as_secs()
                ));
            }
        }
    }

    /// Returns the current tools, server by server, in each server's order.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let tools = self.servers.iter().flat_map(|server| {
            let tools = server.catalog().tools;
            let tools = tools.iter().map(|listed| McpTool::new(server.clone(), listed.clone()));
            tools.map(|tool| Arc::new(tool) as Arc<dyn Tool>).collect::<Vec<_>>()
        });
        tools.chain(resources::resource_tools(&self.servers)).collect()
    }

    /// Returns the servers' prompts as commands.
    pub fn commands(&self) -> Vec<CommandInfo> {
        self.servers.iter().flat_map(|server| prompts::prompt_commands(server)).collect()
    }

    /// Returns a receiver that is notified when the commands change.
    pub fn subscribe_commands(&self) -> watch::Receiver<()> {
        self.commands_changed.subscribe()
    }

    /// Whether a command is a prompt of one of the servers, which may still be connecting.
    pub fn owns_command(&self, command: &slash::SlashCommand<'_>) -> bool {
        self.servers.iter().any(|server| prompts::owns_command(server, command))
    }

    /// Requests the prompt of a command from its server. `Err` is a sentence for the user.
    pub async fn get_prompt(
        &self,
        command: &slash::SlashCommand<'_>,
        cancel: &CancellationToken,
    ) -> Result<Vec<ContentPart>, String> {
        let server = self.servers.iter().find(|server| prompts::owns_command(server, command));
        let server = server.ok_or_else(|| format!("There is no MCP server for /{}.", command.name))?;
        prompts::get_prompt(server, command, McpRequestOptions { cancel, progress: &|_| (), session: None })
            .await
    }

    /// Takes the pending notices for the user, one sentence each.
    pub fn take_notices(&self) -> Vec<String> {
        self.notices.take_all()
    }

    /// Waits for notices and takes them. Cancel safe.
    pub async fn next_notices(&self) -> Vec<String> {
        self.notices.next_batch().await
    }
}

impl std::fmt::Debug for McpServers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.servers.iter().map(|server| &server.name)).finish()
    }
}

/// Runs a server's program under the supervisor, which ends all processes of a launcher.
fn supervise_transport(transport: McpTransport, tools: &ToolRegistry) -> McpTransport {
    match transport {
        McpTransport::Stdio { command, args, env } => {
            let (command, args) = tools.supervised_command(&command, &args);
            McpTransport::Stdio { command, args, env }
        }
        McpTransport::Http { .. } | McpTransport::Sse { .. } => transport,
    }
}

/// Makes a server name unique: servers with one name would share the user's grants.
fn unique_server_name(requested: &str, started: &[Arc<McpServerHandle>]) -> String {
    let is_taken = |name: &str| started.iter().any(|server| server.name == name);
    let numbered = (2..).map(|number| format!("{requested}_{number}"));
    let mut names = std::iter::once(requested.to_owned()).chain(numbered);
    names.find(|name| !is_taken(name)).unwrap_or_default()
}
