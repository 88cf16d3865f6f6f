//! A bridge with weaker checks, for clients of a trusted machine.

use expect_test::expect;
use futures_util::SinkExt;
use nix::sys::signal::Signal;
use tokio_tungstenite::tungstenite::Message;

use super::{check, check_refused, fixture::Server, nowhere};

/// The client of the Python version: no token, no path, bytes instead of text.
#[tokio::test]
async fn trusted_loopback_needs_no_token() {
    let args = ["acp-bridge", "cat", "--port", "0", "--log", "debug", "--no-token", "--path", "*"];
    let mut server = Server::start(nowhere(), &args);
    assert!(server.url.ends_with(&format!("{}/", server.port())), "{}", server.url);
    let mut client = server.client_with(&[]).await.expect("let in");
    client.socket.send(Message::binary(&b"{\"jsonrpc\":\"2.0\"}"[..])).await.expect("it listens");
    check(&client.hear().await, &expect![[r#"{"jsonrpc":"2.0"}"#]]);
    let page = server.client_with(&[("origin", "http://localhost:3000")]).await;
    assert!(page.is_err_and(|error| error.to_string().contains("403")));
    assert!(server.client_with(&[("host", "evil.example")]).await.is_err(), "a page that was lured here");
    drop(client);
    server.signal(Signal::SIGTERM);
    let (_, said) = server.ended();
    check(
        &said,
        &expect![[r#"
        warning: no token is required: every program of every user on this machine can drive the agent
    "#]],
    );
    assert!(!server.world.project().join("debug").exists(), "--log is a level");
}

#[tokio::test]
async fn allowed_origin_is_accepted() {
    let origin = "http://localhost:3000";
    let args = [
        "acp-bridge",
        "--allow-origin",
        origin,
        "--env",
        "SAID=hello",
        "--",
        "sh",
        "-c",
        "echo \"{\\\"said\\\":\\\"$SAID\\\"}\"; exec cat",
    ];
    let server = Server::start(nowhere(), &args);
    let token = format!("Bearer {}", server.token);
    let mut client =
        server.client_with(&[("authorization", &token), ("origin", origin)]).await.expect("let in");
    check(&client.hear().await, &expect![[r#"{"said":"hello"}"#]]);
    for other in ["https://evil.example", "http://localhost:3001"] {
        let refused = server.client_with(&[("authorization", &token), ("origin", other)]).await;
        assert!(refused.is_err_and(|error| error.to_string().contains("403")), "{other}");
    }
    assert!(server.client_with(&[("origin", origin)]).await.is_err(), "the token is wanted all the same");
}

#[test]
fn other_machines_are_rejected_without_a_token() {
    check_refused(
        &nowhere(),
        &["acp-bridge", "--no-token", "--host", "0.0.0.0", "--port", "0", "cat"],
        &expect![[r#"
            Some(2) error: 0.0.0.0 is reachable from other machines, so a token is required
            hint: leave out --no-token, or listen on 127.0.0.1
        "#]],
    );
}
