use std::time::Duration;

use crow_core::{MessageId, Mode, SessionConfigOptions, SessionUpdate, ThoughtLevel};
use expect_test::{Expect, expect};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::*;
use crate::incoming::OpenSessionResult;
use crate::{AgentInfo, channel_transport, duplex_transport};

/// The client reads no more before it closes its own end, as one that is ended in the middle of a turn.
#[tokio::test]
async fn client_that_leaves_during_a_write_is_no_failure() {
    let (to_agent, to_client) = duplex_transport();
    let (incoming, _requests) = mpsc::channel::<IncomingRequest>(8);
    let agent_info = AgentInfo { version: "1", program: None, reads_images: true };
    let LineTransport { outgoing: _open, incoming: unread } = to_agent;
    drop(unread);
    let served = serve_client(to_client, agent_info, incoming, |client| {
        let text = SessionUpdate::Text { message: MessageId::from_seq(1), text: "Half a sen".into() };
        client.send_update(&SessionId::new("s"), text);
    });
    served.await.unwrap();
}

/// Opens a session, sends these lines after the answer, and shows each message with the milliseconds since the request.
async fn check_opening(lines: &[&str], expected: &Expect) {
    let (to_agent, to_client) = duplex_transport();
    let (incoming, mut requests) = mpsc::channel::<IncomingRequest>(8);
    let agent_info = AgentInfo { version: "1", program: None, reads_images: true };
    let (client_sender, client) = oneshot::channel();
    let serving = serve_client(to_client, agent_info, incoming, |client| {
        let _ = client_sender.send(client);
    });
    let host = async {
        let client = client.await.unwrap();
        while let Some(request) = requests.recv().await {
            if let IncomingRequest::Open { answer, .. } = request {
                let options = SessionConfigOptions {
                    mode: Mode::Ask,
                    model: None,
                    models: Vec::new(),
                    thought_level: ThoughtLevel::default(),
                };
                let session = SessionId::new("s");
                answer.send(Ok(OpenSessionResult { session: session.clone(), options }));
                client.send_update(&session, SessionUpdate::Commands(Vec::new()));
                let text = SessionUpdate::Text { message: MessageId::from_seq(1), text: "Hello".into() };
                client.send_update(&SessionId::new("other"), text);
            }
        }
    };
    let LineTransport { mut outgoing, incoming: mut answers } = to_agent;
    let client_side = async {
        let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
        outgoing.send(initialize.to_owned()).await.unwrap();
        answers.next().await.unwrap().unwrap();
        let open = r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#;
        outgoing.send(open.to_owned()).await.unwrap();
        let mut shown = String::new();
        let since = Instant::now();
        for n_heard in 0..3 {
            let line = timeout(Duration::from_secs(9), answers.next()).await.unwrap().unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            let kind = message["params"]["update"]["sessionUpdate"].as_str().unwrap_or("answer");
            shown.push_str(&format!("{} ms {kind}\n", since.elapsed().as_millis()));
            if n_heard == 0 {
                for line in lines {
                    outgoing.send((*line).to_owned()).await.unwrap();
                }
            }
        }
        shown
    };
    let shown = tokio::select! {
        shown = client_side => shown,
        _ = serving => panic!("the connection ended"),
        () = host => panic!("the host ended"),
    };
    expected.assert_eq(&shown);
}

const PROMPT: &str =
    r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}"#;

#[tokio::test(start_paused = true)]
async fn updates_of_a_new_session_follow_its_answer_after_a_moment() {
    check_opening(
        &[],
        &expect![[r#"
        0 ms answer
        0 ms agent_message_chunk
        50 ms available_commands_update
    "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn request_of_the_client_ends_the_moment() {
    check_opening(
        &[PROMPT],
        &expect![[r#"
        0 ms answer
        0 ms agent_message_chunk
        0 ms answer
    "#]],
    )
    .await;
}

/// The client closes its end and reads nothing yet.
#[tokio::test(start_paused = true)]
async fn host_learns_of_a_closed_client_before_that_has_read_everything() {
    const N_UPDATES: usize = 20;
    let (to_agent, agent_receiver) = mpsc::channel(1);
    let (agent_sender, mut from_agent) = mpsc::channel(1);
    let (incoming, _requests) = mpsc::channel::<IncomingRequest>(8);
    let agent_info = AgentInfo { version: "1", program: None, reads_images: true };
    let (close_guard, closed) = oneshot::channel::<()>();
    let (client_sender, client) = oneshot::channel();
    let lines = channel_transport(agent_receiver, agent_sender);
    let serving = tokio::spawn(serve_client(lines, agent_info, incoming, |client| {
        for n in 0..N_UPDATES {
            let text = SessionUpdate::Text { message: MessageId::from_seq(1), text: n.to_string() };
            client.send_update(&SessionId::new(n.to_string()), text);
        }
        let _ = client_sender.send(client);
        close_guard
    }));
    // The SDK has them all.
    let client = client.await.unwrap();
    client.flush_updates(&SessionId::new((N_UPDATES - 1).to_string())).await;
    drop(to_agent);
    timeout(Duration::from_secs(9), closed).await.unwrap().unwrap_err();
    let late = SessionUpdate::Text { message: MessageId::from_seq(1), text: "late".into() };
    client.send_update(&SessionId::new("s"), late);
    client.flush_updates(&SessionId::new("s")).await;
    assert!(!serving.is_finished());
    let mut n_read = 0;
    while let Some(line) = from_agent.recv().await {
        assert!(line.unwrap().contains(&format!("\"{n_read}\"")));
        n_read += 1;
    }
    assert_eq!(n_read, N_UPDATES);
    serving.await.unwrap().unwrap();
}
