//! The client's half of streamable HTTP: against our server, and against scripted ones.

use std::{collections::VecDeque, sync::Mutex};

use super::{streamable_http::obey, *};

async fn connect(port: u16) -> LineTransport {
    connect_with(port, &TaskTracker::new()).await
}

async fn connect_with(port: u16, tasks: &TaskTracker) -> LineTransport {
    let headers = [("Authorization".to_owned(), "Bearer secret".to_owned())];
    let url = format!("http://127.0.0.1:{port}");
    connect_socket(&url, &headers, Instant::now() + PATIENCE, tasks).await.unwrap()
}

async fn hear(lines: &mut LineTransport) -> String {
    match timeout(PATIENCE, lines.incoming.next()).await.unwrap() {
        Some(Ok(line)) => line,
        Some(Err(error)) => format!("error: {error}"),
        None => "the end".to_owned(),
    }
}

const INITIALIZE: &str = r#"{"id":0,"method":"initialize"}"#;

#[tokio::test]
async fn both_http_halves_carry_lines() {
    let server = Server::start(PATIENT, obey).await;
    let mut lines = connect(server.port).await;
    let update = r#"{"method":"session/update","params":{"sessionId":"s","n":1}}"#;
    let mut heard = Vec::new();
    for (message, n_answers) in [
        (INITIALIZE.to_owned(), 1),
        (
            r#"{"id":1,"method":"session/new","params":{"say":[{"id":1,"result":{"sessionId":"s"}}]}}"#
                .into(),
            1,
        ),
        (
            format!(
                r#"{{"id":2,"method":"session/prompt","params":{{"sessionId":"s","say":[{update},{update},{{"id":2,"result":{{}}}}]}}}}"#
            ),
            3,
        ),
        (
            format!(
                r#"{{"id":3,"method":"session/load","params":{{"sessionId":"t","say":[{},{{"id":3,"result":null}}]}}}}"#,
                update.replace("\"s\"", "\"t\"")
            ),
            2,
        ),
        (r#"{"method":"exit"}"#.into(), 2),
    ] {
        lines.outgoing.send(message).await.unwrap();
        for _ in 0..n_answers {
            heard.push(hear(&mut lines).await);
        }
    }
    check(
        &heard.join("\n"),
        &expect![[r#"
        {"id":0,"result":{}}
        {"id":1,"result":{"sessionId":"s"}}
        {"method":"session/update","params":{"sessionId":"s","n":1}}
        {"method":"session/update","params":{"sessionId":"s","n":1}}
        {"id":2,"result":{}}
        {"method":"session/update","params":{"sessionId":"t","n":1}}
        {"id":3,"result":null}
        error: the other side closed it: the agent exited: oh no
        the end"#]],
    );
    server.end().await;
}

#[tokio::test]
async fn http_client_that_finishes_ends_its_agent() {
    let (ended, mut ends) = mpsc::channel(4);
    let server = Server::start(PATIENT, move |mut lines: LineTransport| {
        let ended = ended.clone();
        async move {
            while let Some(line) = lines.incoming.next().await {
                ended.send(format!("{line:?}")).await.unwrap();
                lines.outgoing.send(r#"{"id":0,"result":{}}"#.into()).await.unwrap();
            }
            ended.send("the end".into()).await.unwrap();
            CloseReason::Normal
        }
    })
    .await;
    let tasks = TaskTracker::new();
    let mut lines = connect_with(server.port, &tasks).await;
    lines.outgoing.send(INITIALIZE.into()).await.unwrap();
    let mut heard = vec![hear(&mut lines).await];
    lines.outgoing.send("{}".into()).await.unwrap();
    // Its last message is sent, and that it leaves.
    drop(lines);
    tasks.close();
    timeout(PATIENCE, tasks.wait()).await.unwrap();
    for _ in 0..3 {
        heard.push(timeout(PATIENCE, ends.recv()).await.unwrap().unwrap());
    }
    check(
        &heard.join("\n"),
        &expect![[r#"
        {"id":0,"result":{}}
        Ok("{\"id\":0,\"method\":\"initialize\"}")
        Ok("{}")
        the end"#]],
    );
    server.end().await;
}

#[tokio::test]
async fn large_messages_go_between_both_http_halves() {
    let server = Server::start(PATIENT, |mut lines: LineTransport| async move {
        lines.incoming.next().await;
        lines.outgoing.send(r#"{"id":0,"result":{}}"#.into()).await.unwrap();
        echo(lines).await
    })
    .await;
    let mut lines = connect(server.port).await;
    lines.outgoing.send(INITIALIZE.into()).await.unwrap();
    hear(&mut lines).await;
    let large = format!("{{\"large\":\"{}\"}}", "x".repeat(50_000_000));
    lines.outgoing.send(large.clone()).await.unwrap();
    let back = hear(&mut lines).await;
    assert!(back == large, "it came back as it was, {} bytes of {}", back.len(), large.len());
    server.end().await;
}

/// Answers each request with the next answer for its kind, which is `POST`, `GET`, `GET SESSION` or `DELETE`; without
/// one it keeps the request open. Returns what a client hears after these messages, and the first requests.
async fn meet(answers: &[(&str, &str)], messages: &[&str], n_heard: usize, n_requests: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let owned = |(kind, answer): &(&str, &str)| ((*kind).to_owned(), answer.replace('\n', "\r\n"));
    let answers: Arc<Mutex<VecDeque<(String, String)>>> =
        Arc::new(Mutex::new(answers.iter().map(owned).collect()));
    let (log, mut logged) = mpsc::channel(64);
    let script = answers.clone();
    let serving = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(answer_requests(stream, script.clone(), log.clone()));
        }
    });
    let mut lines = connect(address.port()).await;
    let mut heard = Vec::new();
    for message in messages {
        lines.outgoing.send((*message).to_owned()).await.unwrap();
    }
    for _ in 0..n_heard {
        heard.push(hear(&mut lines).await.replace(&address.to_string(), "HERE"));
    }
    let mut requests = Vec::new();
    while requests.len() < n_requests {
        requests.push(timeout(PATIENCE, logged.recv()).await.unwrap().unwrap());
    }
    drop(lines);
    serving.abort();
    // Streams and messages are concurrent.
    requests.sort();
    format!("{}\n{}\n", heard.join("\n"), requests.join("\n"))
}

async fn answer_requests(
    mut stream: TcpStream,
    answers: Arc<Mutex<VecDeque<(String, String)>>>,
    requests: mpsc::Sender<String>,
) {
    let mut bytes = Vec::new();
    loop {
        let head = loop {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let field = |name: &str| {
                    head.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
                };
                let n_body: usize = field("content-length:").unwrap_or_default().parse().unwrap_or(0);
                if body.len() >= n_body {
                    let method = head.split(' ').next().unwrap().to_owned();
                    let session = field("acp-session-id:").map(|session| format!(" {session}"));
                    let kind = format!("{method}{}", session.unwrap_or_default());
                    let cookie = field("cookie:").map(|cookie| format!(" (cookie {cookie})"));
                    let id = field("acp-connection-id:").map(|id| format!(" to {id}"));
                    let shown = format!("{kind}{}{}", id.unwrap_or_default(), cookie.unwrap_or_default());
                    requests.send(shown).await.unwrap();
                    bytes = body.as_bytes()[n_body..].to_vec();
                    break kind;
                }
            }
            let mut piece = [0; 4096];
            match stream.read(&mut piece).await {
                Ok(0) | Err(_) => return,
                Ok(n_read) => bytes.extend_from_slice(&piece[..n_read]),
            }
        };
        let answer = {
            let mut answers = answers.lock().unwrap();
            let position = answers.iter().position(|(kind, _)| *kind == head);
            position.and_then(|position| answers.remove(position))
        };
        match answer {
            Some((_, answer)) => {
                stream.write_all(answer.as_bytes()).await.unwrap();
                if answer.contains("connection: close") {
                    return;
                }
            }
            None => pending().await,
        }
    }
}

const STARTED: (&str, &str) = (
    "POST",
    "HTTP/1.1 200 OK\nacp-connection-id: c\nset-cookie: a=b; Path=/\ncontent-length: 20\n\n{\"id\":0,\"result\":{}}",
);
const ACCEPTED: &str = "HTTP/1.1 202 Accepted\ncontent-length: 0\n\n";
const GONE: &str = "HTTP/1.1 404 Not Found\ncontent-length: 0\n\n";

/// A stream that ends after one event.
const ONE_EVENT: &str = "HTTP/1.1 200 OK\ncontent-type: text/event-stream\ntransfer-encoding: chunked\n\n14\n: hi\n\ndata: {}\n\n\n0\n\n";

/// One that breaks after an event.
const BROKEN: &str =
    "HTTP/1.1 200 OK\ncontent-type: text/event-stream\ncontent-length: 99\nconnection: close\n\ndata: {}\n\n";

#[tokio::test]
async fn http_servers_that_reject_are_reported() {
    let mut heard = String::new();
    for answer in [
        "HTTP/1.1 401 Unauthorized\ncontent-length: 0\n\n",
        GONE,
        "HTTP/1.1 302 Found\nlocation: /elsewhere\ncontent-length: 0\n\n",
        "HTTP/1.1 503 Service Unavailable\ncontent-length: 0\n\n",
        "HTTP/1.1 405 Method Not Allowed\ncontent-length: 0\n\n",
        "HTTP/1.1 200 OK\ncontent-length: 2\n\n{}",
        "HTTP/1.1 200 OK\nacp-connection-id: c\ncontent-length: 2\n\nhi",
        "SSH-2.0-OpenSSH\n",
    ] {
        heard.push_str(&meet(&[("POST", answer)], &[INITIALIZE], 1, 1).await);
    }
    check(
        &heard,
        &expect![[r#"
        error: HERE rejected the connection: the token was rejected (HTTP 401)
        POST
        error: HERE rejected the connection: there is no agent at this path (HTTP 404)
        POST
        error: HERE rejected the connection: it redirects elsewhere, and redirects are not followed; use the final address (HTTP 302)
        POST
        error: HERE rejected the connection: it has too many clients, or is not ready (HTTP 503)
        POST
        error: HERE rejected the connection: it did not accept a message (HTTP 405)
        POST
        error: HERE does not speak ACP over HTTP: it gave no Acp-Connection-Id
        POST
        error: HERE does not speak ACP over HTTP: it did not answer with a message
        POST
        error: HERE cannot be reached: invalid HTTP version parsed
        POST
    "#]],
    );
}

#[tokio::test]
async fn ended_stream_is_opened_again_and_a_broken_one_ends_the_connection() {
    let mut heard = String::new();
    heard.push_str(
        &meet(&[STARTED, ("GET", ONE_EVENT), ("GET", ONE_EVENT), ("GET", GONE)], &[INITIALIZE], 4, 4).await,
    );
    heard.push_str(&meet(&[STARTED, ("GET", BROKEN)], &[INITIALIZE], 3, 3).await);
    heard.push_str(&meet(&[STARTED, ("GET", ACCEPTED)], &[INITIALIZE], 2, 3).await);
    check(
        &heard,
        &expect![[r#"
        {"id":0,"result":{}}
        {}
        {}
        the end
        GET to c (cookie a=b)
        GET to c (cookie a=b)
        GET to c (cookie a=b)
        POST
        {"id":0,"result":{}}
        {}
        error: the other side disconnected without closing the connection
        DELETE to c (cookie a=b)
        GET to c (cookie a=b)
        POST
        {"id":0,"result":{}}
        error: HERE rejected the connection: it did not accept a message (HTTP 202)
        DELETE to c (cookie a=b)
        GET to c (cookie a=b)
        POST
    "#]],
    );
}

#[tokio::test]
async fn rejected_messages_fail_alone_unless_the_connection_is_gone() {
    let prompt = r#"{"id":"p","method":"session/prompt","params":{"sessionId":"s"}}"#;
    let load = r#"{"id":1,"method":"session/load","params":{"sessionId":"s"}}"#;
    let too_large = "HTTP/1.1 413 Payload Too Large\ncontent-length: 0\n\n";
    let mut heard = String::new();
    heard.push_str(
        &meet(&[STARTED, ("POST s", too_large), ("GET s", GONE)], &[INITIALIZE, prompt], 2, 4).await,
    );
    heard.push_str(&meet(&[STARTED, ("POST s", GONE)], &[INITIALIZE, prompt], 2, 5).await);
    // A server may not know the session of a load yet.
    let answers = [STARTED, ("POST s", GONE), ("POST", ACCEPTED), ("GET", ONE_EVENT)];
    heard.push_str(&meet(&answers, &[INITIALIZE, load], 2, 6).await);
    check(
        &heard,
        &expect![[r#"
        {"id":0,"result":{}}
        {"jsonrpc":"2.0","id":"p","error":{"code":-32603,"message":"HERE rejected the connection: it did not accept a message (HTTP 413)","data":{"kind":"protocol"}}}
        GET s to c (cookie a=b)
        GET to c (cookie a=b)
        POST
        POST s to c (cookie a=b)
        {"id":0,"result":{}}
        error: HERE rejected the connection: there is no agent at this path (HTTP 404)
        DELETE to c (cookie a=b)
        GET s to c (cookie a=b)
        GET to c (cookie a=b)
        POST
        POST s to c (cookie a=b)
        {"id":0,"result":{}}
        {}
        GET s to c (cookie a=b)
        GET to c (cookie a=b)
        GET to c (cookie a=b)
        POST
        POST s to c (cookie a=b)
        POST to c (cookie a=b)
    "#]],
    );
}
