//! Streamable HTTP: who may come in. What is said inside is the SDK's and the host's.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use crow_acp::Token;
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService,
    session::local::{LocalSessionManager, SessionConfig},
};
use tokio::{net::TcpListener, time::sleep};
use tokio_util::sync::CancellationToken;

use super::{
    McpServeError, Offer,
    host::{Folders, Host},
};

/// Where clients come in.
const PATH: &str = "/mcp";

/// What one request may carry: a file to write, with room for its escapes.
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Clients at the same time; each has a queue.
const SESSIONS_MAX: usize = 64;

/// A client that says nothing for so long is gone.
const IDLE_MAX: Duration = Duration::from_secs(30 * 60);

/// What is under way gets this long when everything ends; who never finishes a request keeps nobody.
const GOODBYE: Duration = Duration::from_secs(1);

/// A door with its key.
#[derive(Debug)]
pub struct Entrance {
    /// Where it is.
    pub listener: TcpListener,
    /// What whoever comes in has to say: `Authorization: Bearer` and this.
    pub token: Token,
}

impl Entrance {
    /// The address that clients are told.
    pub fn url(&self) -> std::io::Result<String> {
        Ok(format!("http://{}{PATH}", self.listener.local_addr()?))
    }
}

/// Serves every client that knows the token, until `cut` says so.
pub async fn serve_http(
    offer: Offer,
    entrance: Entrance,
    cut: CancellationToken,
) -> Result<(), McpServeError> {
    let Entrance { listener, token } = entrance;
    let tools = offer.tools.clone();
    let here = listener.local_addr()?;
    let mut sessions = LocalSessionManager::default();
    sessions.session_config = session_config();
    let sessions = Arc::new(sessions);
    let host = Host::new(Arc::new(offer), Folders::Ours);
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts(here))
        .with_allowed_origins(["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"])
        .with_max_request_body_bytes(BODY_BYTES_MAX)
        .with_cancellation_token(cut.clone());
    let service = StreamableHttpService::new(move || Ok(host.clone()), sessions.clone(), config);
    let doorkeeper = Arc::new(Doorkeeper { token, sessions });
    let app =
        Router::new().route_service(PATH, service).layer(middleware::from_fn_with_state(doorkeeper, let_in));
    let served = axum::serve(listener, app).with_graceful_shutdown({
        let cut = cut.clone();
        async move { cut.cancelled().await }
    });
    let served = tokio::select! {
        served = served.into_future() => served,
        () = async { cut.cancelled().await; sleep(GOODBYE).await } => Ok(()),
    };
    tools.stop();
    Ok(served?)
}

fn session_config() -> SessionConfig {
    let mut config = SessionConfig::default();
    config.keep_alive = Some(IDLE_MAX);
    config
}

/// Every name under which a client on this machine may call, and the very address: a page in a browser that was lured
/// here by another name is sent away.
fn hosts(here: SocketAddr) -> Vec<String> {
    vec!["localhost".into(), "127.0.0.1".into(), "::1".into(), here.ip().to_string()]
}

struct Doorkeeper {
    token: Token,
    sessions: Arc<LocalSessionManager>,
}

async fn let_in(State(doorkeeper): State<Arc<Doorkeeper>>, request: Request<Body>, next: Next) -> Response {
    if !doorkeeper.token.is_in(request.headers()) {
        let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
        return (StatusCode::UNAUTHORIZED, challenge, "this server wants its token\n").into_response();
    }
    let is_new = !request.headers().contains_key("mcp-session-id");
    if is_new && doorkeeper.sessions.sessions.read().await.len() >= SESSIONS_MAX {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many clients\n").into_response();
    }
    next.run(request).await
}
