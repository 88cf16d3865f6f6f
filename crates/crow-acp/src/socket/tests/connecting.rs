//! Servers that a client may meet, and the resulting errors.

use super::*;

/// Answers one connection with this text and returns the client's error.
async fn meets(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let here = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = [0; 4096];
        let _ = stream.read(&mut head).await.unwrap();
        stream.write_all(answer.as_bytes()).await.unwrap();
        if answer.is_empty() {
            pending::<()>().await;
        }
    });
    let headers = [("Authorization".to_owned(), "Bearer very-secret".to_owned())];
    let url = format!("ws://{here}/acp?key=very-secret");
    let patience = if answer.is_empty() { SOON } else { PATIENCE };
    let error =
        connect_socket(&url, &headers, Instant::now() + patience, &TaskTracker::new()).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("very-secret"), "{error:?}");
    error.to_string().replace(&here.to_string(), "HERE")
}

#[tokio::test]
async fn connection_errors_are_sentences() {
    let mut heard = String::new();
    for answer in [
        "HTTP/1.1 401 Unauthorized\r\n\r\n",
        "HTTP/1.1 403 Forbidden\r\n\r\n",
        "HTTP/1.1 404 Not Found\r\n\r\n",
        "HTTP/1.1 302 Found\r\nLocation: ws://elsewhere/\r\n\r\n",
        "HTTP/1.1 503 Service Unavailable\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\nhello",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: wrong\r\n\r\n",
        "SSH-2.0-OpenSSH\r\n",
        "",
    ] {
        heard.push_str(&format!("{}\n", meets(answer).await));
    }
    check(
        &heard,
        &expect![[r#"
            HERE rejected the connection: the token was rejected (HTTP 401)
            HERE rejected the connection: this client is not permitted (HTTP 403)
            HERE rejected the connection: there is no agent at this path (HTTP 404)
            HERE rejected the connection: it redirects elsewhere, and redirects are not followed; use the final address (HTTP 302)
            HERE rejected the connection: it has too many clients, or is not ready (HTTP 503)
            HERE rejected the connection: it did not switch to WebSocket (HTTP 200)
            HERE does not speak WebSocket: WebSocket protocol error: Key mismatch in "Sec-WebSocket-Accept" header
            HERE does not speak WebSocket: WebSocket protocol error: httparse error: invalid HTTP version
            HERE does not answer in time
        "#]],
    );
}

#[tokio::test]
async fn invalid_urls_and_headers_are_rejected() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let unused = format!("ws://{}", free.local_addr().unwrap());
    drop(free);
    let header = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    let mut heard = String::new();
    for (url, headers) in [
        ("ftp://127.0.0.1/acp", vec![]),
        ("127.0.0.1:80", vec![]),
        ("http://127.0.0.1/", header("Acp-Session-Id", "s")),
        ("http://127.0.0.1/", header("Content-Type", "text/plain")),
        ("https://user:very-secret@127.0.0.1/", vec![]),
        ("ws://", vec![]),
        ("ws://user:very-secret@127.0.0.1/", vec![]),
        ("ws://127.0.0.1:99999/", vec![]),
        ("ws://127.0.0.1/", header("Host", "evil")),
        ("ws://127.0.0.1/", header("X", "very-secret\n")),
        ("ws://127.0.0.1/", header("X Y", "very-secret")),
        (unused.as_str(), vec![]),
    ] {
        let error =
            connect_socket(url, &headers, Instant::now() + PATIENCE, &TaskTracker::new()).await.unwrap_err();
        assert!(!format!("{error} {error:?}").contains("very-secret"), "{error:?}");
        heard.push_str(&format!("{error}\n").replace(&unused["ws://".len()..], "UNUSED"));
    }
    check(
        &heard,
        &expect![[r#"
            the address begins with none of ws://, wss://, http://, https://
            the address begins with none of ws://, wss://, http://, https://
            the header "Acp-Session-Id" cannot be sent: its name or a character in it is not permitted
            the header "Content-Type" cannot be sent: its name or a character in it is not permitted
            the address contains a name or password; put the token into a header instead
            the address is not a URL
            the address contains a name or password; put the token into a header instead
            the port is invalid
            the header "Host" cannot be sent: its name or a character in it is not permitted
            the header "X" cannot be sent: its name or a character in it is not permitted
            the header "X Y" cannot be sent: its name or a character in it is not permitted
            UNUSED cannot be reached: Connection refused (os error 111)
        "#]],
    );
}

#[tokio::test]
async fn unencrypted_server_differs_from_a_missing_one() {
    let server = Server::echo().await;
    let url = format!("wss://127.0.0.1:{}", server.port);
    let error = connect_socket_with(
        &url,
        &[],
        Instant::now() + PATIENCE,
        SocketClientSettings { ping_interval: NEVER, load_roots: ours_alone, tasks: TaskTracker::new() },
    )
    .await
    .unwrap_err();
    check(
        &error.to_string().replace(&server.port.to_string(), "PORT"),
        &expect![
            "127.0.0.1:PORT cannot be reached: does it speak TLS? try ws:// (received corrupt message of type InvalidContentType)"
        ],
    );
    server.end().await;
}

/// A self-signed server certificate, created once.
fn certificate() -> &'static rcgen::CertifiedKey<rcgen::KeyPair> {
    static MADE: std::sync::OnceLock<rcgen::CertifiedKey<rcgen::KeyPair>> = std::sync::OnceLock::new();
    MADE.get_or_init(|| rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap())
}

fn ours_alone() -> rustls::RootCertStore {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate().cert.der().clone()).unwrap();
    roots
}

fn tls_acceptor() -> tokio_rustls::TlsAcceptor {
    let key = rustls::pki_types::PrivateKeyDer::try_from(certificate().signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.unwrap().with_no_client_auth();
    let config = config.with_single_cert(vec![certificate().cert.der().clone()], key).unwrap();
    tokio_rustls::TlsAcceptor::from(Arc::new(config))
}

#[tokio::test]
async fn tls_servers_need_a_valid_certificate() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        let tls = tls_acceptor();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(stream) = tls.accept(stream).await else { continue };
            let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
            let said = socket.next().await.unwrap().unwrap();
            socket.send(said).await.unwrap();
        }
    });
    let mut heard = String::new();
    for (host, roots) in [
        ("localhost", ours_alone as fn() -> _),
        ("127.0.0.1", ours_alone),
        ("localhost", load_root_certificates),
    ] {
        let url = format!("wss://{host}:{port}");
        let connected = connect_socket_with(
            &url,
            &[],
            Instant::now() + PATIENCE,
            SocketClientSettings { ping_interval: NEVER, load_roots: roots, tasks: TaskTracker::new() },
        )
        .await;
        match connected {
            Ok(mut lines) => {
                lines.outgoing.send("{}".to_owned()).await.unwrap();
                heard.push_str(&format!("{:?}\n", lines.incoming.next().await));
            }
            Err(error) => heard.push_str(&format!("{error}\n").replace(&port.to_string(), "PORT")),
        }
    }
    check(
        &heard,
        &expect![[r#"
        Some(Ok("{}"))
        127.0.0.1:PORT cannot be reached: invalid peer certificate: certificate not valid for name "127.0.0.1"; certificate is only valid for DnsName("localhost")
        localhost:PORT cannot be reached: invalid peer certificate: UnknownIssuer
    "#]],
    );
    serving.abort();
}

#[tokio::test]
async fn https_servers_need_a_valid_certificate() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        let tls = tls_acceptor();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = tls.accept(stream).await else { continue };
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).await.unwrap();
            let answer = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(answer).await.unwrap();
        }
    });
    let plain = Server::echo().await;
    let mut heard = String::new();
    for (host, roots, port) in [
        ("localhost", ours_alone as fn() -> _, port),
        ("127.0.0.1", ours_alone, port),
        ("localhost", load_root_certificates, port),
        ("127.0.0.1", ours_alone, plain.port),
    ] {
        let mut lines = connect_socket_with(
            &format!("https://{host}:{port}/acp?key=very-secret"),
            &[],
            Instant::now() + PATIENCE,
            SocketClientSettings { ping_interval: NEVER, load_roots: roots, tasks: TaskTracker::new() },
        )
        .await
        .unwrap();
        lines.outgoing.send("{}".to_owned()).await.unwrap();
        let error = timeout(PATIENCE, lines.incoming.next()).await.unwrap().unwrap().unwrap_err();
        heard.push_str(&format!("{error}\n").replace(&port.to_string(), "PORT"));
    }
    assert!(!heard.contains("very-secret"), "{heard}");
    check(
        &heard,
        &expect![[r#"
        localhost:PORT rejected the connection: the token was rejected (HTTP 401)
        127.0.0.1:PORT cannot be reached: invalid peer certificate: certificate not valid for name "127.0.0.1"; certificate is only valid for DnsName("localhost")
        localhost:PORT cannot be reached: invalid peer certificate: UnknownIssuer
        127.0.0.1:PORT cannot be reached: does it speak TLS? try http:// (received corrupt message of type InvalidContentType)
    "#]],
    );
    serving.abort();
    plain.end().await;
}
