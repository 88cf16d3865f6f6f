//! From settings to a connection: a program or an address, and the handshake.

use std::{error::Error, time::Duration};

use crow_core::{McpServer, McpTransport};
use crow_process::{Command, Companion, Ended, Groups, Pipes, Stderr, accompany};
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
    McpHome,
    auth::{self, Signer},
    http,
    link::{Heard, Link},
    overlong::{Handshake, Overlong},
    server::End,
    sse,
};
use crate::tool::title;

/// How long what a program said last is still read when it is gone, and a goodbye may take.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A connection and all that stands behind it.
pub(super) struct Connection {
    peer: Peer<RoleClient>,
    heard: Heard,
    /// Without it the SDK would go on by itself.
    stop: DropGuard,
    /// Cancelled when the SDK has nothing to serve any more.
    over: CancellationToken,
    program: Option<Program>,
}

/// The program of a server that is one.
struct Program {
    companion: Companion,
    stderr: Stderr,
}

/// Connects to a server.
pub(super) async fn connect(
    name: &str,
    server: &McpServer,
    home: &McpHome,
    groups: &Groups,
) -> Result<Connection, End> {
    let heard = Heard::in_folders(&home.roots);
    match &server.transport {
        McpTransport::Stdio { command, args, env } => {
            let command = Command {
                program: command.clone(),
                args: args.clone(),
                cwd: server.cwd.as_ref().map_or_else(|| home.cwd.clone(), |cwd| home.cwd.join(cwd)),
                env: home.variables.borrow().iter().chain(env).cloned().collect(),
                env_removed: home.secret_variables.clone(),
            };
            stdio(name, command, groups, heard).await
        }
        McpTransport::Http { url, headers } => {
            let signer = signer(server, home).await?;
            let (client, config) = http::speak(url, headers).await.map_err(End::of)?;
            let served = match signer {
                None => serve(StreamableHttpClientTransport::with_client(client, config), heard).await,
                Some(auth_manager) => {
                    let client = AuthClient::new(client, auth_manager);
                    serve(StreamableHttpClientTransport::with_client(client, config), heard).await
                }
            };
            let served = served.map_err(|error| End::of(refusal(&error, server)))?;
            Ok(Connection::new(served, None))
        }
        McpTransport::Sse { url, headers } => {
            let signer = signer(server, home).await?;
            let transport = sse::transport(url, headers, signer)
                .await
                .map_err(|refused| End::of(refused.unwrap_or_else(|| http::wants_to_know(server))))?;
            let served = serve(transport, heard).await;
            let served = served.map_err(|error| End::of(refusal(&error, server)))?;
            Ok(Connection::new(served, None))
        }
    }
}

async fn signer(server: &McpServer, home: &McpHome) -> Result<Option<Signer>, End> {
    let signer = auth::signer(server, &home.auth_dir).await;
    signer.map_err(|why| End::of(format!("its sign-in could not be used: {why}")))
}

async fn stdio(name: &str, command: Command, groups: &Groups, heard: Heard) -> Result<Connection, End> {
    let started = accompany(groups, command).await;
    let (companion, Pipes { stdin, stdout, stderr }) = started.map_err(|error| End::of(error.to_string()))?;
    let program = Program { companion, stderr: Stderr::read(stderr, name.to_owned()) };
    let shaken = Handshake::default();
    match serve((Overlong::new(stdout, shaken.clone()), stdin), heard).await {
        Ok(served) => {
            shaken.over();
            Ok(Connection::new(served, Some(program)))
        }
        Err(error) if let Some(why) = shaken.fault() => {
            tracing::debug!(%error, "a program never stopped answering");
            Err(End { why, ..program.end().await })
        }
        Err(ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. }) => {
            let end = program.end().await;
            Err(End { why: format!("it ended before it answered, with {}", end.why), ..end })
        }
        Err(error) => Err(End { why: handshake(&error), ..program.end().await }),
    }
}

/// A handshake that was made.
struct Served {
    running: RunningService<RoleClient, Heard>,
    stop: DropGuard,
}

async fn serve<T, E, A>(transport: T, heard: Heard) -> Result<Served, ClientInitializeError>
where
    T: IntoTransport<RoleClient, E, A>,
    E: Error + Send + Sync + 'static,
{
    let stop = CancellationToken::new();
    let running = serve_client_with_ct(heard, transport, stop.clone()).await?;
    Ok(Served { running, stop: stop.drop_guard() })
}

impl Connection {
    fn new(served: Served, program: Option<Program>) -> Self {
        let Served { running, stop } = served;
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
    pub(super) fn link(&self) -> Link {
        Link { peer: self.peer.clone(), heard: self.heard.clone() }
    }

    /// Waits until the other side has gone, whichever sign of it comes first.
    pub(super) async fn gone(&mut self) {
        let Some(program) = &mut self.program else {
            return self.over.cancelled().await;
        };
        tokio::select! {
            () = self.over.cancelled() => return,
            _ = program.companion.ended() => {}
        }
        // It may have answered before it went.
        let _ = timeout(LAST_WORDS, self.over.cancelled()).await;
    }

    /// Ends what is left of it and says how it ended.
    pub(super) async fn end(self) -> End {
        drop(self.stop);
        let _ = timeout(LAST_WORDS, self.over.cancelled()).await;
        match self.program {
            Some(program) => program.end().await,
            None => End::of("the connection was closed"),
        }
    }
}

impl Program {
    async fn end(self) -> End {
        let why = match self.companion.end().await {
            Some(Ended::Exited(code)) => format!("exit code {code}"),
            Some(Ended::Signalled(signal)) => format!("signal {signal}"),
            Some(Ended::TimedOut | Ended::Cancelled) | None => "no exit code".to_owned(),
        };
        End { why, said: self.stderr.end().await }
    }
}

/// Says why a server behind an address was not to be had.
fn refusal(error: &ClientInitializeError, server: &McpServer) -> String {
    let why = handshake(error);
    // Not every server names its way to sign in.
    let knows_us_not = error.is_authorization_required() || why.starts_with("it answered HTTP 401");
    if knows_us_not { http::wants_to_know(server) } else { why }
}

/// Says why there was no handshake, without the address: that may hold a key.
fn handshake(error: &ClientInitializeError) -> String {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the SDK may add to its errors")]
    match error {
        ClientInitializeError::JsonRpcError(refused) => format!("it refused: {}", title(&refused.message)),
        ClientInitializeError::ConnectionClosed(_) => "the connection was closed".to_owned(),
        ClientInitializeError::TransportError { error, .. } => cause(error.error.as_ref()),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            "it speaks no version of MCP that is known here".to_owned()
        }
        _ => "its answer is not MCP".to_owned(),
    }
}

/// Says what went wrong with a request: the deepest reason, for those above name the address.
pub(super) fn cause(error: &(dyn Error + 'static)) -> String {
    let mut deepest = error;
    loop {
        let wrapped = deepest.downcast_ref::<StreamableHttpError<reqwest::Error>>();
        let below = match wrapped {
            Some(StreamableHttpError::Client(request)) => Some(request as &(dyn Error + 'static)),
            Some(StreamableHttpError::UnexpectedServerResponse(answer)) => {
                return format!("it answered {}", title(answer.trim_end_matches([' ', ':'])));
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
        None => title(&deepest.to_string()),
    }
}
