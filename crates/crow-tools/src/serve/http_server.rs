//! Streamable HTTP server: authentication and limits. The SDK and the handler process the messages.

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

const PATH: &str = "/mcp";

/// Limit of a request body: a file to write, with its JSON escapes.
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Concurrent clients; each has a queue.
const SESSIONS_MAX: usize = 64;

/// Authenticated connections; a client has a few at a time.
const CONNECTIONS_MAX: usize = 4 * SESSIONS_MAX;

/// Unprocessed bytes of one connection: a head with proxies' headers, and a piece of a body.
const BUFFER_BYTES_MAX: usize = 64 * 1024;

/// A client that is silent for this long is disconnected.
const IDLE_MAX: Duration = Duration::from_secs(30 * 60);

/// Time for running requests at shutdown; a client that never completes a request must not delay it.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

type HttpResponse = Response<BoxBody<Bytes, Infallible>>;

/// An HTTP endpoint with its token.
#[derive(Debug)]
pub struct McpHttpEndpoint {
    /// The listening socket.
    pub listener: TcpListener,
    /// The token that clients send as `Authorization: Bearer`.
    pub token: BearerToken,
}

impl McpHttpEndpoint {
    /// The endpoint's URL.
    pub fn url(&self) -> std::io::Result<String> {
        Ok(format!("http://{}{PATH}", self.listener.local_addr()?))
    }
}

/// Serves all clients with the token, until `cancel` is cancelled.
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
    let limits = ConnectionLimits {
        handshake_timeout: ConnectionLimits::HANDSHAKE_TIMEOUT,
        shutdown_timeout: SHUTDOWN_TIMEOUT,
    };
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

/// The host names of this machine and the bound address: a browser page under any other host name is rejected (DNS
/// rebinding).
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

/// State of a connection: authenticated once a request had the token, with a permit from then on.
#[derive(Default)]
struct ConnectionAdmission {
    permit: OnceLock<OwnedSemaphorePermit>,
    is_authenticated: CancellationToken,
}

impl McpHttpServer {
    async fn serve_connection(&self, stream: TcpStream, pending: PendingConnection) {
        // Otherwise each message waits for the acknowledgement of the previous one.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "could not disable Nagle's algorithm for a connection");
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
        let served = pending
            .serve_requests(connection.as_mut(), &admission.is_authenticated, &self.cancel, |connection| {
                connection.graceful_shutdown();
            })
            .await;
        if let Some(Err(error)) = served {
            tracing::debug!(%error, "a client disconnected early");
        }
    }

    async fn handle_request(
        &self,
        request: Request<Incoming>,
        admission: &ConnectionAdmission,
    ) -> Result<HttpResponse, HttpResponse> {
        if !self.token.is_in_headers(request.headers()) {
            let mut response = error_response(StatusCode::UNAUTHORIZED, "this server requires its token");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return Err(response);
        }
        if admission.permit.get().is_none() {
            let permit = self.connections.clone().try_acquire_owned();
            let permit = permit
                .map_err(|_| error_response(StatusCode::SERVICE_UNAVAILABLE, "too many connections"))?;
            // Requests on a connection are sequential.
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

/// Returns an error response that closes the connection.
fn error_response(status: StatusCode, reason: &'static str) -> HttpResponse {
    let mut response = Response::new(Full::new(Bytes::from(format!("{reason}\n"))).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}
