//! The server's end: accepts clients and passes each one's lines to a handler.

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
    admission::{AdmissionPolicy, SocketListener, is_host_allowed},
    close_reason::CloseReason,
    connections::{ConnectionLimits, PendingConnection, accept_connections},
    limits::{PING_INTERVAL, websocket_config},
    message_pump::{CountingStream, carry_messages},
    queue::queued_transport,
};
use crate::transport::LineTransport;

/// Simultaneous clients; each has an agent.
pub(super) const CLIENTS_MAX: usize = 64;

/// The size of a request's head: a token, and the headers of proxies.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// The time for each client to finish at shutdown: the agent's process, then the close frame.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(6);

/// The length of a connection ID.
const CONNECTION_ID_BYTES: usize = 16;

/// Accepts every client that satisfies the policy, until `cancel`; `serve` gets each one's lines, must end when they
/// do or on `cancel`, and returns the reason for closing.
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
    };
    serve_socket_with(socket, cancel, timing, serve).await;
}

/// The server's times, which tests shorten.
#[derive(Debug, Clone, Copy)]
pub(super) struct SocketServerTiming {
    pub(super) ping_interval: Duration,
    pub(super) handshake_timeout: Duration,
}

pub(super) async fn serve_socket_with<F>(
    socket: SocketListener,
    cancel: CancellationToken,
    timing: SocketServerTiming,
    serve: impl Fn(LineTransport) -> F + Send + Sync + 'static,
) where
    F: Future<Output = CloseReason> + Send + 'static,
{
    let SocketListener { listener, name, admission } = socket;
    let client_slots = Arc::new(Semaphore::new(CLIENTS_MAX));
    let acceptor = Arc::new(SocketAcceptor {
        name,
        admission,
        client_slots,
        ping_interval: timing.ping_interval,
        cancel: cancel.clone(),
    });
    let serve = Arc::new(serve);
    let limits =
        ConnectionLimits { handshake_timeout: timing.handshake_timeout, shutdown_timeout: SHUTDOWN_TIMEOUT };
    accept_connections(listener, &cancel, limits, |stream, pending| {
        let (acceptor, serve) = (acceptor.clone(), serve.clone());
        async move { acceptor.handle_connection(stream, pending, serve.as_ref()).await }
    })
    .await;
}

struct SocketAcceptor {
    name: Option<String>,
    admission: AdmissionPolicy,
    client_slots: Arc<Semaphore>,
    ping_interval: Duration,
    cancel: CancellationToken,
}

/// An accepted client, with its permit.
struct AdmittedClient {
    upgrade: OnUpgrade,
    slot: OwnedSemaphorePermit,
}

type PlainStream = TokioIo<CountingStream<TcpStream>>;

impl SocketAcceptor {
    async fn handle_connection<F>(
        self: Arc<Self>,
        stream: TcpStream,
        pending: PendingConnection,
        serve: &impl Fn(LineTransport) -> F,
    ) where
        F: Future<Output = CloseReason>,
    {
        let Some(Some((socket, _place))) = pending.await_request(self.accept_handshake(stream)).await else {
            return;
        };
        let (lines, queues) = queued_transport();
        let (close_sender, close_receiver) = oneshot::channel();
        let close_reason = async { close_receiver.await.unwrap_or(CloseReason::Normal) };
        let (ping_interval, cancel) = (self.ping_interval, self.cancel.clone());
        let pump = async move { carry_messages(socket, queues, ping_interval, close_reason, &cancel).await };
        let pump_task = AbortOnDropHandle::new(tokio::spawn(pump));
        // A client that has disconnected gets no message.
        let _ = close_sender.send(serve(lines).await);
        if let Err(error) = pump_task.await {
            tracing::error!(%error, "a connection ended with an internal error");
        }
    }

    /// Reads the request of a new connection, and answers the handshake.
    async fn accept_handshake(
        &self,
        stream: TcpStream,
    ) -> Option<(WebSocketStream<CountingStream<TcpStream>>, OwnedSemaphorePermit)> {
        // Without it each message waits for the acknowledgement of the previous one.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "could not set TCP_NODELAY");
        }
        let (admitted_sender, mut admitted) = mpsc::channel(1);
        let service = service_fn(|request| {
            let response =
                self.check_request(request, &admitted_sender).unwrap_or_else(UpgradeRefusal::into_response);
            std::future::ready(Ok::<_, Infallible>(response))
        });
        let mut http = http1::Builder::new();
        http.max_buf_size(HEAD_BYTES_MAX);
        let io: PlainStream = TokioIo::new(CountingStream::new(stream));
        if let Err(error) = http.serve_connection(io, service).with_upgrades().await {
            tracing::debug!(%error, "a client sent no complete request");
        }
        let AdmittedClient { upgrade, slot } = admitted.try_recv().ok()?;
        let parts = upgrade.await.ok()?.downcast::<PlainStream>().ok()?;
        let (stream, read_ahead) = (parts.io.into_inner(), parts.read_buf.to_vec());
        let socket =
            WebSocketStream::from_partially_read(stream, read_ahead, Role::Server, Some(websocket_config()))
                .await;
        Some((socket, slot))
    }

    /// Accepts or rejects a request. The checks are ordered so that a stranger learns as little as possible.
    fn check_request(
        &self,
        mut request: Request<Incoming>,
        admitted_sender: &mpsc::Sender<AdmittedClient>,
    ) -> Result<Response<String>, UpgradeRefusal> {
        let headers = request.headers();
        if !self.admission.is_origin_allowed(headers) {
            return Err(UpgradeRefusal::new(StatusCode::FORBIDDEN, "browser pages are not permitted"));
        }
        if !is_host_allowed(headers, self.name.as_deref()) {
            return Err(UpgradeRefusal::new(
                StatusCode::FORBIDDEN,
                "this server does not have that host name",
            ));
        }
        if self.admission.token.as_ref().is_some_and(|token| !token.is_in_headers(headers)) {
            let refusal = UpgradeRefusal::new(StatusCode::UNAUTHORIZED, "this server requires its token");
            return Err(refusal.with_header(header::WWW_AUTHENTICATE, "Bearer"));
        }
        if self.admission.path.as_ref().is_some_and(|path| request.uri().path() != path) {
            return Err(UpgradeRefusal::new(StatusCode::NOT_FOUND, "the agent is at another path"));
        }
        if request.method() != Method::GET {
            let refusal = UpgradeRefusal::new(StatusCode::METHOD_NOT_ALLOWED, "the agent accepts GET only");
            return Err(refusal.with_header(header::ALLOW, "GET"));
        }
        let Ok(mut response) = create_response_with_body(&request, String::new) else {
            let refusal =
                UpgradeRefusal::new(StatusCode::UPGRADE_REQUIRED, "the agent requires WebSocket version 13");
            return Err(refusal.with_header(header::UPGRADE, "websocket"));
        };
        let Ok(id) = new_connection_id() else {
            return Err(UpgradeRefusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "the system returned no random numbers",
            ));
        };
        response.headers_mut().insert("acp-connection-id", id);
        let Ok(slot) = self.client_slots.clone().try_acquire_owned() else {
            return Err(UpgradeRefusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many clients"));
        };
        // An accepted connection sends no further request.
        let _ = admitted_sender.try_send(AdmittedClient { upgrade: upgrade::on(&mut request), slot });
        Ok(response)
    }
}

/// The reason for a rejection.
struct UpgradeRefusal {
    status: StatusCode,
    reason: &'static str,
    header: Option<(HeaderName, &'static str)>,
}

impl UpgradeRefusal {
    fn new(status: StatusCode, reason: &'static str) -> Self {
        Self { status, reason, header: None }
    }

    fn with_header(self, name: HeaderName, value: &'static str) -> Self {
        Self { header: Some((name, value)), ..self }
    }

    fn into_response(self) -> Response<String> {
        let mut response = Response::new(format!("{}\n", self.reason));
        *response.status_mut() = self.status;
        let close = (header::CONNECTION, "close");
        for (name, value) in self.header.into_iter().chain([close]) {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

fn new_connection_id() -> io::Result<HeaderValue> {
    let mut bytes = [0; CONNECTION_ID_BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let id: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::from_str(&id).map_err(io::Error::other)
}
