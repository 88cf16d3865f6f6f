//! Streamable HTTP: who may come in. What is said inside is the SDK's and the host's.

use std::{
    convert::Infallible,
    net::SocketAddr,
    pin::pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use crow_acp::{BearerToken, ConnectionLimits, PendingConnection, accept_connections};
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, combinators::BoxBody};
use hyper::{
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService,
    session::local::{LocalSessionManager, SessionConfig},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_util::sync::CancellationToken;

use super::{
    McpServeConfig, McpServeError,
    handler::{RootsPolicy, ToolServerHandler},
};

/// Where clients come in.
const PATH: &str = "/mcp";

/// What one request may carry: a file to write, with room for its escapes.
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Clients at the same time; each has a queue.
const SESSIONS_MAX: usize = 64;

/// Connections that brought the token; a client has a few at a time.
const CONNECTIONS_MAX: usize = 4 * SESSIONS_MAX;

/// What one connection has read and nobody has taken yet: a head with what proxies add, and a piece of a body.
const BUFFER_BYTES_MAX: usize = 64 * 1024;

/// A client that says nothing for so long is gone.
const IDLE_MAX: Duration = Duration::from_secs(30 * 60);

/// What is under way gets this long when everything ends; who never finishes a request keeps nobody.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

type HttpResponse = Response<BoxBody<Bytes, Infallible>>;

/// A door with its key.
#[derive(Debug)]
pub struct McpHttpEndpoint {
    /// Where it is.
    pub listener: TcpListener,
    /// What whoever comes in has to say: `Authorization: Bearer` and this.
    pub token: BearerToken,
}

impl McpHttpEndpoint {
    /// The address that clients are told.
    pub fn url(&self) -> std::io::Result<String> {
        Ok(format!("http://{}{PATH}", self.listener.local_addr()?))
    }
}

/// Serves every client that knows the token, until `cut` says so.
pub async fn serve_http(
    config: McpServeConfig,
    endpoint: McpHttpEndpoint,
    cancel: CancellationToken,
) -> Result<(), McpServeError> {
    let McpHttpEndpoint { listener, token } = endpoint;
    let tools = config.tools.clone();
    let address = listener.local_addr()?;
    let mut sessions = LocalSessionManager::default();
    sessions.session_config = session_config();
    let sessions = Arc::new(sessions);
    let handler = ToolServerHandler::new(Arc::new(config), RootsPolicy::Configured);
    let http_config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(allowed_hosts(address))
        .with_allowed_origins(["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"])
        .with_max_request_body_bytes(BODY_BYTES_MAX)
        .with_cancellation_token(cancel.clone());
    let service = StreamableHttpService::new(move || Ok(handler.clone()), sessions.clone(), http_config);
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let server = Arc::new(McpHttpServer { service, token, sessions, connections, cancel: cancel.clone() });
    let limits = ConnectionLimits { knock: ConnectionLimits::KNOCK, goodbye: SHUTDOWN_TIMEOUT };
    accept_connections(listener, &cancel, limits, |stream, pending| {
        let server = server.clone();
        async move { server.serve_connection(stream, pending).await }
    })
    .await;
    tools.stop_programs();
    Ok(())
}

fn session_config() -> SessionConfig {
    let mut http_config = SessionConfig::default();
    http_config.keep_alive = Some(IDLE_MAX);
    http_config
}

/// Every name under which a client on this machine may call, and the very address: a page in a browser that was lured
/// here by another name is sent away.
fn allowed_hosts(address: SocketAddr) -> Vec<String> {
    vec!["localhost".into(), "127.0.0.1".into(), "::1".into(), address.ip().to_string()]
}

struct McpHttpServer {
    service: StreamableHttpService<ToolServerHandler, LocalSessionManager>,
    token: BearerToken,
    sessions: Arc<LocalSessionManager>,
    connections: Arc<Semaphore>,
    cancel: CancellationToken,
}

/// A connection that has brought the token, with its place; until then it is a stranger's.
#[derive(Default)]
struct ConnectionAdmission {
    permit: OnceLock<OwnedSemaphorePermit>,
    is_authenticated: CancellationToken,
}

impl McpHttpServer {
    async fn serve_connection(&self, stream: TcpStream, pending: PendingConnection) {
        // Without it each message waits for the acknowledgement of the one before.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection will be slow");
        }
        let admission = ConnectionAdmission::default();
        let service = service_fn(|request| async {
            Ok::<_, Infallible>(
                self.handle_request(request, &admission).await.unwrap_or_else(|refusal| refusal),
            )
        });
        let mut http = http1::Builder::new();
        http.max_buf_size(BUFFER_BYTES_MAX);
        let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
        let authenticated = pending.await_request(async {
            tokio::select! {
                served = &mut connection => Some(served),
                () = admission.is_authenticated.cancelled() => None,
            }
        });
        let served = match authenticated.await {
            Some(None) => tokio::select! {
                served = &mut connection => served,
                () = self.cancel.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            },
            Some(Some(served)) => served,
            None => return,
        };
        if let Err(error) = served {
            tracing::debug!(%error, "a client left in the middle");
        }
    }

    async fn handle_request(
        &self,
        request: Request<Incoming>,
        admission: &ConnectionAdmission,
    ) -> Result<HttpResponse, HttpResponse> {
        if !self.token.is_in_headers(request.headers()) {
            let mut response = error_response(StatusCode::UNAUTHORIZED, "this server wants its token");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return Err(response);
        }
        if admission.permit.get().is_none() {
            let permit = self.connections.clone().try_acquire_owned();
            let permit = permit
                .map_err(|_| error_response(StatusCode::SERVICE_UNAVAILABLE, "too many connections"))?;
            // A connection asks one thing after the other.
            drop(admission.permit.set(permit));
            admission.is_authenticated.cancel();
        }
        if request.uri().path() != PATH {
            return Err(error_response(StatusCode::NOT_FOUND, "the tools are at /mcp"));
        }
        let is_new = !request.headers().contains_key("mcp-session-id");
        if is_new && self.sessions.sessions.read().await.len() >= SESSIONS_MAX {
            return Err(error_response(StatusCode::SERVICE_UNAVAILABLE, "too many clients"));
        }
        Ok(self.service.handle(request).await)
    }
}

/// Says why somebody is not served, and ends the connection.
fn error_response(status: StatusCode, reason: &'static str) -> HttpResponse {
    let mut response = Response::new(Full::new(Bytes::from(format!("{reason}\n"))).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}
