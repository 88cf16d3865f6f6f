//! Both ends, on real sockets.

mod connecting;
mod http_client;
mod streamable_http;

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use expect_test::{Expect, expect};
use futures_util::{SinkExt, StreamExt};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::{Instant, timeout},
};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{Message, client::IntoClientRequest},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    connect::{SocketClientSettings, connect_socket_with, load_root_certificates},
    connections::PENDING_MAX,
    limits::{MESSAGE_BYTES_MAX, websocket_config},
    listen::{CLIENTS_MAX, SHUTDOWN_TIMEOUT, SocketServerTiming, serve_socket_with},
    message_pump::CountingStream,
    *,
};
use crate::transport::LineTransport;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// So long that it has no effect.
const NEVER: Duration = Duration::from_secs(3600);

/// So short that a test waits for three of them.
const SOON: Duration = Duration::from_millis(50);

/// No limit that a test reaches.
const PATIENT: SocketServerTiming =
    SocketServerTiming { ping_interval: NEVER, handshake_timeout: NEVER, absence_max: NEVER };

/// So large that the number of lines is not the limit.
const LARGE: usize = 4_000_000;

struct Server {
    port: u16,
    cancel: CancellationToken,
    listening: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Serves until the handler ends, or the server does.
    async fn start<F>(
        timing: SocketServerTiming,
        serve: impl Fn(LineTransport) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = CloseReason> + Send + 'static,
    {
        let cancel = CancellationToken::new();
        let ends = cancel.clone();
        let serve_until_end = move |lines| {
            let serving = serve(lines);
            let ends = ends.clone();
            async move { ends.run_until_cancelled(serving).await.unwrap_or(CloseReason::GoingAway) }
        };
        Self::start_until(cancel, timing, serve_until_end).await
    }

    async fn start_until<F>(
        cancel: CancellationToken,
        timing: SocketServerTiming,
        serve: impl Fn(LineTransport) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = CloseReason> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let door = SocketListener {
            listener,
            name: None,
            admission: AdmissionPolicy::with_token(BearerToken::new("secret".into())),
        };
        let port: u16 = door.url().unwrap().rsplit([':', '/']).nth(1).unwrap().parse().unwrap();
        let listening = tokio::spawn(serve_socket_with(door, cancel.clone(), timing, serve));
        Self { port, cancel, listening }
    }

    /// Returns every line.
    async fn echo() -> Self {
        Self::start(PATIENT, echo).await
    }

    async fn knock(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).await.unwrap()
    }

    async fn socket(&self) -> WebSocketStream<TcpStream> {
        let mut request = format!("ws://127.0.0.1:{}/acp", self.port).into_client_request().unwrap();
        request.headers_mut().insert("authorization", "Bearer secret".parse().unwrap());
        let (socket, response) =
            client_async_with_config(request, self.knock().await, Some(websocket_config())).await.unwrap();
        assert_eq!(response.headers()["acp-connection-id"].len(), 32);
        socket
    }

    async fn lines(&self) -> LineTransport {
        let headers = [("Authorization".to_owned(), "Bearer secret".to_owned())];
        let url = format!("ws://127.0.0.1:{}", self.port);
        connect_socket(&url, &headers, Instant::now() + PATIENCE, &TaskTracker::new()).await.unwrap()
    }

    /// Sends a request head as it is and returns the first line of the answer.
    async fn head(&self, head: &str) -> String {
        let mut stream = self.knock().await;
        let head = head.replace("PORT", &self.port.to_string());
        stream.write_all(format!("{}\r\n\r\n", head.replace('\n', "\r\n")).as_bytes()).await.unwrap();
        let mut answer = String::new();
        let reading = async {
            let mut byte = [0];
            while !answer.ends_with("\r\n") && stream.read(&mut byte).await.unwrap() == 1 {
                answer.push(char::from(byte[0]));
            }
        };
        timeout(PATIENCE, reading).await.unwrap();
        answer.trim().to_owned()
    }

    async fn end(self) {
        self.cancel.cancel();
        timeout(PATIENCE, self.listening).await.unwrap().unwrap();
    }
}

async fn echo(lines: LineTransport) -> CloseReason {
    let (mut outgoing, mut incoming) = (lines.outgoing, lines.incoming);
    while let Some(Ok(line)) = incoming.next().await {
        if outgoing.send(line).await.is_err() {
            break;
        }
    }
    CloseReason::Normal
}

async fn next(socket: &mut WebSocketStream<TcpStream>) -> String {
    match timeout(PATIENCE, socket.next()).await.unwrap() {
        Some(Ok(Message::Text(text))) => text.to_string(),
        Some(Ok(Message::Close(Some(frame)))) => format!("close {}: {}", frame.code, frame.reason),
        Some(Ok(other)) => format!("{other:?}"),
        Some(Err(error)) => format!("error: {error}"),
        None => "the end".into(),
    }
}

const GOOD: &str = "GET /acp HTTP/1.1\nHost: 127.0.0.1:PORT\nAuthorization: Bearer secret\nConnection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";

#[track_caller]
fn check(heard: &str, expected: &Expect) {
    expected.assert_eq(heard);
}

#[tokio::test]
async fn admission_requires_token_path_and_origin() {
    let server = Server::echo().await;
    let cases = [
        ("as it should be", GOOD.to_owned()),
        ("through a tunnel", GOOD.replace("127.0.0.1:PORT", "localhost:9")),
        ("by another address", GOOD.replace("127.0.0.1:PORT", "[::1]:PORT")),
        ("no token", GOOD.replace("Authorization", "X")),
        ("a wrong token", GOOD.replace("secret", "secreT")),
        ("half a token", GOOD.replace("secret", "secre")),
        ("an empty token", GOOD.replace("secret", "")),
        ("another scheme", GOOD.replace("Bearer", "Basic_")),
        ("a page", format!("{GOOD}\nOrigin: http://127.0.0.1:PORT")),
        ("a page from nowhere", format!("{GOOD}\nOrigin: null")),
        ("a lured page", GOOD.replace("127.0.0.1:PORT", "evil.example:PORT")),
        ("a lookalike", GOOD.replace("127.0.0.1:PORT", "127.0.0.1.evil.example")),
        ("a name before", GOOD.replace("127.0.0.1:PORT", "localhost@evil.example")),
        ("two hosts", format!("{GOOD}\nHost: evil.example")),
        ("no host", GOOD.replace("Host", "X")),
        ("elsewhere", GOOD.replace("/acp", "/mcp")),
        ("elsewhere, without a token", GOOD.replace("/acp", "/mcp").replace("Bearer", "B")),
        ("a post of nothing", GOOD.replace("GET", "POST")),
        ("a put", GOOD.replace("GET", "PUT")),
        ("no socket", GOOD.replace("Upgrade: websocket", "X: y")),
        ("an old socket", GOOD.replace("Version: 13", "Version: 8")),
        ("garbage", "what".to_owned()),
        ("a long head", format!("{GOOD}\nX: {}", "x".repeat(20_000))),
    ];
    let mut heard = String::new();
    for (what, head) in cases {
        heard.push_str(&format!("{what}: {}\n", server.head(&head).await));
    }
    check(
        &heard,
        &expect![[r#"
            as it should be: HTTP/1.1 101 Switching Protocols
            through a tunnel: HTTP/1.1 101 Switching Protocols
            by another address: HTTP/1.1 101 Switching Protocols
            no token: HTTP/1.1 401 Unauthorized
            a wrong token: HTTP/1.1 401 Unauthorized
            half a token: HTTP/1.1 401 Unauthorized
            an empty token: HTTP/1.1 401 Unauthorized
            another scheme: HTTP/1.1 401 Unauthorized
            a page: HTTP/1.1 403 Forbidden
            a page from nowhere: HTTP/1.1 403 Forbidden
            a lured page: HTTP/1.1 403 Forbidden
            a lookalike: HTTP/1.1 403 Forbidden
            a name before: HTTP/1.1 403 Forbidden
            two hosts: HTTP/1.1 403 Forbidden
            no host: HTTP/1.1 403 Forbidden
            elsewhere: HTTP/1.1 404 Not Found
            elsewhere, without a token: HTTP/1.1 401 Unauthorized
            a post of nothing: HTTP/1.1 415 Unsupported Media Type
            a put: HTTP/1.1 405 Method Not Allowed
            no socket: HTTP/1.1 406 Not Acceptable
            an old socket: HTTP/1.1 426 Upgrade Required
            garbage: HTTP/1.1 400 Bad Request
            a long head: HTTP/1.1 431 Request Header Fields Too Large
        "#]],
    );
    server.end().await;
}

#[tokio::test]
async fn silent_connection_is_closed_while_others_work() {
    let server = Server::start(SocketServerTiming { handshake_timeout: SOON, ..PATIENT }, echo).await;
    let mut slow = server.knock().await;
    slow.write_all(b"GET /acp HTTP/1.1\r\nHost: 127").await.unwrap();
    let mut socket = server.socket().await;
    let mut rest = Vec::new();
    // Its connection ends; how is up to the system.
    let _ = timeout(PATIENCE, slow.read_to_end(&mut rest)).await.unwrap();
    socket.send(Message::text("{}")).await.unwrap();
    check(&next(&mut socket).await, &expect![["{}"]]);
}

#[tokio::test]
async fn silent_connections_do_not_block_clients() {
    let server = Server::echo().await;
    let mut early = server.socket().await;
    let mut silent = Vec::new();
    for _ in 0..2 * PENDING_MAX {
        silent.push(server.knock().await);
    }
    let mut late = timeout(PATIENCE, server.socket()).await.unwrap();
    for socket in [&mut early, &mut late] {
        socket.send(Message::text("{}")).await.unwrap();
        check(&next(socket).await, &expect![["{}"]]);
    }
    // The first of them was dropped.
    let mut rest = Vec::new();
    let _ = timeout(PATIENCE, silent[0].read_to_end(&mut rest)).await.unwrap();
    // The others are not waited for.
    timeout(SHUTDOWN_TIMEOUT / 2, server.end()).await.unwrap();
}

#[tokio::test]
async fn frames_are_lines() {
    let server = Server::echo().await;
    let mut socket = server.socket().await;
    let mut heard = String::new();
    for message in [
        Message::text("{\"a\":\n \"b\\n\"}\r\n"),
        Message::text("\n"),
        Message::binary(vec![1, 0xFF, 3]),
        Message::text("{\"still\": \"here\"}"),
        Message::Close(None),
    ] {
        let is_blank = matches!(&message, Message::Text(text) if text.trim().is_empty());
        socket.send(message).await.unwrap();
        if !is_blank {
            heard.push_str(&format!("{:?}\n", next(&mut socket).await));
        }
    }
    check(
        &heard,
        &expect![[r#"
        "{\"a\":  \"b\\n\"}  "
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"Parse error\",\"data\":{\"kind\":\"protocol\",\"details\":\"Messages are text; a binary frame that holds none was not read.\"}}}"
        "{\"still\": \"here\"}"
        "Close(None)"
    "#]],
    );
    check(&next(&mut socket).await, &expect!["the end"]);
    server.end().await;
}

#[tokio::test]
async fn large_messages_go_both_ways_and_larger_ones_are_refused() {
    let server = Server::echo().await;
    let mut lines = server.lines().await;
    let large = format!("{{\"large\":\"{}\"}}", "x".repeat(50_000_000));
    lines.outgoing.send(large.clone()).await.unwrap();
    let back = timeout(PATIENCE, lines.incoming.next()).await.unwrap().unwrap().unwrap();
    assert!(back == large, "it came back as it was, {} bytes of {}", back.len(), large.len());
    drop(lines);
    let mut socket = server.socket().await;
    let too_large = Message::text("x".repeat(MESSAGE_BYTES_MAX + 1));
    // It may be rejected before it is sent.
    let _ = socket.send(too_large).await;
    let heard = next(&mut socket).await;
    assert!(heard.contains("1009") || heard.contains("error"), "{heard}");
    server.end().await;
}

#[tokio::test]
async fn slow_reader_stops_the_sender() {
    let n_said = Arc::new(AtomicUsize::new(0));
    let counting = n_said.clone();
    let (stuck, mut is_stuck) = mpsc::channel(1);
    let server = Server::start(PATIENT, move |mut lines: LineTransport| {
        let (n_said, stuck) = (counting.clone(), stuck.clone());
        async move {
            loop {
                // Beyond this nothing moves unless the peer reads.
                match timeout(Duration::from_millis(500), lines.outgoing.send("x".repeat(LARGE))).await {
                    Ok(Ok(())) => _ = n_said.fetch_add(1, Ordering::Relaxed),
                    Ok(Err(_)) => return CloseReason::Normal,
                    Err(_) => {
                        stuck.send(()).await.unwrap();
                        return pending().await;
                    }
                }
            }
        }
    })
    .await;
    let socket = server.socket().await;
    timeout(PATIENCE, is_stuck.recv()).await.unwrap().unwrap();
    let n_said = n_said.load(Ordering::Relaxed);
    assert!((16..40).contains(&n_said), "64 MiB wait, and what the system holds, not {n_said} times 4 MB");
    drop(socket);
}

#[tokio::test]
async fn slow_reader_does_not_delay_shutdown() {
    let (stuck, mut is_stuck) = mpsc::channel(1);
    let cancel = CancellationToken::new();
    let ends = cancel.clone();
    let server = Server::start_until(cancel, PATIENT, move |mut lines: LineTransport| {
        let (stuck, ends) = (stuck.clone(), ends.clone());
        async move {
            while timeout(Duration::from_millis(500), lines.outgoing.send("x".repeat(LARGE))).await.is_ok() {}
            stuck.send(()).await.unwrap();
            ends.cancelled().await;
            CloseReason::GoingAway
        }
    })
    .await;
    let socket = server.socket().await;
    timeout(PATIENCE, is_stuck.recv()).await.unwrap().unwrap();
    let since = Instant::now();
    server.end().await;
    // One second for the last lines and one for the close frame; after five every client is dropped.
    assert!(since.elapsed() < Duration::from_secs(5), "it took {:?}", since.elapsed());
    drop(socket);
}

#[tokio::test]
async fn full_queue_stops_the_other_side() {
    let (arrived, mut arrivals) = mpsc::channel::<LineTransport>(1);
    let server = Server::start(PATIENT, move |lines: LineTransport| {
        let arrived = arrived.clone();
        async move {
            arrived.send(lines).await.unwrap();
            pending().await
        }
    })
    .await;
    let mut socket = server.socket().await;
    let mut lines = arrivals.recv().await.unwrap();
    let mut n_sent = 0;
    while timeout(Duration::from_millis(500), socket.send(Message::text("x".repeat(LARGE)))).await.is_ok() {
        n_sent += 1;
        assert!(n_sent < 40, "64 MiB wait, and what the system holds");
    }
    let mut n_heard = 0;
    while n_heard < n_sent {
        let line = timeout(PATIENCE, lines.incoming.next()).await.unwrap().unwrap().unwrap();
        assert_eq!(line.len(), LARGE);
        n_heard += 1;
    }
}

#[tokio::test]
async fn client_limit_is_reported_and_freed() {
    let server = Server::echo().await;
    let mut sockets = Vec::new();
    for _ in 0..CLIENTS_MAX {
        sockets.push(server.socket().await);
    }
    check(&server.head(GOOD).await, &expect!["HTTP/1.1 503 Service Unavailable"]);
    let mut leaving = sockets.pop().unwrap();
    leaving.close(None).await.unwrap();
    while leaving.next().await.is_some() {}
    let again = async {
        while server.head(GOOD).await.contains("503") {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, again).await.unwrap();
    server.end().await;
    check(&next(&mut sockets[0]).await, &expect!["close 1001: the server is shutting down"]);
}

#[tokio::test]
async fn half_open_clients_are_found_and_live_ones_are_kept() {
    let (ended, mut ends) = mpsc::channel(2);
    let server = Server::start(
        SocketServerTiming { ping_interval: SOON, ..PATIENT },
        move |mut lines: LineTransport| {
            let ended = ended.clone();
            async move {
                let lines = &mut lines;
                let last = lines.incoming.next().await;
                ended.send(format!("{last:?}")).await.unwrap();
                CloseReason::Normal
            }
        },
    )
    .await;
    // Reads, and so answers every ping.
    let mut alive = server.socket().await;
    let reading = tokio::spawn(async move {
        let mut n_pings = 0;
        while let Some(Ok(message)) = alive.next().await {
            n_pings += usize::from(matches!(message, Message::Ping(_)));
            if n_pings == 6 {
                alive.send(Message::text("{}")).await.unwrap();
            }
        }
    });
    let silent = server.socket().await;
    let mut heard = [
        timeout(PATIENCE, ends.recv()).await.unwrap().unwrap(),
        timeout(PATIENCE, ends.recv()).await.unwrap().unwrap(),
    ];
    heard.sort();
    check(
        &heard.join("\n"),
        &expect![[r#"
        Some(Err(Custom { kind: Other, error: "the other side no longer answers" }))
        Some(Ok("{}"))"#]],
    );
    drop(silent);
    reading.abort();
}

#[tokio::test]
async fn half_open_servers_are_found() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}", listener.local_addr().unwrap());
    let silent = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let socket = tokio_tungstenite::accept_async(stream).await.unwrap();
        pending::<()>().await;
        drop(socket);
    });
    let mut lines = connect_socket_with(
        &url,
        &[],
        Instant::now() + PATIENCE,
        SocketClientSettings {
            ping_interval: SOON,
            load_roots: load_root_certificates,
            tasks: TaskTracker::new(),
        },
    )
    .await
    .unwrap();
    let heard = timeout(PATIENCE, lines.incoming.next()).await.unwrap();
    check(
        &format!("{heard:?}"),
        &expect![[r#"Some(Err(Custom { kind: Other, error: "the other side no longer answers" }))"#]],
    );
    silent.abort();
}

#[tokio::test]
async fn connection_lost_inside_a_message_is_reported() {
    let (ended, mut ends) = mpsc::channel(1);
    let server = Server::start(PATIENT, move |mut lines: LineTransport| {
        let ended = ended.clone();
        async move {
            let lines = &mut lines;
            let heard = [lines.incoming.next().await, lines.incoming.next().await];
            ended.send(format!("{heard:?}")).await.unwrap();
            CloseReason::Normal
        }
    })
    .await;
    let mut socket = server.socket().await;
    socket.send(Message::text("{}")).await.unwrap();
    // The head of a masked text frame of 100 bytes, and a few of them.
    socket.get_mut().write_all(&[0x81, 0x80 | 100, 1, 2, 3, 4, 5, 6, 7]).await.unwrap();
    drop(socket);
    let heard = timeout(PATIENCE, ends.recv()).await.unwrap().unwrap();
    check(
        &heard,
        &expect![[
            r#"[Some(Ok("{}")), Some(Err(Custom { kind: Other, error: "the other side disconnected without closing the connection" }))]"#
        ]],
    );
    server.end().await;
}

#[tokio::test]
async fn close_frame_has_the_agents_stderr() {
    let server = Server::start(PATIENT, |mut lines: LineTransport| async move {
        lines.outgoing.send("{\"last\":1}".into()).await.unwrap();
        let stderr = format!("{} thread panicked\n  at ünder line 3", "noise ".repeat(50));
        CloseReason::AgentEnded { summary: "the agent ended with exit code 3".into(), stderr }
    })
    .await;
    let mut socket = server.socket().await;
    let mut heard = format!("{}\n{}\n", next(&mut socket).await, next(&mut socket).await);
    let mut lines = server.lines().await;
    heard.push_str(&format!("{:?}\n", lines.incoming.next().await));
    heard.push_str(&format!("{:?}\n", lines.incoming.next().await));
    heard.push_str(&format!("{:?}\n", lines.incoming.next().await.map(drop)));
    check(
        &heard,
        &expect![[r#"
        {"last":1}
        close 1011: the agent ended with exit code 3: se noise noise noise noise noise noise noise noise noise thread panicked at ünder line 3
        Some(Ok("{\"last\":1}"))
        Some(Err(Custom { kind: Other, error: "the other side closed it (1011): the agent ended with exit code 3: se noise noise noise noise noise noise noise noise noise thread panicked at ünder line 3" }))
        None
    "#]],
    );
}

#[tokio::test]
async fn reader_that_makes_room_is_alive() {
    let (near, mut far) = tokio::io::duplex(4);
    let mut stream = CountingStream::new(near);
    let n_alive = stream.alive_counter();
    stream.write_all(b"full").await.unwrap();
    assert_eq!(n_alive.load(Ordering::Relaxed), 0, "nothing was received yet");
    let mut read = [0; 4];
    let ((), received) =
        tokio::join!(async { stream.write_all(b"more").await.unwrap() }, far.read_exact(&mut read));
    received.unwrap();
    assert_eq!(n_alive.load(Ordering::Relaxed), 4);
}
