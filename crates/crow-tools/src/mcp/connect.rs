//! From settings to a connection: a program or an address, and the handshake.

use std::{error::Error, time::Duration};

use crow_core::{McpServer, McpTransport};
use crow_process::{
    CommandSpec, ExitReason, PipedProcess, ProcessGroups, ProcessPipes, StderrReader, spawn_piped_process,
};
use rmcp::{
    Peer, RoleClient,
    service::{ClientInitializeError, QuitReason, RunningService, serve_client_with_ct},
    transport::{
        AuthClient, IntoTransport, StreamableHttpClientTransport,
        streamable_http_client::{HttpStatusError, StreamableHttpError},
    },
};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    McpEnvironment,
    auth::{self, RequestAuthorizer},
    http,
    link::{McpClientHandler, McpLink},
    overlong::{FilteredReader, McpHandshakeState},
    server::McpServerExit,
    sse,
};
use crate::tool::to_title;

/// How long what a program said last is still read when it is gone, and a goodbye may take.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A connection and all that stands behind it.
pub(super) struct McpConnection {
    peer: Peer<RoleClient>,
    heard: McpClientHandler,
    /// Without it the SDK would go on by itself.
    stop: DropGuard,
    /// Cancelled when the SDK has nothing to serve any more.
    over: CancellationToken,
    program: Option<ServerProgram>,
}

/// The program of a server that is one.
struct ServerProgram {
    companion: PipedProcess,
    stderr: StderrReader,
}

/// Connects to a server.
pub(super) async fn connect_server(
    name: &str,
    server: &McpServer,
    home: &McpEnvironment,
    groups: &ProcessGroups,
) -> Result<McpConnection, McpServerExit> {
    let heard = McpClientHandler::with_roots(&home.roots);
    match &server.transport {
        McpTransport::Stdio { command, args, env } => {
            let command = CommandSpec {
                program: command.clone(),
                args: args.clone(),
                cwd: server.cwd.as_ref().map_or_else(|| home.cwd.clone(), |cwd| home.cwd.join(cwd)),
                env: home.variables.borrow().iter().chain(env).cloned().collect(),
                env_removed: home.secret_variables.clone(),
            };
            connect_stdio(name, command, groups, heard).await
        }
        McpTransport::Http { url, headers } => {
            let signer = server_authorizer(server, home).await?;
            let (client, config) =
                http::prepare_transport(url, headers).await.map_err(McpServerExit::from_reason)?;
            let served = match signer {
                None => {
                    initialize_client(StreamableHttpClientTransport::with_client(client, config), heard).await
                }
                Some(auth_manager) => {
                    let client = AuthClient::new(client, auth_manager);
                    initialize_client(StreamableHttpClientTransport::with_client(client, config), heard).await
                }
            };
            let served = served.map_err(|error| McpServerExit::from_reason(connect_error(&error, server)))?;
            Ok(McpConnection::new(served, None))
        }
        McpTransport::Sse { url, headers } => {
            let signer = server_authorizer(server, home).await?;
            let transport = sse::open_transport(url, headers, signer).await.map_err(|refused| {
                McpServerExit::from_reason(refused.unwrap_or_else(|| http::unauthorized_message(server)))
            })?;
            let served = initialize_client(transport, heard).await;
            let served = served.map_err(|error| McpServerExit::from_reason(connect_error(&error, server)))?;
            Ok(McpConnection::new(served, None))
        }
    }
}

async fn server_authorizer(
    server: &McpServer,
    home: &McpEnvironment,
) -> Result<Option<RequestAuthorizer>, McpServerExit> {
    let signer = auth::load_authorizer(server, &home.auth_dir).await;
    signer.map_err(|why| McpServerExit::from_reason(format!("its sign-in could not be used: {why}")))
}

async fn connect_stdio(
    name: &str,
    command: CommandSpec,
    groups: &ProcessGroups,
    heard: McpClientHandler,
) -> Result<McpConnection, McpServerExit> {
    let started = spawn_piped_process(groups, command).await;
    let (companion, ProcessPipes { stdin, stdout, stderr }) =
        started.map_err(|error| McpServerExit::from_reason(error.to_string()))?;
    let program = ServerProgram { companion, stderr: StderrReader::start(stderr, name.to_owned()) };
    let shaken = McpHandshakeState::default();
    match initialize_client((FilteredReader::new(stdout, shaken.clone()), stdin), heard).await {
        Ok(served) => {
            shaken.mark_complete();
            Ok(McpConnection::new(served, Some(program)))
        }
        Err(error) if let Some(why) = shaken.fault() => {
            tracing::debug!(%error, "a program never stopped answering");
            Err(McpServerExit { why, ..program.close().await })
        }
        Err(ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. }) => {
            let end = program.close().await;
            Err(McpServerExit { why: format!("it ended before it answered, with {}", end.why), ..end })
        }
        Err(error) => Err(McpServerExit { why: handshake_error(&error), ..program.close().await }),
    }
}

/// A handshake that was made.
struct RunningClient {
    running: RunningService<RoleClient, McpClientHandler>,
    stop: DropGuard,
}

async fn initialize_client<T, E, A>(
    transport: T,
    heard: McpClientHandler,
) -> Result<RunningClient, ClientInitializeError>
where
    T: IntoTransport<RoleClient, E, A>,
    E: Error + Send + Sync + 'static,
{
    let stop = CancellationToken::new();
    let running = serve_client_with_ct(heard, transport, stop.clone()).await?;
    Ok(RunningClient { running, stop: stop.drop_guard() })
}

impl McpConnection {
    fn new(served: RunningClient, program: Option<ServerProgram>) -> Self {
        let RunningClient { running, stop } = served;
        let (peer, heard) = (running.peer().clone(), running.service().clone());
        let over = CancellationToken::new();
        let done = over.clone().drop_guard();
        tokio::spawn(async move {
            let _done = done;
            if let Ok(QuitReason::JoinError(error)) | Err(error) = running.waiting().await {
                tracing::warn!(%error, "a connection to an MCP server broke");
            }
        });
        Self { peer, heard, stop, over, program }
    }

    /// Gives what calls go through.
    pub(super) fn link(&self) -> McpLink {
        McpLink { peer: self.peer.clone(), heard: self.heard.clone() }
    }

    /// Waits until the other side has gone, whichever sign of it comes first.
    pub(super) async fn wait_until_closed(&mut self) {
        let Some(program) = &mut self.program else {
            return self.over.cancelled().await;
        };
        tokio::select! {
            () = self.over.cancelled() => return,
            _ = program.companion.wait() => {}
        }
        // It may have answered before it went.
        let _ = timeout(LAST_WORDS, self.over.cancelled()).await;
    }

    /// Ends what is left of it and says how it ended.
    pub(super) async fn close(self) -> McpServerExit {
        drop(self.stop);
        let _ = timeout(LAST_WORDS, self.over.cancelled()).await;
        match self.program {
            Some(program) => program.close().await,
            None => McpServerExit::from_reason("the connection was closed"),
        }
    }
}

impl ServerProgram {
    async fn close(self) -> McpServerExit {
        let why = match self.companion.shut_down().await {
            Some(ExitReason::Exited(code)) => format!("exit code {code}"),
            Some(ExitReason::Signalled(signal)) => format!("signal {signal}"),
            Some(ExitReason::TimedOut | ExitReason::Cancelled) | None => "no exit code".to_owned(),
        };
        McpServerExit { why, said: self.stderr.finish().await }
    }
}

/// Says why a server behind an address was not to be had.
fn connect_error(error: &ClientInitializeError, server: &McpServer) -> String {
    let why = handshake_error(error);
    // Not every server names its way to sign in.
    let knows_us_not = error.is_authorization_required() || why.starts_with("it answered HTTP 401");
    if knows_us_not { http::unauthorized_message(server) } else { why }
}

/// Says why there was no handshake, without the address: that may hold a key.
fn handshake_error(error: &ClientInitializeError) -> String {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the SDK may add to its errors")]
    match error {
        ClientInitializeError::JsonRpcError(refused) => format!("it refused: {}", to_title(&refused.message)),
        ClientInitializeError::ConnectionClosed(_) => "the connection was closed".to_owned(),
        ClientInitializeError::TransportError { error, .. } => root_cause(error.error.as_ref()),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            "it speaks no version of MCP that is known here".to_owned()
        }
        _ => "its answer is not MCP".to_owned(),
    }
}

/// Says what went wrong with a request: the deepest reason, for those above name the address.
pub(super) fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut deepest = error;
    loop {
        let wrapped = deepest.downcast_ref::<StreamableHttpError<reqwest::Error>>();
        let below = match wrapped {
            Some(StreamableHttpError::Client(request)) => Some(request as &(dyn Error + 'static)),
            Some(StreamableHttpError::UnexpectedServerResponse(answer)) => {
                return format!("it answered {}", to_title(answer.trim_end_matches([' ', ':'])));
            }
            Some(StreamableHttpError::AuthRequired(_)) => return http::WANTS_TO_KNOW.to_owned(),
            Some(_) | None => deepest.source(),
        };
        match below {
            Some(below) => deepest = below,
            None => break,
        }
    }
    match deepest.downcast_ref::<reqwest::Error>() {
        Some(request) => request.status().map_or_else(
            || "the request failed".to_owned(),
            |status| format!("it answered HTTP {}", status.as_u16()),
        ),
        None if deepest.is::<HttpStatusError>() => format!("it answered {deepest}"),
        None => to_title(&deepest.to_string()),
    }
}
