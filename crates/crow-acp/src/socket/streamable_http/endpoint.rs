//! The server's end: what each request does to its connection.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use tokio::sync::{Semaphore, oneshot};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    super::{
        close_reason::CloseReason,
        limits::MESSAGE_BYTES_MAX,
        message_pump::SILENT_PINGS_MAX,
        queue::queued_transport,
        refusal::RequestRefusal,
        response::{SocketResponse, new_connection_id},
    },
    CONNECTION_HEADER, EVENT_STREAM, JSON, SESSION_HEADER,
    connection::{AgentSide, HttpConnection, HttpTiming},
    event_body::StreamReader,
    message_head::MessageHead,
    request_body::{self, PostedMessage},
    route_table::StreamScope,
};
use crate::transport::LineTransport;

/// Creates the agent of a client.
pub(in crate::socket) type ServeClient =
    Arc<dyn Fn(LineTransport) -> BoxFuture<'static, CloseReason> + Send + Sync>;

/// The first message: capabilities. It is read before the client has an agent.
const INITIALIZE_BYTES_MAX: usize = 1024 * 1024;

const INITIALIZE_METHOD: &str = "initialize";

/// The requests that the clients of all SDKs send with their session in the header as well.
const SESSION_METHODS: [&str; 5] =
    ["session/prompt", "session/cancel", "session/close", "session/set_mode", "session/set_config_option"];

/// The parts that an endpoint shares with the rest of the server.
pub(in crate::socket) struct HttpEndpointConfig {
    pub(in crate::socket) serve: ServeClient,
    pub(in crate::socket) client_slots: Arc<Semaphore>,
    pub(in crate::socket) ping_interval: Duration,
    pub(in crate::socket) absence_max: Duration,
    /// Ends all connections as their agents end.
    pub(in crate::socket) cancel: CancellationToken,
    /// Ends all connections at once.
    pub(in crate::socket) dropped: CancellationToken,
}

/// The clients' connections.
pub(in crate::socket) struct HttpEndpoint {
    config: HttpEndpointConfig,
    connections: Mutex<HashMap<String, Arc<HttpConnection>>>,
    tasks: TaskTracker,
}

impl HttpEndpoint {
    pub(in crate::socket) fn new(config: HttpEndpointConfig) -> Self {
        Self { config, connections: Mutex::default(), tasks: TaskTracker::new() }
    }

    /// Waits until all connections have ended.
    pub(in crate::socket) async fn wait(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Answers a request that was admitted. `tcp` drops its TCP connection.
    pub(in crate::socket) async fn answer_request(
        self: &Arc<Self>,
        request: Request<Incoming>,
        tcp: &CancellationToken,
    ) -> Result<SocketResponse, RequestRefusal> {
        if request.method() == Method::POST {
            self.receive_message(request).await
        } else if request.method() == Method::GET {
            self.open_stream(request.headers(), tcp.clone()).await
        } else if request.method() == Method::DELETE {
            self.find_connection(request.headers())?.closed.cancel();
            Ok(empty_response(StatusCode::ACCEPTED))
        } else {
            let refusal =
                RequestRefusal::new(StatusCode::METHOD_NOT_ALLOWED, "the agent accepts GET, POST and DELETE");
            Err(refusal.with_header(header::ALLOW, "GET, POST, DELETE"))
        }
    }

    fn connections(&self) -> MutexGuard<'_, HashMap<String, Arc<HttpConnection>>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find_connection(&self, headers: &HeaderMap) -> Result<Arc<HttpConnection>, RequestRefusal> {
        let id = headers.get(CONNECTION_HEADER).ok_or_else(|| {
            RequestRefusal::new(StatusCode::BAD_REQUEST, "the request has no Acp-Connection-Id")
        })?;
        let connection = id.to_str().ok().and_then(|id| self.connections().get(id).cloned());
        connection.filter(|connection| !connection.closed.is_cancelled()).ok_or_else(|| {
            RequestRefusal::new(StatusCode::NOT_FOUND, "there is no connection with this Acp-Connection-Id")
        })
    }

    async fn receive_message(
        self: &Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<SocketResponse, RequestRefusal> {
        let (parts, body) = request.into_parts();
        if !request_body::is_json(&parts.headers) {
            let reason = "the message must be application/json";
            return Err(RequestRefusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason));
        }
        if !parts.headers.contains_key(CONNECTION_HEADER) {
            return self.initialize(body).await;
        }
        let connection = self.find_connection(&parts.headers)?;
        let _presence = connection.register_request();
        let _turn = connection.body_turn.lock().await;
        let PostedMessage { line, head } =
            request_body::read_message(body, MESSAGE_BYTES_MAX, self.silence_max()).await?;
        check_session(&parts.headers, &head)?;
        match connection.deliver(line, &head).await {
            true => Ok(empty_response(StatusCode::ACCEPTED)),
            false => Err(RequestRefusal::new(StatusCode::NOT_FOUND, "the connection has ended")),
        }
    }

    fn silence_max(&self) -> Duration {
        SILENT_PINGS_MAX * self.config.ping_interval
    }

    /// Creates a connection and its agent, whose answer is the response. A client that does not wait for it gets none.
    async fn initialize(self: &Arc<Self>, body: Incoming) -> Result<SocketResponse, RequestRefusal> {
        let unavailable = |reason| RequestRefusal::new(StatusCode::SERVICE_UNAVAILABLE, reason);
        let slot = self.config.client_slots.clone().try_acquire_owned();
        let slot = slot.map_err(|_| unavailable("too many clients"))?;
        let PostedMessage { line, head } =
            request_body::read_message(body, INITIALIZE_BYTES_MAX, self.silence_max()).await?;
        let Some(initialize_id) = head.id.clone().filter(|_| head.is_method(INITIALIZE_METHOD)) else {
            let reason = "a message without Acp-Connection-Id must be an initialize request with an ID";
            return Err(RequestRefusal::new(StatusCode::BAD_REQUEST, reason));
        };
        let id = new_connection_id().map_err(|_| unavailable("the system returned no random numbers"))?;
        let (transport, queues) = queued_transport();
        let (answer_sender, answer) = oneshot::channel();
        let (connection, outgoing) = HttpConnection::new(queues, initialize_id, answer_sender);
        let agent = AgentSide { outgoing, serving: (self.config.serve)(transport), _slot: slot };
        let _presence = connection.register_request();
        self.start_connection(&id, connection.clone(), agent);
        let abandoned = connection.closed.clone().drop_guard();
        let answer = match connection.deliver(line, &head).await {
            true => answer.await.ok(),
            false => None,
        };
        let Some(answer) = answer else {
            return Err(RequestRefusal::new(StatusCode::BAD_GATEWAY, "the agent ended before it answered"));
        };
        abandoned.disarm();
        let mut response = Response::new(Full::from(answer).map_err(|never| match never {}).boxed_unsync());
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
        response.headers_mut().insert(CONNECTION_HEADER, id);
        Ok(response)
    }

    fn start_connection(
        self: &Arc<Self>,
        id: &HeaderValue,
        connection: Arc<HttpConnection>,
        agent: AgentSide<BoxFuture<'static, CloseReason>>,
    ) {
        let id = String::from_utf8_lossy(id.as_bytes()).into_owned();
        self.connections().insert(id.clone(), connection.clone());
        let endpoint = self.clone();
        let timing =
            HttpTiming { ping_interval: self.config.ping_interval, absence_max: self.config.absence_max };
        self.tasks.spawn(async move {
            let ended = connection.closed.clone();
            let forgetting = async {
                ended.cancelled().await;
                endpoint.connections().remove(&id);
            };
            let running =
                async { tokio::join!(connection.run(agent, timing, &endpoint.config.cancel), forgetting) };
            endpoint.config.dropped.run_until_cancelled(running).await;
        });
    }

    async fn open_stream(
        &self,
        headers: &HeaderMap,
        tcp: CancellationToken,
    ) -> Result<SocketResponse, RequestRefusal> {
        let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        if !accepted.into_iter().any(|value| value.contains(EVENT_STREAM)) {
            let reason = "the agent sends text/event-stream; accept it, or upgrade to WebSocket";
            return Err(RequestRefusal::new(StatusCode::NOT_ACCEPTABLE, reason));
        }
        let connection = self.find_connection(headers)?;
        let scope = match headers.get(SESSION_HEADER).map(HeaderValue::to_str) {
            Some(Ok(session)) => StreamScope::Session(session.to_owned()),
            Some(Err(_)) => {
                return Err(RequestRefusal::new(StatusCode::BAD_REQUEST, "the Acp-Session-Id is not ASCII"));
            }
            None => StreamScope::Connection,
        };
        let presence = connection.register_request();
        let receiver = connection.streams().open_stream(&scope, tcp);
        let Some(receiver) = receiver else {
            return Err(RequestRefusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many sessions"));
        };
        let lines = receiver.lock_owned().await;
        let ping_interval = self.config.ping_interval;
        let body = StreamReader { lines, connection, _presence: presence, ping_interval }.into_body();
        let mut response = Response::new(body);
        for (name, value) in [(header::CONTENT_TYPE, EVENT_STREAM), (header::CACHE_CONTROL, "no-store")] {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        Ok(response)
    }
}

/// Compares the session of a message with that of its header.
fn check_session(headers: &HeaderMap, head: &MessageHead) -> Result<(), RequestRefusal> {
    let invalid = |reason| Err(RequestRefusal::new(StatusCode::BAD_REQUEST, reason));
    match (headers.get(SESSION_HEADER), &head.session) {
        (None, _) if SESSION_METHODS.iter().any(|method| head.is_method(method)) => {
            invalid("the request has no Acp-Session-Id")
        }
        (Some(header), Some(session)) if header.as_bytes() != session.as_bytes() => {
            invalid("the Acp-Session-Id is not the session of the message")
        }
        _ if head.is_method(INITIALIZE_METHOD) => invalid("the connection is initialized already"),
        _ => Ok(()),
    }
}

fn empty_response(status: StatusCode) -> SocketResponse {
    let mut response = Response::new(Full::new(Bytes::new()).map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = status;
    response
}
