//! Streamable HTTP as its clients see it.

use reqwest::{Client, Method, Response};

use super::*;

/// A client: requests, and what came of them.
struct HttpClient {
    http: Client,
    url: String,
    connection: String,
}

/// An event stream that a client reads.
struct EventLines {
    response: Response,
    text: String,
}

impl EventLines {
    /// Returns the next event or comment, or how the stream ended.
    async fn next(&mut self) -> String {
        let mut n_searched = 0;
        loop {
            if let Some(position) = self.text[n_searched..].find("\n\n") {
                let rest = self.text.split_off(n_searched + position + 2);
                let event = std::mem::replace(&mut self.text, rest);
                return event.trim_end().strip_prefix("data: ").unwrap_or(":").to_owned();
            }
            n_searched = self.text.len().saturating_sub(1);
            match timeout(PATIENCE, self.response.chunk()).await.unwrap() {
                Ok(Some(bytes)) => self.text.push_str(std::str::from_utf8(&bytes).unwrap()),
                Ok(None) => return "the end".into(),
                Err(_) => return "cut off".into(),
            }
        }
    }
}

impl HttpClient {
    fn new(server: &Server) -> Self {
        // Fails where another test has installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = Client::builder().tls_certs_only([]).no_proxy().build().unwrap();
        Self { http, url: format!("http://127.0.0.1:{}/acp", server.port), connection: String::new() }
    }

    /// Initializes a connection.
    async fn connect(server: &Server) -> Self {
        let mut client = Self::new(server);
        let response = client.request(Method::POST, &[], INITIALIZE.to_owned()).await;
        assert_eq!(response.status(), 200);
        client.connection = response.headers()["acp-connection-id"].to_str().unwrap().to_owned();
        client
    }

    async fn request(&self, method: Method, headers: &[(&str, &str)], body: String) -> Response {
        let mut request = self.http.request(method, &self.url).bearer_auth("secret");
        if !body.is_empty() && !headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        timeout(PATIENCE, request.body(body).send()).await.unwrap().unwrap()
    }

    /// Sends a message and returns the status, with the reason of a refusal.
    async fn post(&self, session: &str, message: impl Into<String>) -> String {
        let headers = [("acp-connection-id", self.connection.as_str()), ("acp-session-id", session)];
        let n_headers = if session.is_empty() { 1 } else { 2 };
        let response = self.request(Method::POST, &headers[..n_headers], message.into()).await;
        describe(response).await
    }

    async fn stream(&self, session: &str) -> EventLines {
        let headers = [
            ("accept", "text/event-stream"),
            ("acp-connection-id", self.connection.as_str()),
            ("acp-session-id", session),
        ];
        let n_headers = if session.is_empty() { 2 } else { 3 };
        let response = self.request(Method::GET, &headers[..n_headers], String::new()).await;
        assert_eq!(response.status(), 200);
        EventLines { response, text: String::new() }
    }

    async fn delete(&self) -> String {
        let headers = [("acp-connection-id", self.connection.as_str())];
        describe(self.request(Method::DELETE, &headers, String::new()).await).await
    }
}

async fn describe(response: Response) -> String {
    let status = response.status().as_u16();
    format!("{status} {}", response.text().await.unwrap()).trim().to_owned()
}

const INITIALIZE: &str = r#"{"id":0,"method":"initialize"}"#;

/// Answers `initialize`, and says the lines that a message has in `params.say`.
pub(super) async fn obey(lines: LineTransport) -> CloseReason {
    let (mut outgoing, mut incoming) = (lines.outgoing, lines.incoming);
    while let Some(Ok(line)) = incoming.next().await {
        let message: serde_json::Value = serde_json::from_str(&line).unwrap();
        let mut said = match message["method"].as_str() {
            Some("initialize") => vec![r#"{"id":0,"result":{}}"#.to_owned()],
            _ => Vec::new(),
        };
        let asked = message["params"]["say"].as_array().into_iter().flatten();
        said.extend(asked.map(serde_json::Value::to_string));
        for line in said {
            if outgoing.send(line).await.is_err() {
                return CloseReason::Normal;
            }
        }
        if message["method"] == "exit" {
            return CloseReason::AgentEnded { summary: "the agent exited".into(), stderr: "oh no".into() };
        }
    }
    CloseReason::Normal
}

/// A request: what is special, method, headers, body.
type RequestCase<'c> = (&'c str, Method, Vec<(&'c str, &'c str)>, &'c str);

fn request_cases(connection: &str) -> Vec<RequestCase<'_>> {
    let connection = ("acp-connection-id", connection);
    let json = ("accept", "application/json");
    let events = ("accept", "text/event-stream, application/json");
    let prompt = r#"{"id":1,"method":"session/prompt","params":{"sessionId":"s"}}"#;
    vec![
        ("no connection", Method::POST, vec![], prompt),
        ("an unknown connection", Method::POST, vec![("acp-connection-id", "0")], prompt),
        ("no JSON type", Method::POST, vec![connection, ("content-type", "text/plain")], prompt),
        (
            "a JSON type with more",
            Method::POST,
            vec![connection, ("content-type", "Application/JSON; charset=utf-8")],
            "{}",
        ),
        ("no session", Method::POST, vec![connection], prompt),
        ("another session", Method::POST, vec![connection, ("acp-session-id", "t")], prompt),
        ("its session", Method::POST, vec![connection, ("acp-session-id", "s")], prompt),
        ("initialize twice", Method::POST, vec![connection], INITIALIZE),
        ("initialize without an ID", Method::POST, vec![], r#"{"method":"initialize"}"#),
        ("a batch", Method::POST, vec![connection], "[{}]"),
        ("no object", Method::POST, vec![connection], "1"),
        ("broken JSON", Method::POST, vec![connection], "{"),
        ("no events accepted", Method::GET, vec![connection, json], ""),
        ("a stream of nothing", Method::GET, vec![events], ""),
        ("a stream of another connection", Method::GET, vec![events, ("acp-connection-id", "0")], ""),
        ("a delete of nothing", Method::DELETE, vec![], ""),
        ("a delete of another connection", Method::DELETE, vec![("acp-connection-id", "0")], ""),
        ("a page", Method::POST, vec![("origin", "http://127.0.0.1")], INITIALIZE),
        ("a put", Method::PUT, vec![connection], "{}"),
    ]
}

#[tokio::test]
async fn http_requests_are_checked() {
    let server = Server::start(PATIENT, obey).await;
    let client = HttpClient::connect(&server).await;
    let cases = request_cases(&client.connection);
    let mut heard = String::new();
    for (what, method, headers, body) in cases {
        let answer = describe(client.request(method, &headers, body.to_owned()).await).await;
        heard.push_str(&format!("{what}: {answer}\n"));
    }
    check(
        &heard,
        &expect![[r#"
        no connection: 400 a message without Acp-Connection-Id must be an initialize request with an ID
        an unknown connection: 404 there is no connection with this Acp-Connection-Id
        no JSON type: 415 the message must be application/json
        a JSON type with more: 202
        no session: 400 the request has no Acp-Session-Id
        another session: 400 the Acp-Session-Id is not the session of the message
        its session: 202
        initialize twice: 400 the connection is initialized already
        initialize without an ID: 400 a message without Acp-Connection-Id must be an initialize request with an ID
        a batch: 501 batches are not supported; send one message
        no object: 400 the message is not a JSON object
        broken JSON: 400 the message is not valid JSON
        no events accepted: 406 the agent sends text/event-stream; accept it, or upgrade to WebSocket
        a stream of nothing: 400 the request has no Acp-Connection-Id
        a stream of another connection: 404 there is no connection with this Acp-Connection-Id
        a delete of nothing: 400 the request has no Acp-Connection-Id
        a delete of another connection: 404 there is no connection with this Acp-Connection-Id
        a page: 403 browser pages are not permitted
        a put: 405 the agent accepts GET, POST and DELETE
    "#]],
    );
    server.end().await;
}

#[tokio::test]
async fn http_messages_go_both_ways_on_their_streams() {
    let server = Server::start(PATIENT, obey).await;
    let client = HttpClient::connect(&server).await;
    let mut heard = Vec::new();
    let say = |line: &str| format!(r#"{{"id":1,"method":"new","params":{{"say":[{line}]}}}}"#);
    // Before a stream is open, its messages wait.
    heard.push(client.post("", say(r#"{"id":1,"result":{"sessionId":"s"}}"#)).await);
    let update = r#"{"method":"session/update","params":{"sessionId":"s","n":1}}"#;
    heard.push(client.post("", say(update)).await);
    let mut connection = client.stream("").await;
    heard.push(connection.next().await);
    let mut session = client.stream("s").await;
    heard.push(session.next().await);
    // The newest reader of a stream replaces an earlier one, which may be half open.
    let mut newest = client.stream("s").await;
    heard.push(session.next().await);
    let prompt = format!(
        r#"{{"id":2,"method":"session/prompt","params":{{"sessionId":"s","say":[{update},{{"id":2,"result":{{}}}}]}}}}"#
    );
    heard.push(client.post("s", prompt).await);
    heard.push(newest.next().await);
    heard.push(newest.next().await);
    heard.push(client.delete().await);
    heard.push(client.delete().await);
    heard.push(newest.next().await);
    heard.push(connection.next().await);
    check(
        &heard.join("\n"),
        &expect![[r#"
        202
        202
        {"id":1,"result":{"sessionId":"s"}}
        {"method":"session/update","params":{"sessionId":"s","n":1}}
        cut off
        202
        {"method":"session/update","params":{"sessionId":"s","n":1}}
        {"id":2,"result":{}}
        202
        404 there is no connection with this Acp-Connection-Id
        the end
        the end"#]],
    );
    server.end().await;
}

#[tokio::test]
async fn end_of_the_agent_is_the_last_event() {
    let server = Server::start(PATIENT, obey).await;
    let client = HttpClient::connect(&server).await;
    let mut stream = client.stream("").await;
    let mut heard = vec![client.post("", r#"{"method":"exit","params":{"say":[{"last":1}]}}"#).await];
    for _ in 0..3 {
        heard.push(stream.next().await);
    }
    heard.push(client.post("", "{}").await);
    let silent = Server::start(PATIENT, |_lines| async { CloseReason::Normal }).await;
    let client = HttpClient::new(&silent);
    heard.push(describe(client.request(Method::POST, &[], INITIALIZE.to_owned()).await).await);
    check(
        &heard.join("\n"),
        &expect![[r#"
        202
        {"last":1}
        {"jsonrpc":"2.0","method":"_crow/closed","params":{"reason":"the agent exited: oh no"}}
        the end
        404 there is no connection with this Acp-Connection-Id
        502 the agent ended before it answered"#]],
    );
    silent.end().await;
    server.end().await;
}

/// A server whose agents report how their clients left.
async fn reporting_server(timing: SocketServerTiming) -> (Server, mpsc::Receiver<String>) {
    let (ended, ends) = mpsc::channel(4);
    let serve = move |mut lines: LineTransport| {
        let ended = ended.clone();
        async move {
            let first = lines.incoming.next().await;
            assert!(first.is_some());
            lines.outgoing.send(r#"{"id":0,"result":{}}"#.into()).await.unwrap();
            let last = lines.incoming.next().await;
            ended.send(format!("{last:?}")).await.unwrap();
            CloseReason::Normal
        }
    };
    (Server::start(timing, serve).await, ends)
}

#[tokio::test]
async fn http_client_that_leaves_ends_its_agent() {
    let absence = SocketServerTiming { absence_max: SOON, ..PATIENT };
    let (server, mut ends) = reporting_server(absence).await;
    let client = HttpClient::connect(&server).await;
    let stream = client.stream("s").await;
    // Another client leaves at once, while the first one has an open stream.
    let other = HttpClient::connect(&server).await;
    drop(other);
    let mut heard = vec![ends.recv().await.unwrap()];
    assert_eq!(client.post("", "{").await, "400 the message is not valid JSON");
    drop(stream);
    heard.push(ends.recv().await.unwrap());
    let deleting = HttpClient::connect(&server).await;
    heard.push(deleting.delete().await);
    heard.push(ends.recv().await.unwrap());
    check(
        &heard.join("\n"),
        &expect![[r#"
        Some(Err(Custom { kind: Other, error: "the client has no open request" }))
        Some(Err(Custom { kind: Other, error: "the client has no open request" }))
        202
        None"#]],
    );
    server.end().await;
}

#[tokio::test]
async fn idle_streams_have_comments() {
    let server = Server::start(SocketServerTiming { ping_interval: SOON, ..PATIENT }, obey).await;
    let client = HttpClient::connect(&server).await;
    let mut stream = client.stream("").await;
    check(&format!("{} {}", stream.next().await, stream.next().await), &expect![": :"]);
    server.end().await;
}

#[tokio::test]
async fn http_clients_count_with_the_others() {
    let server = Server::start(PATIENT, obey).await;
    let mut sockets = Vec::new();
    for _ in 1..CLIENTS_MAX {
        sockets.push(server.socket().await);
    }
    let client = HttpClient::connect(&server).await;
    let another = HttpClient::new(&server);
    let refused = describe(another.request(Method::POST, &[], INITIALIZE.to_owned()).await).await;
    check(&refused, &expect!["503 too many clients"]);
    client.delete().await;
    let again = async {
        while another.request(Method::POST, &[], INITIALIZE.to_owned()).await.status() != 200 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, again).await.unwrap();
}

#[tokio::test]
async fn http_messages_that_are_too_large_are_refused() {
    let server = Server::start(PATIENT, obey).await;
    let client = HttpClient::connect(&server).await;
    let mut heard = vec![client.post("", "x".repeat(MESSAGE_BYTES_MAX + 1)).await];
    // The first message is read before the client has an agent.
    heard.push(describe(client.request(Method::POST, &[], "x".repeat(2_000_000)).await).await);
    check(
        &heard.join("\n"),
        &expect![[r#"
        413 the message is too large
        413 the message is too large"#]],
    );
    server.end().await;
}

/// An agent that sends without end, until it can send nothing for a while.
fn flooding_agent(
    n_said: Arc<AtomicUsize>,
    stuck: mpsc::Sender<()>,
    cancel: CancellationToken,
) -> impl Fn(LineTransport) -> futures_util::future::BoxFuture<'static, CloseReason> + Send + Sync + 'static {
    move |mut lines| {
        let (n_said, stuck, cancel) = (n_said.clone(), stuck.clone(), cancel.clone());
        Box::pin(async move {
            lines.incoming.next().await;
            lines.outgoing.send(r#"{"id":0,"result":{}}"#.into()).await.unwrap();
            let line = "x".repeat(LARGE);
            while timeout(Duration::from_millis(500), lines.outgoing.send(line.clone())).await.is_ok() {
                n_said.fetch_add(1, Ordering::Relaxed);
            }
            stuck.send(()).await.unwrap();
            // A client that leaves, or the server's end.
            tokio::select! {
                () = cancel.cancelled() => CloseReason::GoingAway,
                _ = lines.outgoing.send(String::new()) => CloseReason::Normal,
            }
        })
    }
}

#[tokio::test]
async fn slow_http_reader_stops_the_agent_and_is_dropped() {
    let n_said = Arc::new(AtomicUsize::new(0));
    let (stuck, mut is_stuck) = mpsc::channel(1);
    let timing = SocketServerTiming { ping_interval: Duration::from_secs(1), ..PATIENT };
    let server = Server::start(timing, flooding_agent(n_said.clone(), stuck, CancellationToken::new())).await;
    let client = HttpClient::connect(&server).await;
    let stream = client.stream("").await;
    timeout(PATIENCE, is_stuck.recv()).await.unwrap().unwrap();
    let n_said = n_said.load(Ordering::Relaxed);
    assert!(
        (16..56).contains(&n_said),
        "two queues of 64 MiB and what the system holds, not {n_said} times 4 MB"
    );
    let gone = async {
        while client.post("", "{}").await == "202" {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, gone).await.unwrap();
    drop(stream);
}

#[tokio::test]
async fn slow_http_reader_does_not_delay_shutdown() {
    let (stuck, mut is_stuck) = mpsc::channel(1);
    let cancel = CancellationToken::new();
    let agent = flooding_agent(Arc::default(), stuck, cancel.clone());
    let server = Server::start_until(cancel, PATIENT, agent).await;
    let client = HttpClient::connect(&server).await;
    let stream = client.stream("").await;
    timeout(PATIENCE, is_stuck.recv()).await.unwrap().unwrap();
    let since = Instant::now();
    server.end().await;
    assert!(since.elapsed() < Duration::from_secs(5), "it took {:?}", since.elapsed());
    drop(stream);
}
