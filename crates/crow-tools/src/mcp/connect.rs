//! Connects to a server: starts its program or opens its address, and performs the handshake.

use std::{error::Error, time::Duration};

use crow_core::{McpServer, McpTransport};
use crow_process::{
    CommandSpec, ExitReason, PipedProcess, ProcessGroups, ProcessPipes, StderrReader, spawn_piped_process,
};
use rmcp::{
    Peer, RoleClient,
    service::{ClientInitializeError, QuitReason, RunningService, serve_client_with_ct},
    transport::{IntoTransport, StreamableHttpClientTransport},
};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    auth,
    environment::McpEnvironment,
    filtered_reader::{FilteredReader, McpHandshakeState},
    http,
    link::{McpClientHandler, McpLink},
    request_authorizer::RequestAuthorizer,
    request_error::root_cause,
    server::McpServerExit,
    sse,
};
use crate::{title::to_title, token_refreshes::TokenRefreshTasks};

/// Time to read the last output of a program that exited, and to close a connection.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);

/// A connection, with the server's program if it has one.
pub(super) struct McpConnection {
    peer: Peer<RoleClient>,
    handler: McpClientHandler,
    /// Stops the SDK's task on drop.
    stop: DropGuard,
    /// Cancelled when the SDK's task has ended.
    closed: CancellationToken,
    program: Option<ServerProgram>,
}

/// The program of a stdio server.
struct ServerProgram {
    process: PipedProcess,
    stderr: StderrReader,
}

/// The owners of a server's program and of the refreshes of its login, which outlive a connection.
#[derive(Clone, Copy)]
pub(super) struct ServerResources<'a> {
    pub(super) groups: &'a ProcessGroups,
    pub(super) refreshes: &'a TokenRefreshTasks,
}

/// Connects to a server.
pub(super) async fn connect_server(
    name: &str,
    server: &McpServer,
    environment: &McpEnvironment,
    ServerResources { groups, refreshes }: ServerResources<'_>,
) -> Result<McpConnection, McpServerExit> {
    let handler = McpClientHandler::new(name, &environment.roots, environment.features);
    match &server.transport {
        McpTransport::Stdio { command, args, env } => {
            let command = CommandSpec {
                program: command.clone(),
                args: args.clone(),
                cwd: server
                    .cwd
                    .as_ref()
                    .map_or_else(|| environment.cwd.clone(), |cwd| environment.cwd.join(cwd)),
                env: environment.variables.borrow().iter().chain(env).cloned().collect(),
                env_removed: environment.secret_variables.clone(),
            };
            connect_stdio(name, command, groups, handler).await
        }
        McpTransport::Http { url, headers } => {
            let address = McpAddress { url, headers };
            let authorizer = server_authorizer(server, environment, refreshes).await?;
            let connected = connect_http(&address, server, authorizer, handler.clone()).await;
            let exit = match connected {
                Err(exit) if is_older_transport(&exit) => exit,
                connected => return connected,
            };
            let authorizer = server_authorizer(server, environment, refreshes).await?;
            connect_sse(&address, server, authorizer, handler).await.map_err(|older| {
                McpServerExit::from_reason(format!(
                    "{}; the older transport (`transport: sse`) was tried too: {}",
                    exit.reason, older.reason
                ))
            })
        }
        McpTransport::Sse { url, headers } => {
            let authorizer = server_authorizer(server, environment, refreshes).await?;
            connect_sse(&McpAddress { url, headers }, server, authorizer, handler).await
        }
    }
}

/// The address of a server, with the headers for it.
struct McpAddress<'a> {
    url: &'a str,
    headers: &'a [(String, String)],
}

async fn connect_http(
    address: &McpAddress<'_>,
    server: &McpServer,
    authorizer: Option<RequestAuthorizer>,
    handler: McpClientHandler,
) -> Result<McpConnection, McpServerExit> {
    let prepared = http::prepare_transport(address.url, address.headers, authorizer).await;
    let (client, config) = prepared.map_err(McpServerExit::from_reason)?;
    let transport = StreamableHttpClientTransport::with_client(client, config);
    let running_client = initialize_client(transport, handler).await;
    let running_client =
        running_client.map_err(|error| McpServerExit::from_reason(connect_error(&error, server)))?;
    Ok(McpConnection::new(running_client, None))
}

async fn connect_sse(
    address: &McpAddress<'_>,
    server: &McpServer,
    authorizer: Option<RequestAuthorizer>,
    handler: McpClientHandler,
) -> Result<McpConnection, McpServerExit> {
    let opened = sse::open_transport(address.url, address.headers, authorizer).await;
    let transport = opened.map_err(|rejection| {
        McpServerExit::from_reason(rejection.unwrap_or_else(|| http::unauthorized_message(server)))
    })?;
    let running_client = initialize_client(transport, handler).await;
    let running_client =
        running_client.map_err(|error| McpServerExit::from_reason(connect_error(&error, server)))?;
    Ok(McpConnection::new(running_client, None))
}

/// Whether a server answered `initialize` as one of the older transport does.
fn is_older_transport(exit: &McpServerExit) -> bool {
    let answer = exit.reason.strip_prefix("it answered ").unwrap_or_default();
    let status = answer.strip_prefix("HTTP ").unwrap_or(answer).get(..3);
    matches!(status, Some("400" | "404" | "405"))
}

async fn server_authorizer(
    server: &McpServer,
    environment: &McpEnvironment,
    refreshes: &TokenRefreshTasks,
) -> Result<Option<RequestAuthorizer>, McpServerExit> {
    let manager = auth::load_auth_manager(server, &environment.auth_dir).await;
    let authorizer =
        manager.map(|manager| manager.map(|manager| RequestAuthorizer::new(manager, refreshes.clone())));
    authorizer.map_err(|reason| McpServerExit::from_reason(format!("its login could not be used: {reason}")))
}

async fn connect_stdio(
    name: &str,
    command: CommandSpec,
    groups: &ProcessGroups,
    handler: McpClientHandler,
) -> Result<McpConnection, McpServerExit> {
    let started = spawn_piped_process(groups, command).await;
    let (process, ProcessPipes { stdin, stdout, stderr }) =
        started.map_err(|error| McpServerExit::from_reason(error.to_string()))?;
    let program = ServerProgram { process, stderr: StderrReader::start(stderr, name.to_owned()) };
    let handshake = McpHandshakeState::default();
    match initialize_client((FilteredReader::new(stdout, handshake.clone()), stdin), handler).await {
        Ok(client) => {
            handshake.mark_complete();
            Ok(McpConnection::new(client, Some(program)))
        }
        Err(error) if let Some(reason) = handshake.fault() => {
            tracing::debug!(%error, "a program sent an unreadable message during the handshake");
            Err(McpServerExit { reason, ..program.close().await })
        }
        Err(ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. }) => {
            let exit = program.close().await;
            Err(McpServerExit {
                reason: format!("it ended before it answered, with {}", exit.reason),
                ..exit
            })
        }
        Err(error) => Err(McpServerExit { reason: handshake_error(&error), ..program.close().await }),
    }
}

/// A client after the handshake.
struct RunningClient {
    service: RunningService<RoleClient, McpClientHandler>,
    stop: DropGuard,
}

async fn initialize_client<T, E, A>(
    transport: T,
    handler: McpClientHandler,
) -> Result<RunningClient, ClientInitializeError>
where
    T: IntoTransport<RoleClient, E, A>,
    E: Error + Send + Sync + 'static,
{
    let stop = CancellationToken::new();
    let service = serve_client_with_ct(handler, transport, stop.clone()).await?;
    Ok(RunningClient { service, stop: stop.drop_guard() })
}

impl McpConnection {
    fn new(client: RunningClient, program: Option<ServerProgram>) -> Self {
        let RunningClient { service, stop } = client;
        let (peer, handler) = (service.peer().clone(), service.service().clone());
        let closed = CancellationToken::new();
        let done_guard = closed.clone().drop_guard();
        tokio::spawn(async move {
            let _done = done_guard;
            if let Ok(QuitReason::JoinError(error)) | Err(error) = service.waiting().await {
                tracing::warn!(%error, "a connection to an MCP server failed");
            }
        });
        Self { peer, handler, stop, closed, program }
    }

    /// Returns the handle for requests.
    pub(super) fn link(&self) -> McpLink {
        McpLink {
            peer: self.peer.clone(),
            handler: self.handler.clone(),
            has_program: self.program.is_some(),
        }
    }

    /// Waits until the connection has closed or the program has exited.
    pub(super) async fn wait_until_closed(&mut self) {
        let Some(program) = &mut self.program else {
            return self.closed.cancelled().await;
        };
        tokio::select! {
            () = self.closed.cancelled() => return,
            _ = program.process.wait() => {}
        }
        // The SDK may still have to process the program's last responses.
        let _ = timeout(SHUTDOWN_TIMEOUT, self.closed.cancelled()).await;
    }

    /// Closes the connection and returns why it ended.
    pub(super) async fn close(self) -> McpServerExit {
        drop(self.stop);
        let _ = timeout(SHUTDOWN_TIMEOUT, self.closed.cancelled()).await;
        match self.program {
            Some(program) => program.close().await,
            None => McpServerExit::from_reason("the connection was closed"),
        }
    }
}

impl ServerProgram {
    async fn close(self) -> McpServerExit {
        let reason = match self.process.shut_down().await {
            Some(ExitReason::Exited(code)) => format!("exit code {code}"),
            Some(ExitReason::Signalled(signal)) => format!("signal {signal}"),
            Some(ExitReason::TimedOut | ExitReason::Cancelled) | None => "no exit code".to_owned(),
        };
        McpServerExit { reason, stderr: self.stderr.finish().await }
    }
}

/// Describes why an HTTP server could not be connected.
fn connect_error(error: &ClientInitializeError, server: &McpServer) -> String {
    let reason = handshake_error(error);
    // Not every server gives its authorization endpoint.
    let is_unauthorized = error.is_authorization_required() || reason.starts_with("it answered HTTP 401");
    if is_unauthorized { http::unauthorized_message(server) } else { reason }
}

/// Describes a failed handshake without the address, which may contain a key.
fn handshake_error(error: &ClientInitializeError) -> String {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the SDK may add to its errors")]
    match error {
        ClientInitializeError::JsonRpcError(rejection) => {
            format!("it rejected the connection: {}", to_title(&rejection.message))
        }
        ClientInitializeError::ConnectionClosed(_) => "the connection was closed".to_owned(),
        ClientInitializeError::TransportError { error, .. } => root_cause(error.error.as_ref()),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            "it supports no known version of MCP".to_owned()
        }
        _ => "its response is not MCP".to_owned(),
    }
}
