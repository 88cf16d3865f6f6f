//! The client's end: posts the lines of our side in order, and reads the event streams of the agent.

use std::{
    collections::{HashMap, HashSet},
    io,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use reqwest::{Body, Client, Response, Url};
use serde_json::json;
use tokio::{sync::mpsc, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    super::{
        connect::{ConnectError, SocketTarget},
        limits::{CLOSE_TIMEOUT, MESSAGE_BYTES_MAX},
        message_pump::{join_lines, wait_for_abandoned_queue},
        queue::{LineReceiver, LineSender, SocketQueues},
    },
    CONNECTION_HEADER, JSON, SESSION_HEADER,
    cookies::CookieStore,
    message_head::MessageHead,
    route_table::{SESSIONS_MAX, StreamScope},
};

/// Unanswered requests of an agent whose session is remembered for the answer.
const AGENT_REQUESTS_MAX: usize = 1024;

/// The requests that attach a session. Servers differ in whether they know its ID before.
const ATTACHING_METHODS: [&str; 2] = ["session/load", "session/resume"];

/// A connection to an agent.
pub(super) struct HttpLink {
    pub(super) target: SocketTarget,
    pub(super) http: Client,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) incoming: LineSender,
    cookies: Mutex<CookieStore>,
    connection: OnceLock<HeaderValue>,
    /// Sessions with a stream that is read.
    sessions: Mutex<HashSet<String>>,
    /// The sessions of the agent's requests, by ID.
    requests: Mutex<HashMap<String, String>>,
    tasks: TaskTracker,
    pub(super) closed: CancellationToken,
    pub(super) end_sender: mpsc::Sender<LinkEnd>,
}

/// The reason for the end of a connection.
#[derive(Debug)]
pub(super) enum LinkEnd {
    /// Our side has sent everything, or is gone.
    Local,
    /// The agent has finished.
    Finished,
    Failed(String),
}

impl From<ConnectError> for LinkEnd {
    fn from(error: ConnectError) -> Self {
        Self::Failed(error.to_string())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Carries lines until either side ends.
pub(in crate::socket) async fn carry_posts(
    target: SocketTarget,
    http: Client,
    url: Url,
    headers: HeaderMap,
    SocketQueues { incoming, mut outgoing }: SocketQueues,
) {
    let (end_sender, mut ends) = mpsc::channel(1);
    let link = Arc::new(HttpLink {
        target,
        http,
        url,
        headers,
        incoming,
        cookies: Mutex::default(),
        connection: OnceLock::new(),
        sessions: Mutex::default(),
        requests: Mutex::default(),
        tasks: TaskTracker::new(),
        closed: CancellationToken::new(),
        end_sender,
    });
    let end = tokio::select! {
        end = link.send_messages(&mut outgoing) => end,
        Some(end) = ends.recv() => end,
        () = wait_for_abandoned_queue(&link.incoming, &link.closed) => LinkEnd::Local,
    };
    drop(outgoing);
    tracing::info!(?end, "a connection ends");
    link.tasks.close();
    if matches!(end, LinkEnd::Finished) {
        // The streams of its sessions end as well; their last events are on the way.
        let _ = timeout(CLOSE_TIMEOUT, link.tasks.wait()).await;
    }
    link.closed.cancel();
    if !matches!(end, LinkEnd::Finished) {
        link.close().await;
    }
    link.tasks.wait().await;
    if let LinkEnd::Failed(reason) = end {
        // Our side is gone as well, or receives it.
        let _ = link.incoming.send(Err(io::Error::other(reason))).await;
    }
}

impl HttpLink {
    /// Notifies the server that the client leaves.
    async fn close(&self) {
        if self.connection.get().is_none() {
            return;
        }
        match timeout(CLOSE_TIMEOUT, self.send_request(Method::DELETE, None, Body::default())).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(?error, "the server was not told that the client leaves"),
            Err(_) => tracing::debug!("the server did not answer that the client leaves"),
        }
    }

    /// Sends a request of this connection.
    pub(super) async fn send_request(
        &self,
        method: Method,
        session: Option<&str>,
        body: Body,
    ) -> Result<Response, ConnectError> {
        let mut headers = self.headers.clone();
        match method {
            Method::POST => _ = headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON)),
            Method::GET => _ = headers.insert(header::ACCEPT, HeaderValue::from_static(super::EVENT_STREAM)),
            _ => {}
        }
        if let Some(connection) = self.connection.get() {
            headers.insert(CONNECTION_HEADER, connection.clone());
        }
        if let Some(session) = session.and_then(|session| HeaderValue::from_str(session).ok()) {
            headers.insert(SESSION_HEADER, session);
        }
        if let Some(cookies) = lock(&self.cookies).header() {
            headers.append(header::COOKIE, cookies);
        }
        let request = self.http.request(method, self.url.clone()).headers(headers).body(body);
        let response = request.send().await.map_err(|error| self.target.request_error(&error))?;
        lock(&self.cookies).store(response.headers());
        Ok(response)
    }

    /// Posts the lines of our side, one after the other.
    async fn send_messages(self: &Arc<Self>, outgoing: &mut LineReceiver) -> LinkEnd {
        while let Some(Ok(line)) = outgoing.recv().await {
            let sent = match (self.connection.get(), MessageHead::parse(&line)) {
                (None, _) => self.initialize(line).await,
                (Some(_), Ok(head)) => self.post_message(line, &head).await,
                // Our side sends messages only.
                (Some(_), Err(_)) => continue,
            };
            if let Err(end) = sent {
                return end;
            }
        }
        LinkEnd::Local
    }

    async fn initialize(self: &Arc<Self>, line: String) -> Result<(), LinkEnd> {
        let mut response = self.send_request(Method::POST, None, line.into()).await?;
        if response.status() != StatusCode::OK {
            return Err(self.target.rejected_message(response.status()).into());
        }
        let Some(connection) = response.headers().get(CONNECTION_HEADER).cloned() else {
            return Err(self.target.invalid_answer("it gave no Acp-Connection-Id").into());
        };
        let mut answer = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| self.target.request_error(&error))? {
            answer.extend_from_slice(&piece);
            if answer.len() > MESSAGE_BYTES_MAX {
                return Err(self.target.invalid_answer("a message is larger than 64 MiB").into());
            }
        }
        let answer = join_lines(&String::from_utf8_lossy(&answer));
        if MessageHead::parse(&answer).is_err() {
            return Err(self.target.invalid_answer("it did not answer with a message").into());
        }
        // Set once, here.
        let _ = self.connection.set(connection);
        self.read_stream(StreamScope::Connection);
        self.deliver_line(answer).await;
        Ok(())
    }

    async fn post_message(self: &Arc<Self>, line: String, head: &MessageHead) -> Result<(), LinkEnd> {
        let session = match (&head.method, &head.id) {
            (Some(_), _) => head.session.clone(),
            (None, Some(id)) => lock(&self.requests).remove(id),
            (None, None) => None,
        };
        if let Some(session) = &session {
            self.read_session(session);
        }
        let is_attaching = ATTACHING_METHODS.iter().any(|method| head.is_method(method));
        let body = bytes::Bytes::from(line);
        let mut status =
            self.send_request(Method::POST, session.as_deref(), body.clone().into()).await?.status();
        if status == StatusCode::NOT_FOUND && is_attaching {
            status = self.send_request(Method::POST, None, body.into()).await?.status();
        }
        match (status, head.method.as_ref().and(head.id.as_ref())) {
            (status, _) if status.is_success() => Ok(()),
            (
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND | StatusCode::GONE,
                _,
            )
            | (_, None) => Err(self.target.rejected_message(status).into()),
            (_, Some(id)) => {
                let message = self.target.rejected_message(status).to_string();
                let error = json!({"code": -32603, "message": message, "data": {"kind": "protocol"}});
                self.deliver_line(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)).await;
                Ok(())
            }
        }
    }

    /// Reads the stream of a session from now on.
    fn read_session(self: &Arc<Self>, session: &str) {
        let mut sessions = lock(&self.sessions);
        if sessions.len() < SESSIONS_MAX && sessions.insert(session.to_owned()) {
            self.read_stream(StreamScope::Session(session.to_owned()));
        }
    }

    fn read_stream(self: &Arc<Self>, scope: StreamScope) {
        let link = self.clone();
        self.tasks.spawn(async move {
            let reading = super::event_reader::read_stream(&link, &scope);
            let end = link.closed.run_until_cancelled(reading).await.flatten();
            if let StreamScope::Session(session) = &scope {
                lock(&link.sessions).remove(session);
            }
            if let Some(end) = end {
                // The first reason counts.
                let _ = link.end_sender.try_send(end);
            }
        });
    }

    /// Passes a message of an event stream to our side.
    pub(super) async fn deliver_event(self: &Arc<Self>, line: String, scope: &StreamScope) {
        if let Ok(head) = MessageHead::parse(&line) {
            let session = head.session.or(match scope {
                StreamScope::Session(session) => Some(session.clone()),
                StreamScope::Connection => None,
            });
            match (head.method, head.id, session) {
                (None, _, _) => {
                    if let Some(session) = &head.result_session {
                        self.read_session(session);
                    }
                }
                (Some(_), Some(id), Some(session)) => {
                    let mut requests = lock(&self.requests);
                    if requests.len() < AGENT_REQUESTS_MAX {
                        requests.insert(id, session);
                    }
                }
                (Some(_), _, _) => {}
            }
        }
        self.deliver_line(line).await;
    }

    async fn deliver_line(&self, line: String) {
        // Our side may have left; its output decides the end.
        let _ = self.incoming.send(Ok(line)).await;
    }
}
