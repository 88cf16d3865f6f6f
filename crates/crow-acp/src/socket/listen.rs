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
    Admission, PING, SocketDoor,
    carry::{Counted, carry},
    config,
    door::is_called_rightly,
    ends,
    farewell::Farewell,
    visitors::{Knock, VisitLimits, receive_visitors},
};
use crate::transport::Lines;

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
pub async fn listen<F>(
    door: SocketDoor,
    cut: CancellationToken,
    serve: impl Fn(Lines) -> F + Send + Sync + 'static,
) where
    F: Future<Output = Farewell> + Send + 'static,
{
    listen_with(door, cut, (PING, VisitLimits::KNOCK), serve).await;
}

pub(super) async fn listen_with<F>(
    door: SocketDoor,
    cut: CancellationToken,
    (ping, knock_max): (Duration, Duration),
    serve: impl Fn(Lines) -> F + Send + Sync + 'static,
) where
    F: Future<Output = Farewell> + Send + 'static,
{
    let SocketDoor { listener, name, admission } = door;
    let places = Arc::new(Semaphore::new(CLIENTS_MAX));
    let keeper = Arc::new(Doorkeeper { name, admission, places, ping, cut: cut.clone() });
    let serve = Arc::new(serve);
    let limits = VisitLimits { knock: knock_max, goodbye: LAST_WORDS };
    receive_visitors(listener, &cut, limits, |stream, knock| {
        let (keeper, serve) = (keeper.clone(), serve.clone());
        async move { keeper.visit(stream, knock, serve.as_ref()).await }
    })
    .await;
}

struct Doorkeeper {
    name: Option<String>,
    admission: Admission,
    places: Arc<Semaphore>,
    ping: Duration,
    cut: CancellationToken,
}

/// A client that was let in, with its place.
struct Admitted {
    upgrade: OnUpgrade,
    place: OwnedSemaphorePermit,
}

type Plain = TokioIo<Counted<TcpStream>>;

impl Doorkeeper {
    async fn visit<F>(self: Arc<Self>, stream: TcpStream, knock: Knock, serve: &impl Fn(Lines) -> F)
    where
        F: Future<Output = Farewell>,
    {
        let Some(Some((socket, _place))) = knock.hear(self.admit(stream)).await else { return };
        let (lines, ends) = ends();
        let (say, said) = oneshot::channel();
        let farewell = async { said.await.unwrap_or(Farewell::Over) };
        let (ping, cut) = (self.ping, self.cut.clone());
        let carrying = async move { carry(socket, ends, ping, farewell, &cut).await };
        let carried = AbortOnDropHandle::new(tokio::spawn(carrying));
        // A client that is gone is told nothing.
        let _ = say.send(serve(lines).await);
        if let Err(error) = carried.await {
            tracing::error!(%error, "a connection ended in a fault of ours");
        }
    }

    /// Hears what a visitor wants, and shakes hands.
    async fn admit(
        &self,
        stream: TcpStream,
    ) -> Option<(WebSocketStream<Counted<TcpStream>>, OwnedSemaphorePermit)> {
        // Without it each message waits for the acknowledgement of the one before.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection will be slow");
        }
        let (admit, mut admitted) = mpsc::channel(1);
        let service = service_fn(|request| {
            let response = self.answer(request, &admit).unwrap_or_else(Refusal::response);
            std::future::ready(Ok::<_, Infallible>(response))
        });
        let mut http = http1::Builder::new();
        http.max_buf_size(HEAD_BYTES_MAX);
        let io: Plain = TokioIo::new(Counted::new(stream));
        if let Err(error) = http.serve_connection(io, service).with_upgrades().await {
            tracing::debug!(%error, "a visitor did not say what it wants");
        }
        let Admitted { upgrade, place } = admitted.try_recv().ok()?;
        let parts = upgrade.await.ok()?.downcast::<Plain>().ok()?;
        let (stream, early) = (parts.io.into_inner(), parts.read_buf.to_vec());
        let socket = WebSocketStream::from_partially_read(stream, early, Role::Server, Some(config())).await;
        Some((socket, place))
    }

    /// Lets in, or says why not. The order is from what tells a stranger least to what tells it most.
    fn answer(
        &self,
        mut request: Request<Incoming>,
        admit: &mpsc::Sender<Admitted>,
    ) -> Result<Response<String>, Refusal> {
        let headers = request.headers();
        if !self.admission.has_right_origin(headers) {
            return Err(Refusal::new(StatusCode::FORBIDDEN, "pages in browsers are not let in"));
        }
        if !is_called_rightly(headers, self.name.as_deref()) {
            return Err(Refusal::new(StatusCode::FORBIDDEN, "this server does not go by that name"));
        }
        if self.admission.token.as_ref().is_some_and(|token| !token.is_in(headers)) {
            let refusal = Refusal::new(StatusCode::UNAUTHORIZED, "this server wants its token");
            return Err(refusal.with(header::WWW_AUTHENTICATE, "Bearer"));
        }
        if self.admission.path.as_ref().is_some_and(|path| request.uri().path() != path) {
            return Err(Refusal::new(StatusCode::NOT_FOUND, "the agent is at another path"));
        }
        if request.method() != Method::GET {
            let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "the agent is reached with GET");
            return Err(refusal.with(header::ALLOW, "GET"));
        }
        let Ok(mut response) = create_response_with_body(&request, String::new) else {
            let refusal = Refusal::new(StatusCode::UPGRADE_REQUIRED, "the agent speaks over WebSocket 13");
            return Err(refusal.with(header::UPGRADE, "websocket"));
        };
        let Ok(id) = connection_id() else {
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the system has no random numbers"));
        };
        response.headers_mut().insert("acp-connection-id", id);
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many clients"));
        };
        // A connection that was let in asks no more.
        let _ = admit.try_send(Admitted { upgrade: upgrade::on(&mut request), place });
        Ok(response)
    }
}

/// Why somebody is not let in.
struct Refusal {
    status: StatusCode,
    why: &'static str,
    header: Option<(HeaderName, &'static str)>,
}

impl Refusal {
    fn new(status: StatusCode, why: &'static str) -> Self {
        Self { status, why, header: None }
    }

    fn with(self, name: HeaderName, value: &'static str) -> Self {
        Self { header: Some((name, value)), ..self }
    }

    fn response(self) -> Response<String> {
        let mut response = Response::new(format!("{}\n", self.why));
        *response.status_mut() = self.status;
        let close = (header::CONNECTION, "close");
        for (name, value) in self.header.into_iter().chain([close]) {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

fn connection_id() -> io::Result<HeaderValue> {
    let mut bytes = [0; ID_BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let id: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::from_str(&id).map_err(io::Error::other)
}
