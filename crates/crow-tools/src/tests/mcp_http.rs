use std::{
    fmt::Write as _,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use crow_core::{McpServer, McpTransport};
use expect_test::expect;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

use super::mcp::{Session, check, check_listed};

/// Serves MCP at `/mcp/` for clients with the key, and redirects `/mcp` there.
async fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (events, sessions) = (Events::default(), Arc::default());
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, events.clone(), Arc::clone(&sessions)));
        }
    });
    format!("http://{address}")
}

/// The open event streams.
type Events = Arc<Mutex<Vec<mpsc::Sender<String>>>>;

async fn answer(stream: TcpStream, events: Events, sessions: Arc<AtomicU32>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await.ok().filter(|n_bytes| *n_bytes > 0)?;
            match line.trim_end() {
                "" => break,
                line => head.push(line.to_lowercase()),
            }
        }
        let n_bytes = head.iter().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; n_bytes.map_or(0, |n_bytes| n_bytes.parse().unwrap())];
        stream.read_exact(&mut body).await.ok()?;
        let message = serde_json::from_slice(&body).unwrap_or(Value::Null);
        if head[0].starts_with("get /sse") {
            return stream_events(stream, &head, &events).await;
        }
        let (status, headers, mut body) = reply(&head, &message, &sessions);
        if head[0].starts_with("post /messages") && !body.is_empty() {
            let event = format!("event: message\ndata: {}\n\n", std::mem::take(&mut body));
            let streams = events.lock().unwrap().clone();
            for stream in streams {
                let _ = stream.send(event.clone()).await;
            }
        }
        let mut text = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
        for header in headers {
            write!(text, "{header}\r\n").unwrap();
        }
        stream.write_all(format!("{text}\r\n{body}").as_bytes()).await.ok()?;
    }
}

async fn stream_events(mut stream: BufReader<TcpStream>, head: &[String], events: &Events) -> Option<()> {
    let place = head[0].split([' ', '?']).nth(2).unwrap_or_default();
    let place = if place == "elsewhere" { "http://127.0.0.2:1/messages" } else { "/messages?id=1" };
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: hello\n\nevent: endpoint\ndata: ";
    let (sender, mut receiver) = mpsc::channel(8);
    events.lock().unwrap().push(sender);
    stream.write_all(format!("{head}{place}\n\n").as_bytes()).await.ok()?;
    while let Some(event) = receiver.recv().await {
        stream.write_all(event.as_bytes()).await.ok()?;
    }
    Some(())
}

/// Returns the status and the headers of a request that gets no answer.
fn refusal(head: &[String]) -> Option<(&'static str, Vec<&'static str>)> {
    if head[0].starts_with("post /mcp http") {
        return Some(("307 Temporary Redirect", vec!["location: /mcp/"]));
    }
    if head[0].starts_with("post /away http") {
        return Some(("307 Temporary Redirect", vec!["location: http://127.0.0.2:1/mcp/"]));
    }
    // The server has forgotten the first response, and cannot be reached for the second.
    if head[0].starts_with("get /mcp/ http") && head.iter().any(|line| line == "last-event-id: gone") {
        return Some(("404 Not Found", vec![]));
    }
    if head[0].starts_with("get /mcp/ http") && head.iter().any(|line| line == "last-event-id: down") {
        return Some(("503 Service Unavailable", vec![]));
    }
    if !head[0].starts_with("post /mcp/ http") && !head[0].starts_with("post /messages") {
        return Some(("405 Method Not Allowed", vec![]));
    }
    if !head.iter().any(|line| line == "x-key: secret") {
        return Some(("401 Unauthorized", vec!["www-authenticate: Bearer"]));
    }
    None
}

fn reply(
    head: &[String],
    message: &Value,
    sessions: &AtomicU32,
) -> (&'static str, Vec<&'static str>, String) {
    if let Some((status, header)) = refusal(head) {
        return (status, header, String::new());
    }
    let mut session = "mcp-session-id: 1";
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => {
            if sessions.fetch_add(1, Ordering::Relaxed) > 0 {
                session = "mcp-session-id: 2";
            }
            json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "test", "version": "1"},
            })
        }
        "tools/list" => json!({"tools": [{"name": "shout", "inputSchema": {"type": "object"}}]}),
        // The server has forgotten its first session.
        "tools/call"
            if message["params"]["arguments"]["text"] == "forgotten"
                && head.iter().any(|line| line == "mcp-session-id: 1") =>
        {
            return ("404 Not Found", vec![], String::new());
        }
        // The same, as some servers say it: with an error that names no request.
        "tools/call"
            if message["params"]["arguments"]["text"] == "unknown"
                && head.iter().any(|line| line == "mcp-session-id: 1") =>
        {
            let error = json!({"jsonrpc": "2.0", "error": {"code": -32000, "message": "no valid session"}});
            return ("400 Bad Request", vec!["content-type: application/json"], error.to_string());
        }
        "tools/call" if message["params"]["arguments"]["text"] == "fail" => {
            return ("503 Service Unavailable", vec![], "down".to_owned());
        }
        // Event streams that end without an answer.
        "tools/call" if message["params"]["arguments"]["text"] == "cut" => {
            return ("200 OK", vec!["content-type: text/event-stream"], ": hello\n\n".to_owned());
        }
        // The same with an event, so that the client may resume them.
        "tools/call"
            if ["gone", "down"].iter().any(|text| message["params"]["arguments"]["text"] == *text) =>
        {
            let event =
                format!("id: {}\ndata: \n\n", message["params"]["arguments"]["text"].as_str().unwrap());
            return ("200 OK", vec!["content-type: text/event-stream"], event);
        }
        "tools/call" => {
            let text = message["params"]["arguments"]["text"].as_str().unwrap_or_default().to_uppercase();
            json!({"content": [{"type": "text", "text": text}]})
        }
        _ => return ("202 Accepted", vec![], String::new()),
    };
    let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
    ("200 OK", vec!["content-type: application/json", session], body)
}

fn http(url: String, headers: &[(&str, &str)]) -> McpServer {
    let headers = headers.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    McpServer::new("web", McpTransport::Http { url, headers })
}

#[tokio::test]
async fn calls_return_their_results() {
    let calls = [
        ("shout", json!({"text": "hello"})),
        ("shout", json!({"text": "fail"})),
        ("shout", json!({"text": "again"})),
    ];
    let server = http(serve().await + "/mcp", &[("X-Key", "secret")]);
    check(
        server,
        &calls,
        expect![[r#"
            > web: shout Other Calls { server: "web", tool: "shout" }
            Completed: HELLO
            > web: shout Other Calls { server: "web", tool: "shout" }
            Failed: could not send a request to the MCP server web: HTTP 503
            > web: shout Other Calls { server: "web", tool: "shout" }
            Completed: AGAIN
        "#]],
    )
    .await;
}

#[tokio::test]
async fn response_that_ends_without_an_answer_fails_its_call_at_once() {
    let calls = [("shout", json!({"text": "cut"})), ("shout", json!({"text": "again"}))];
    let server = http(serve().await + "/mcp/", &[("X-Key", "secret")]);
    let began = Instant::now();
    check(
        server,
        &calls,
        expect![[r#"
            > web: shout Other Calls { server: "web", tool: "shout" }
            Failed: the MCP server web did not answer: its response ended early
            > web: shout Other Calls { server: "web", tool: "shout" }
            Completed: AGAIN
        "#]],
    )
    .await;
    // The time that a program gets to exit.
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn response_of_a_session_that_the_server_forgot_is_not_resumed() {
    let session = Session::settled(vec![http(serve().await + "/mcp/", &[("X-Key", "secret")])]).await;
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    let said = session.call("shout", json!({"text": "gone"})).await;
    // One attempt after the first pause.
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    expect![[r#"
        > web: shout Other Calls { server: "web", tool: "shout" }
        Failed: the MCP server web did not answer: its response ended early
    "#]]
    .assert_eq(&said);
}

#[tokio::test]
async fn response_is_resumed_for_a_limited_time() {
    let session = Session::settled(vec![http(serve().await + "/mcp/", &[("X-Key", "secret")])]).await;
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    let said = session.call("shout", json!({"text": "down"})).await;
    let n_seconds = began.elapsed().as_secs();
    assert!((15..60).contains(&n_seconds), "{n_seconds}");
    expect![[r#"
        > web: shout Other Calls { server: "web", tool: "shout" }
        Failed: the MCP server web did not answer: its response ended early
    "#]]
    .assert_eq(&said);
}

#[tokio::test]
async fn session_that_the_server_forgot_is_renewed() {
    let calls = [("shout", json!({"text": "forgotten"})), ("shout", json!({"text": "again"}))];
    let server = http(serve().await + "/mcp/", &[("X-Key", "secret")]);
    check(
        server,
        &calls,
        expect![[r#"
            > web: shout Other Calls { server: "web", tool: "shout" }
            Completed: FORGOTTEN
            > web: shout Other Calls { server: "web", tool: "shout" }
            Completed: AGAIN
        "#]],
    )
    .await;
}

#[tokio::test]
async fn session_that_the_server_does_not_know_is_renewed() {
    let calls = [("shout", json!({"text": "unknown"})), ("shout", json!({"text": "again"}))];
    let server = http(serve().await + "/mcp/", &[("X-Key", "secret")]);
    check(
        server,
        &calls,
        expect![[r#"
            > web: shout Other Calls { server: "web", tool: "shout" }
            Completed: UNKNOWN
            > web: shout Other Calls { server: "web", tool: "shout" }
            Completed: AGAIN
        "#]],
    )
    .await;
}

#[tokio::test]
async fn missing_key_is_reported() {
    check_listed(http(serve().await + "/mcp/", &[]), expect![[r#"
        news: The MCP server web did not start: it requires authentication; log in with `crow-cli auth web`, or set a key in its `headers`. Its tools are not available.
    "#]]).await;
}

#[tokio::test]
async fn redirect_to_another_server_is_not_followed() {
    check_listed(http(serve().await + "/away", &[("X-Key", "secret")]), expect![[r#"
        news: The MCP server web did not start: it answered HTTP 307 Temporary Redirect. Its tools are not available.
    "#]]).await;
}

#[tokio::test]
async fn missing_endpoint_is_reported() {
    check_listed(http(serve().await + "/nothing?key=secret", &[("X-Key", "secret")]), expect![[r#"
        news: The MCP server web did not start: it answered HTTP 405 Method Not Allowed; the older transport (`transport: sse`) was tried too: it answered HTTP 405. Its tools are not available.
    "#]]).await;
}

#[tokio::test]
async fn unreachable_server_is_reported() {
    check_listed(
        http("http://127.0.0.1:1/mcp?key=secret".to_owned(), &[]),
        expect![[r#"
        news: The MCP server web did not start: Connection refused (os error 111). Its tools are not available.
    "#]],
    )
    .await;
}

#[tokio::test]
async fn invalid_address_and_header_are_reported() {
    check_listed(http("ftp://example.org".to_owned(), &[]), expect![[r#"
        news: The MCP server web did not start: its `url` begins with neither http:// nor https://. Its tools are not available.
    "#]]).await;
    check_listed(http("nonsense".to_owned(), &[]), expect![[r#"
        news: The MCP server web did not start: its `url` is not a valid address: relative URL without a base. Its tools are not available.
    "#]]).await;
    check_listed(http("http://127.0.0.1:1/".to_owned(), &[("X-Key", "a\nb")]), expect![[r#"
        news: The MCP server web did not start: its header "X-Key" has invalid characters. Its tools are not available.
    "#]]).await;
    check_listed(http("http://127.0.0.1:1/".to_owned(), &[("Accept", "a")]), expect![[r#"
        news: The MCP server web did not start: Header name 'accept' is reserved and conflicts with default headers. Its tools are not available.
    "#]]).await;
}

fn sse(url: String, headers: &[(&str, &str)]) -> McpServer {
    match http(url, headers) {
        McpServer { name, transport: McpTransport::Http { url, headers }, .. } => {
            McpServer::new(name, McpTransport::Sse { url, headers })
        }
        other => other,
    }
}

#[tokio::test]
async fn sse_transport_works() {
    let calls = [
        ("shout", json!({"text": "hello"})),
        ("shout", json!({"text": "fail"})),
        ("shout", json!({"text": "again"})),
    ];
    check(
        sse(serve().await + "/sse", &[("X-Key", "secret")]),
        &calls,
        expect![[r#"
            > web: shout Other Calls { server: "web", tool: "shout" }
            Completed: HELLO
            > web: shout Other Calls { server: "web", tool: "shout" }
            Failed: could not send a request to the MCP server web: it answered HTTP 503
            > web: shout Other Calls { server: "web", tool: "shout" }
            Completed: AGAIN
        "#]],
    )
    .await;
}

#[tokio::test]
async fn sse_transport_reports_a_missing_key() {
    check_listed(
        sse(serve().await + "/sse", &[]),
        expect![[r#"
            news: The MCP server web did not start: it requires authentication; log in with `crow-cli auth web`, or set a key in its `headers`. Its tools are not available.
        "#]],
    )
    .await;
}

#[tokio::test]
async fn sse_transport_rejects_an_endpoint_on_another_server() {
    check_listed(
        sse(serve().await + "/sse?elsewhere", &[("X-Key", "secret")]),
        expect![[r#"
        news: The MCP server web did not start: it gave an endpoint on another server. Its tools are not available.
    "#]],
    )
    .await;
    check_listed(
        sse(serve().await + "/mcp/", &[("X-Key", "secret")]),
        expect![[r#"
        news: The MCP server web did not start: it answered HTTP 405. Its tools are not available.
    "#]],
    )
    .await;
}

#[tokio::test]
async fn address_of_the_older_transport_is_recognised() {
    let calls = [("shout", json!({"text": "hello"}))];
    let server = http(serve().await + "/sse", &[("X-Key", "secret")]);
    check(
        server,
        &calls,
        expect![[r#"
        > web: shout Other Calls { server: "web", tool: "shout" }
        Completed: HELLO
    "#]],
    )
    .await;
    let server = http(serve().await + "/nothing", &[("X-Key", "secret")]);
    check(server, &calls, expect![[r#"
        > shout Other Nothing
        Failed: there is no tool `shout`; the tools are: read, write, edit, terminal, grep, glob, web_search, web_fetch, todo
        news: The MCP server web did not start: it answered HTTP 405 Method Not Allowed; the older transport (`transport: sse`) was tried too: it answered HTTP 405. Its tools are not available.
    "#]]).await;
}
