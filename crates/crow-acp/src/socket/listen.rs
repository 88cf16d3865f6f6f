//! The server's end: accepts clients and passes each one's lines to a handler.

use std::{
    convert::Infallible,
    pin::pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures_util::FutureExt as _;
use http::{HeaderValue, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Empty};
use hyper::{
    body::Incoming,
    server::conn::http1,
    service::service_fn,
    upgrade::{self, OnUpgrade},
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::TcpStream,
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{handshake::server::create_response_with_body, protocol::Role},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    admission::{AdmissionPolicy, SocketListener},
    close_reason::CloseReason,
    connections::{ConnectionLimits, PendingConnection, accept_connections},
    limits::{PING_INTERVAL, websocket_config},
    message_pump::{CountingStream, carry_messages},
    queue::queued_transport,
    refusal::RequestRefusal,
    response::{SocketResponse, new_connection_id},
    streamable_http::{HttpEndpoint, HttpEndpointConfig, ServeClient},
};
use crate::transport::LineTransport;

/// Simultaneous clients; each has an agent.
pub(super) const CLIENTS_MAX: usize = 64;

/// The size of a request's head: a token, and the headers of proxies.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// The time for each client to finish at shutdown: the agent's process, then the close frame.
pub(super) const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(6);

/// TCP connections of clients: one for each open stream and some for requests.
const TCP_CONNECTIONS_MAX: usize = 16 * CLIENTS_MAX;

/// A connection without a request is closed after this time.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// An HTTP client without any request for this long is gone: a stream that a proxy ended is opened again sooner.
const ABSENCE_TIMEOUT: Duration = Duration::from_secs(10);

/// Accepts every client that satisfies the policy, until `cancel`; `serve` gets each one's lines, must end when they
/// do or on `cancel`, and returns the reason for closing. A client uses WebSocket or streamable HTTP.
pub async fn serve_socket<F>(
    socket: SocketListener,
    cancel: CancellationToken,
    serve: impl Fn(LineTransport) -> F + Send + Sync + 'static,
) where
    F: Future<Output = CloseReason> + Send + 'static,
{
    let timing = SocketServerTiming {
        ping_interval: PING_INTERVAL,
        handshake_timeout: ConnectionLimits::HANDSHAKE_TIMEOUT,
        absence_max: ABSENCE_TIMEOUT,
    };
    serve_socket_with(socket, cancel, timing, serve).await;
}

/// The server's times, which tests shorten.
#[derive(Debug, Clone, Copy)]
pub(super) struct SocketServerTiming {
    pub(super) ping_interval: Duration,
    pub(super) handshake_timeout: Duration,
    pub(super) absence_max: Duration,
}

pub(super) async fn serve_socket_with<F>(
    socket: SocketListener,
    cancel: CancellationToken,
    timing: SocketServerTiming,
    serve: impl Fn(LineTransport) -> F + Send + Sync + 'static,
) where
    F: Future<Output = CloseReason> + Send + 'static,
{
    let client_slots = Arc::new(Semaphore::new(CLIENTS_MAX));
    let serve: ServeClient = Arc::new(move |lines| serve(lines).boxed());
    // Ends what is left with this function.
    let dropped = CancellationToken::new();
    let _dropped = dropped.clone().drop_guard();
    let endpoint = Arc::new(HttpEndpoint::new(HttpEndpointConfig {
        serve: serve.clone(),
        client_slots: client_slots.clone(),
        ping_interval: timing.ping_interval,
        absence_max: timing.absence_max,
        cancel: cancel.clone(),
        dropped,
    }));
    let http_endpoint = endpoint.clone();
    let SocketListener { listener, name, admission } = socket;
    let acceptor = Arc::new(SocketAcceptor {
        name,
        admission,
        serve,
        client_slots,
        tcp_slots: Arc::new(Semaphore::new(TCP_CONNECTIONS_MAX)),
        ping_interval: timing.ping_interval,
        cancel: cancel.clone(),
        endpoint,
    });
    let limits =
        ConnectionLimits { handshake_timeout: timing.handshake_timeout, shutdown_timeout: SHUTDOWN_TIMEOUT };
    let accepting = accept_connections(listener, &cancel, limits, |stream, pending| {
        acceptor.clone().handle_connection(stream, pending)
    });
    let http_clients = async {
        cancel.cancelled().await;
        timeout(SHUTDOWN_TIMEOUT, http_endpoint.wait()).await
    };
    // Clients that are left are dropped.
    let _ = tokio::join!(accepting, http_clients);
}

struct SocketAcceptor {
    name: Option<String>,
    admission: AdmissionPolicy,
    serve: ServeClient,
    client_slots: Arc<Semaphore>,
    tcp_slots: Arc<Semaphore>,
    ping_interval: Duration,
    cancel: CancellationToken,
    endpoint: Arc<HttpEndpoint>,
}

/// The state of a TCP connection.
struct TcpState {
    /// Its permit, from its first admitted request on.
    slot: OnceLock<OwnedSemaphorePermit>,
    is_admitted: CancellationToken,
    dropped: CancellationToken,
    upgrade_sender: mpsc::Sender<UpgradingClient>,
}

/// An accepted WebSocket client, with its permit.
struct UpgradingClient {
    upgrade: OnUpgrade,
    slot: OwnedSemaphorePermit,
}

type PlainStream = TokioIo<CountingStream<TcpStream>>;

impl SocketAcceptor {
    async fn handle_connection(self: Arc<Self>, stream: TcpStream, pending: PendingConnection) {
        let (upgrade_sender, mut upgrades) = mpsc::channel(1);
        let state = TcpState {
            slot: OnceLock::new(),
            is_admitted: CancellationToken::new(),
            dropped: CancellationToken::new(),
            upgrade_sender,
        };
        self.serve_http(stream, pending, &state).await;
        if let Ok(client) = upgrades.try_recv() {
            self.serve_websocket(client).await;
        }
    }

    /// Answers the requests of a connection until it ends or becomes a WebSocket.
    async fn serve_http(&self, stream: TcpStream, pending: PendingConnection, state: &TcpState) {
        // Without it each message waits for the acknowledgement of the previous one.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "could not set TCP_NODELAY");
        }
        let service = service_fn(|request| async {
            let response = self.answer_request(request, state).await;
            Ok::<_, Infallible>(response.unwrap_or_else(RequestRefusal::into_response))
        });
        let mut http = http1::Builder::new();
        http.max_buf_size(HEAD_BYTES_MAX).timer(TokioTimer::new()).header_read_timeout(IDLE_TIMEOUT);
        let io: PlainStream = TokioIo::new(CountingStream::new(stream));
        let mut connection = pin!(http.serve_connection(io, service).with_upgrades());
        let serving =
            pending.serve_requests(connection.as_mut(), &state.is_admitted, &self.cancel, |connection| {
                connection.graceful_shutdown();
            });
        if let Some(Some(Err(error))) = state.dropped.run_until_cancelled(serving).await {
            tracing::debug!(%error, "a client sent no complete request");
        }
    }

    async fn serve_websocket(&self, client: UpgradingClient) {
        let UpgradingClient { upgrade, slot: _slot } = client;
        let Ok(Ok(parts)) = upgrade.await.map(|upgraded| upgraded.downcast::<PlainStream>()) else { return };
        let (stream, read_ahead) = (parts.io.into_inner(), parts.read_buf.to_vec());
        let socket =
            WebSocketStream::from_partially_read(stream, read_ahead, Role::Server, Some(websocket_config()))
                .await;
        let (lines, queues) = queued_transport();
        let (close_sender, close_receiver) = oneshot::channel();
        let close_reason = async { close_receiver.await.unwrap_or(CloseReason::Normal) };
        let (ping_interval, cancel) = (self.ping_interval, self.cancel.clone());
        let pump = async move { carry_messages(socket, queues, ping_interval, close_reason, &cancel).await };
        let pump_task = AbortOnDropHandle::new(tokio::spawn(pump));
        // A client that has disconnected gets no message.
        let _ = close_sender.send((self.serve)(lines).await);
        if let Err(error) = pump_task.await {
            tracing::error!(%error, "a connection ended with an internal error");
        }
    }

    async fn answer_request(
        &self,
        request: Request<Incoming>,
        state: &TcpState,
    ) -> Result<SocketResponse, RequestRefusal> {
        self.admission.check_request(&request, self.name.as_deref())?;
        if state.slot.get().is_none() {
            let slot =
                self.tcp_slots.clone().try_acquire_owned().map_err(|_| {
                    RequestRefusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many connections")
                })?;
            // Requests on a connection are sequential.
            drop(state.slot.set(slot));
            state.is_admitted.cancel();
        }
        match is_websocket(&request) {
            true => self.upgrade_request(request, state),
            false => self.endpoint.answer_request(request, &state.dropped).await,
        }
    }

    fn upgrade_request(
        &self,
        mut request: Request<Incoming>,
        state: &TcpState,
    ) -> Result<SocketResponse, RequestRefusal> {
        let unavailable = |reason| RequestRefusal::new(StatusCode::SERVICE_UNAVAILABLE, reason);
        let empty = || Empty::new().map_err(|never: Infallible| match never {}).boxed_unsync();
        let Ok(mut response) = create_response_with_body(&request, empty) else {
            let refusal =
                RequestRefusal::new(StatusCode::UPGRADE_REQUIRED, "the agent requires WebSocket version 13");
            return Err(refusal.with_header(header::UPGRADE, "websocket"));
        };
        let id = new_connection_id().map_err(|_| unavailable("the system returned no random numbers"))?;
        response.headers_mut().insert("acp-connection-id", id);
        let slot = self.client_slots.clone().try_acquire_owned();
        let slot = slot.map_err(|_| unavailable("too many clients"))?;
        // An upgraded connection sends no further request.
        let _ = state.upgrade_sender.try_send(UpgradingClient { upgrade: upgrade::on(&mut request), slot });
        Ok(response)
    }
}

fn is_websocket(request: &Request<Incoming>) -> bool {
    let upgrade = request.headers().get(header::UPGRADE).map(HeaderValue::as_bytes).unwrap_or_default();
    request.method() == http::Method::GET && upgrade.eq_ignore_ascii_case(b"websocket")
}
