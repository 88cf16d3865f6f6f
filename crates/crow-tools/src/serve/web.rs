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
    host::{RootsPolicy, ToolServerHandler},
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
const GOODBYE: Duration = Duration::from_secs(1);

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
    offer: McpServeConfig,
    entrance: McpHttpEndpoint,
    cut: CancellationToken,
) -> Result<(), McpServeError> {
    let McpHttpEndpoint { listener, token } = entrance;
    let tools = offer.tools.clone();
    let here = listener.local_addr()?;
    let mut sessions = LocalSessionManager::default();
    sessions.session_config = session_config();
    let sessions = Arc::new(sessions);
    let host = ToolServerHandler::new(Arc::new(offer), RootsPolicy::Ours);
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(allowed_hosts(here))
        .with_allowed_origins(["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"])
        .with_max_request_body_bytes(BODY_BYTES_MAX)
        .with_cancellation_token(cut.clone());
    let service = StreamableHttpService::new(move || Ok(host.clone()), sessions.clone(), config);
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let server = Arc::new(McpHttpServer { service, token, sessions, connections, cut: cut.clone() });
    let limits = ConnectionLimits { knock: ConnectionLimits::KNOCK, goodbye: GOODBYE };
    accept_connections(listener, &cut, limits, |stream, knock| {
        let server = server.clone();
        async move { server.serve_connection(stream, knock).await }
    })
    .await;
    tools.stop_programs();
    Ok(())
}

fn session_config() -> SessionConfig {
    let mut config = SessionConfig::default();
    config.keep_alive = Some(IDLE_MAX);
    config
}

/// Every name under which a client on this machine may call, and the very address: a page in a browser that was lured
/// here by another name is sent away.
fn allowed_hosts(here: SocketAddr) -> Vec<String> {
    vec!["localhost".into(), "127.0.0.1".into(), "::1".into(), here.ip().to_string()]
}

struct McpHttpServer {
    service: StreamableHttpService<ToolServerHandler, LocalSessionManager>,
    token: BearerToken,
    sessions: Arc<LocalSessionManager>,
    connections: Arc<Semaphore>,
    cut: CancellationToken,
}

/// A connection that has brought the token, with its place; until then it is a stranger's.
#[derive(Default)]
struct ConnectionAdmission {
    place: OnceLock<OwnedSemaphorePermit>,
    is_given: CancellationToken,
}

impl McpHttpServer {
    async fn serve_connection(&self, stream: TcpStream, knock: PendingConnection) {
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
        let knocked = knock.await_request(async {
            tokio::select! {
                served = &mut connection => Some(served),
                () = admission.is_given.cancelled() => None,
            }
        });
        let served = match knocked.await {
            Some(None) => tokio::select! {
                served = &mut connection => served,
                () = self.cut.cancelled() => {
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
            let mut refused = error_response(StatusCode::UNAUTHORIZED, "this server wants its token");
            refused.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return Err(refused);
        }
        if admission.place.get().is_none() {
            let place = self.connections.clone().try_acquire_owned();
            let place =
                place.map_err(|_| error_response(StatusCode::SERVICE_UNAVAILABLE, "too many connections"))?;
            // A connection asks one thing after the other.
            drop(admission.place.set(place));
            admission.is_given.cancel();
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
fn error_response(status: StatusCode, why: &'static str) -> HttpResponse {
    let mut response = Response::new(Full::new(Bytes::from(format!("{why}\n"))).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}
