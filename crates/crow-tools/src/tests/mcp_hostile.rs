//! Hostile and broken servers.

use crow_core::{McpServer, McpTransport};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::mcp::{Session, stdio, until};

/// Starts a server that misbehaves in this way, makes the calls and compares the results.
async fn check(words: &[&str], calls: &[(&str, Value)], expect: Expect) {
    let session = Session::settled(vec![stdio("box", words)]).await;
    let mut said = String::new();
    for (name, arguments) in calls {
        said += &session.call(name, arguments.clone()).await;
    }
    let dir = session.machine.workspace.cwd().display().to_string();
    expect.assert_eq(&(said + &session.news()).replace(&dir, "$DIR"));
}

fn hello() -> (&'static str, Value) {
    ("echo", json!({"text": "hello"}))
}

#[tokio::test]
async fn responses_without_a_request_are_ignored() {
    check(
        &["stray"],
        &[hello()],
        expect![[r#"
            > box: echo Other Calls { server: "box", tool: "echo" }
            Completed: {"text":"hello"}
        "#]],
    )
    .await;
}

#[tokio::test]
async fn stderr_without_end_is_bounded() {
    check(&["noisy"], &[hello(), ("die", json!({"words": "the last words"}))], expect![[r#"
        > box: echo Other Calls { server: "box", tool: "echo" }
        Completed: {"text":"hello"}
        > box: die Other Calls { server: "box", tool: "die" }
        Failed: the MCP server box ended before it answered: exit code 3; the end of its stderr:
        isenoisenoisenoisenoisenoisenoise
        9992 noisenoisenoisenoisenoisenoisenoisenoisenoisenoisenoise… (505 characters)
        9993 noisenoisenoisenoisenoisenoisenoisenoisenoisenoisenoise… (505 characters)
        9994 noisenoisenoisenoisenoisenoisenoisenoisenoisenoisenoise… (505 characters)
        9995 noisenoisenoisenoisenoisenoisenoisenoisenoisenoisenoise… (505 characters)
        9996 noisenoisenoisenoisenoisenoisenoisenoisenoisenoisenoise… (505 characters)
        9997 noisenoisenoisenoisenoisenoisenoisenoisenoisenoisenoise… (505 characters)
        9998 noisenoisenoisenoisenoisenoisenoisenoisenoisenoisenoise… (505 characters)
        9999 noisenoisenoisenoisenoisenoisenoisenoisenoisenoisenoise… (505 characters)
        the last words
        news: The MCP server box ended: exit code 3: the last words. It restarts when one of its tools is called.
    "#]]).await;
}

#[tokio::test]
async fn pages_that_point_to_themselves_end() {
    check(
        &["circle"],
        &[hello()],
        expect![[r#"
            > box: echo Other Calls { server: "box", tool: "echo" }
            Completed: {"text":"hello"}
        "#]],
    )
    .await;
}

#[tokio::test]
async fn message_that_is_too_long_fails_its_call() {
    check(
        &["vast"],
        &[("vast", json!({})), hello()],
        expect![[r#"
            > box: vast Other Calls { server: "box", tool: "vast" }
            Failed: the MCP server box rejected the call: its answer is longer than 16 MB
            > box: echo Other Calls { server: "box", tool: "echo" }
            Completed: {"text":"hello"}
        "#]],
    )
    .await;
}

#[tokio::test]
async fn handshake_without_end_fails() {
    let args = vec!["-c".to_owned(), "tr '\\0' v </dev/zero".to_owned()];
    let transport = McpTransport::Stdio { command: "sh".to_owned(), args, env: Vec::new() };
    let session = Session::settled(vec![McpServer::new("box", transport)]).await;
    expect![[r#"
        news: The MCP server box did not start: its answer is longer than 16 MB. Its tools are not available.
    "#]]
    .assert_eq(&session.news());
}

#[tokio::test]
async fn requests_to_the_client_are_rejected() {
    let ask = |method: &str| ("ask", json!({"method": method}));
    check(
        &["asking"],
        &[
            ask("ping"),
            ask("roots/list"),
            ask("sampling/createMessage"),
            ask("elicitation/create"),
            ask("no/such/method"),
        ],
        expect![[r#"
            > box: ask Other Calls { server: "box", tool: "ask" }
            Completed: {}
            > box: ask Other Calls { server: "box", tool: "ask" }
            Completed: {"roots":[{"uri":"file://$DIR/project"}]}
            > box: ask Other Calls { server: "box", tool: "ask" }
            Completed: {"code":-32601,"message":"declined: no model answers requests of a server here"}
            > box: ask Other Calls { server: "box", tool: "ask" }
            Completed: {"code":-32601,"message":"declined: the client of this session shows no forms to its user"}
            > box: ask Other Calls { server: "box", tool: "ask" }
            Completed: {"code":-32601,"message":"no/such/method"}
        "#]],
    )
    .await;
}

#[tokio::test]
async fn list_changes_are_rate_limited() {
    let session = Session::settled(vec![stdio("box", &["storm"])]).await;
    // Each list announces thousands of changes; they count as one.
    until("it was asked again", || session.servers.tools().len() > 10).await;
    let mut counts = Vec::new();
    for _ in 0..2 {
        let said = session.call("lists", json!({})).await;
        counts.push(said.trim_end().rsplit(' ').next().unwrap().parse::<u32>().unwrap());
    }
    assert!(counts.iter().all(|&count| count <= 3), "asked too often: {counts:?}");
}
