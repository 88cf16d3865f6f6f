//! The server's end: lets clients in one by one and hands each one's lines to whoever serves them.

use std::{convert::Infallible, io, sync::Arc, time::Duration};

use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::{
    body::Incoming,
    server::conn::http1,
    service::service_fn,
    upgrade::{self, OnUpgrade},
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpStream,
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{handshake::server::create_response_with_body, protocol::Role},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    AdmissionPolicy, PING, SocketListener,
    carry::{CountingStream, carry_messages},
    door::is_host_allowed,
    farewell::CloseReason,
    queued_transport,
    visitors::{ConnectionLimits, PendingConnection, accept_connections},
    websocket_config,
};
use crate::transport::LineTransport;

/// Clients at the same time; each has an agent.
pub(super) const CLIENTS_MAX: usize = 64;

/// The head of a request: a token, and whatever proxies add.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// What everyone who is served gets to end when everything ends: an agent's program, then the goodbye.
const LAST_WORDS: Duration = Duration::from_secs(6);

/// How long an id of a connection is.
const ID_BYTES: usize = 16;

/// Lets in every client that knows the token, until `cut` says so; `serve` gets each one's lines, has to end when they
/// do or when `cut` says so, and tells what to say at the end.
pub async fn serve_socket<F>(
    door: SocketListener,
    cut: CancellationToken,
    serve: impl Fn(LineTransport) -> F + Send + Sync + 'static,
) where
    F: Future<Output = CloseReason> + Send + 'static,
{
    serve_socket_with(door, cut, (PING, ConnectionLimits::KNOCK), serve).await;
}

pub(super) async fn serve_socket_with<F>(
    door: SocketListener,
    cut: CancellationToken,
    (ping, knock_max): (Duration, Duration),
    serve: impl Fn(LineTransport) -> F + Send + Sync + 'static,
) where
    F: Future<Output = CloseReason> + Send + 'static,
{
    let SocketListener { listener, name, admission } = door;
    let places = Arc::new(Semaphore::new(CLIENTS_MAX));
    let keeper = Arc::new(SocketAcceptor { name, admission, places, ping, cut: cut.clone() });
    let serve = Arc::new(serve);
    let limits = ConnectionLimits { knock: knock_max, goodbye: LAST_WORDS };
    accept_connections(listener, &cut, limits, |stream, knock| {
        let (keeper, serve) = (keeper.clone(), serve.clone());
        async move { keeper.handle_connection(stream, knock, serve.as_ref()).await }
    })
    .await;
}

struct SocketAcceptor {
    name: Option<String>,
    admission: AdmissionPolicy,
    places: Arc<Semaphore>,
    ping: Duration,
    cut: CancellationToken,
}

/// A client that was let in, with its place.
struct AdmittedClient {
    upgrade: OnUpgrade,
    place: OwnedSemaphorePermit,
}

type PlainStream = TokioIo<CountingStream<TcpStream>>;

impl SocketAcceptor {
    async fn handle_connection<F>(
        self: Arc<Self>,
        stream: TcpStream,
        knock: PendingConnection,
        serve: &impl Fn(LineTransport) -> F,
    ) where
        F: Future<Output = CloseReason>,
    {
        let Some(Some((socket, _place))) = knock.await_request(self.accept_handshake(stream)).await else {
            return;
        };
        let (lines, ends) = queued_transport();
        let (say, said) = oneshot::channel();
        let farewell = async { said.await.unwrap_or(CloseReason::Over) };
        let (ping, cut) = (self.ping, self.cut.clone());
        let carrying = async move { carry_messages(socket, ends, ping, farewell, &cut).await };
        let carried = AbortOnDropHandle::new(tokio::spawn(carrying));
        // A client that is gone is told nothing.
        let _ = say.send(serve(lines).await);
        if let Err(error) = carried.await {
            tracing::error!(%error, "a connection ended in a fault of ours");
        }
    }

    /// Hears what a visitor wants, and shakes hands.
    async fn accept_handshake(
        &self,
        stream: TcpStream,
    ) -> Option<(WebSocketStream<CountingStream<TcpStream>>, OwnedSemaphorePermit)> {
        // Without it each message waits for the acknowledgement of the one before.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection will be slow");
        }
        let (admit, mut admitted) = mpsc::channel(1);
        let service = service_fn(|request| {
            let response = self.check_request(request, &admit).unwrap_or_else(UpgradeRefusal::into_response);
            std::future::ready(Ok::<_, Infallible>(response))
        });
        let mut http = http1::Builder::new();
        http.max_buf_size(HEAD_BYTES_MAX);
        let io: PlainStream = TokioIo::new(CountingStream::new(stream));
        if let Err(error) = http.serve_connection(io, service).with_upgrades().await {
            tracing::debug!(%error, "a visitor did not say what it wants");
        }
        let AdmittedClient { upgrade, place } = admitted.try_recv().ok()?;
        let parts = upgrade.await.ok()?.downcast::<PlainStream>().ok()?;
        let (stream, early) = (parts.io.into_inner(), parts.read_buf.to_vec());
        let socket =
            WebSocketStream::from_partially_read(stream, early, Role::Server, Some(websocket_config())).await;
        Some((socket, place))
    }

    /// Lets in, or says why not. The order is from what tells a stranger least to what tells it most.
    fn check_request(
        &self,
        mut request: Request<Incoming>,
        admit: &mpsc::Sender<AdmittedClient>,
    ) -> Result<Response<String>, UpgradeRefusal> {
        let headers = request.headers();
        if !self.admission.is_origin_allowed(headers) {
            return Err(UpgradeRefusal::new(StatusCode::FORBIDDEN, "pages in browsers are not let in"));
        }
        if !is_host_allowed(headers, self.name.as_deref()) {
            return Err(UpgradeRefusal::new(StatusCode::FORBIDDEN, "this server does not go by that name"));
        }
        if self.admission.token.as_ref().is_some_and(|token| !token.is_in_headers(headers)) {
            let refusal = UpgradeRefusal::new(StatusCode::UNAUTHORIZED, "this server wants its token");
            return Err(refusal.with_header(header::WWW_AUTHENTICATE, "Bearer"));
        }
        if self.admission.path.as_ref().is_some_and(|path| request.uri().path() != path) {
            return Err(UpgradeRefusal::new(StatusCode::NOT_FOUND, "the agent is at another path"));
        }
        if request.method() != Method::GET {
            let refusal =
                UpgradeRefusal::new(StatusCode::METHOD_NOT_ALLOWED, "the agent is reached with GET");
            return Err(refusal.with_header(header::ALLOW, "GET"));
        }
        let Ok(mut response) = create_response_with_body(&request, String::new) else {
            let refusal =
                UpgradeRefusal::new(StatusCode::UPGRADE_REQUIRED, "the agent speaks over WebSocket 13");
            return Err(refusal.with_header(header::UPGRADE, "websocket"));
        };
        let Ok(id) = new_connection_id() else {
            return Err(UpgradeRefusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "the system has no random numbers",
            ));
        };
        response.headers_mut().insert("acp-connection-id", id);
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            return Err(UpgradeRefusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many clients"));
        };
        // A connection that was let in asks no more.
        let _ = admit.try_send(AdmittedClient { upgrade: upgrade::on(&mut request), place });
        Ok(response)
    }
}

/// Why somebody is not let in.
struct UpgradeRefusal {
    status: StatusCode,
    why: &'static str,
    header: Option<(HeaderName, &'static str)>,
}

impl UpgradeRefusal {
    fn new(status: StatusCode, why: &'static str) -> Self {
        Self { status, why, header: None }
    }

    fn with_header(self, name: HeaderName, value: &'static str) -> Self {
        Self { header: Some((name, value)), ..self }
    }

    fn into_response(self) -> Response<String> {
        let mut response = Response::new(format!("{}\n", self.why));
        *response.status_mut() = self.status;
        let close = (header::CONNECTION, "close");
        for (name, value) in self.header.into_iter().chain([close]) {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

fn new_connection_id() -> io::Result<HeaderValue> {
    let mut bytes = [0; ID_BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let id: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::from_str(&id).map_err(io::Error::other)
}
