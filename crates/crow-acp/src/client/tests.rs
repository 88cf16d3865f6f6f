use std::time::Duration;

use expect_test::{Expect, expect};
use futures_util::{SinkExt as _, StreamExt as _, sink, stream};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::transport::{LineTransport, duplex_transport};
use crate::{AcpClientCapabilities, ClientEvent, ClientInfo, drive_agent};

fn hello() -> ClientInfo {
    ClientInfo {
        name: "crow-cli",
        version: "1",
        capabilities: AcpClientCapabilities::default(),
        agent_name: None,
        wants_raw_updates: false,
    }
}

/// Drives an agent that answers each request with the next of `answers`, and disconnects when none is left. Shows the
/// result of a session with it.
async fn driven(answers: &[Value]) -> String {
    let (client, mut agent) = duplex_transport();
    let (events, _heard) = mpsc::channel(1);
    let answering = async {
        for answer in answers {
            let asked: Value = serde_json::from_str(&agent.incoming.next().await.unwrap().unwrap()).unwrap();
            let mut answer = answer.clone();
            answer["jsonrpc"] = "2.0".into();
            answer["id"] = asked["id"].clone();
            agent.outgoing.send(answer.to_string()).await.unwrap();
        }
        drop(agent);
    };
    let driven = drive_agent(client, hello(), events, async |connection| {
        let opened = connection.new_session(std::path::Path::new("/")).await;
        format!(
            "{:?}\n{opened:#?}\ngone: {}\n",
            connection.capabilities(),
            connection.disconnect_failure().is_some()
        )
    });
    let (driven, ()) = tokio::join!(driven, answering);
    driven.unwrap_or_else(|failure| format!("{}: {}\n", failure.kind.as_str(), failure.message))
}

async fn check(answers: &[Value], expected: Expect) {
    expected.assert_eq(&driven(answers).await);
}

#[tokio::test(start_paused = true)]
async fn agent_that_disconnects_at_once_is_reported() {
    let (incoming_ends, ended) = tokio::sync::oneshot::channel::<()>();
    let incoming = stream::once(async move {
        drop(ended.await);
        Err(std::io::Error::other("it was switched off"))
    });
    let outgoing = sink::unfold(Some(incoming_ends), |ends, _: String| async move {
        drop(ends);
        // The clock advances when every task waits: the end arrives while the text is still queued.
        drop(tokio::time::timeout(Duration::from_secs(1), std::future::pending::<()>()).await);
        Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe))
    });
    let lines = LineTransport { outgoing: Box::pin(outgoing), incoming: incoming.boxed() };
    let (events, _heard) = mpsc::channel(1);
    let driven = drive_agent(lines, hello(), events, async |_| ()).await;
    expect!["the agent has disconnected: it was switched off"].assert_eq(&driven.unwrap_err().message);
}

#[tokio::test]
async fn older_session_modes_are_an_option() {
    let modes = json!({"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]});
    check(
        &[
            json!({"result": {"protocolVersion": 1, "agentCapabilities": {}}}),
            json!({"result": {"sessionId": "s-1", "modes": modes}}),
        ],
        expect![[r#"
            AcpAgentCapabilities { load_session: false, resume_session: false, steering: false, fork_session: false, list_sessions: false, reads_images: false, earlier_prompts: false }
            Ok(
                OpenedSession {
                    session: SessionId(
                        "s-1",
                    ),
                    options: [
                        ConfigOption {
                            id: "_crow_modes",
                            category: Some(
                                "mode",
                            ),
                            name: "Mode",
                            current: "ask",
                            choices: [
                                ConfigChoice {
                                    value: "ask",
                                    name: "Ask",
                                    description: None,
                                },
                                ConfigChoice {
                                    value: "code",
                                    name: "Code",
                                    description: None,
                                },
                            ],
                        },
                    ],
                },
            )
            gone: true
        "#]],
    )
    .await;
}

#[tokio::test]
async fn agent_options_are_parsed() {
    let can = json!({"loadSession": true, "sessionCapabilities": {"fork": {}}});
    let choices = json!([{"value": "ask", "name": "Ask"}]);
    let models = json!([{"group": "a", "name": "A", "options": [{"value": "a/1", "name": "1"}]}]);
    let options = json!([
        {"id": "approval", "name": "Approval", "category": "mode", "type": "select", "currentValue": "ask", "options": choices},
        {"id": "model", "name": "Model", "type": "select", "currentValue": "a/1", "options": models},
        {"id": "odd", "name": "Odd", "type": "boolean", "currentValue": true},
    ]);
    check(
        &[
            json!({"result": {"protocolVersion": 1, "agentCapabilities": can}}),
            json!({"result": {"sessionId": "s-1", "configOptions": options}}),
        ],
        expect![[r#"
            AcpAgentCapabilities { load_session: true, resume_session: false, steering: false, fork_session: true, list_sessions: false, reads_images: false, earlier_prompts: false }
            Ok(
                OpenedSession {
                    session: SessionId(
                        "s-1",
                    ),
                    options: [
                        ConfigOption {
                            id: "approval",
                            category: Some(
                                "mode",
                            ),
                            name: "Approval",
                            current: "ask",
                            choices: [
                                ConfigChoice {
                                    value: "ask",
                                    name: "Ask",
                                    description: None,
                                },
                            ],
                        },
                        ConfigOption {
                            id: "model",
                            category: None,
                            name: "Model",
                            current: "a/1",
                            choices: [
                                ConfigChoice {
                                    value: "a/1",
                                    name: "1",
                                    description: None,
                                },
                            ],
                        },
                    ],
                },
            )
            gone: true
        "#]],
    )
    .await;
}

#[tokio::test]
async fn agents_without_acp_are_errors() {
    check(
        &[json!({"result": {"protocolVersion": 7}})],
        expect![[r#"
            internal: Invalid request: unsupported ACP protocol version 7; this endpoint only supports ACP protocol version 1
        "#]],
    )
    .await;
    let refused = json!({"code": -32000, "message": "Authentication required"});
    check(
        &[json!({"error": refused})],
        expect![[r#"
        auth_required: Authentication required
    "#]],
    )
    .await;
    check(
        &[json!({"result": []})],
        expect![[r#"
            invalid_value: Invalid params: initialize.protocolVersion must be a valid ACP protocol version
        "#]],
    )
    .await;
    check(
        &[],
        expect![[r#"
            connection: the agent has disconnected
        "#]],
    )
    .await;
    check(
        &[json!({"result": {"protocolVersion": 1}})],
        expect![[r#"
            AcpAgentCapabilities { load_session: false, resume_session: false, steering: false, fork_session: false, list_sessions: false, reads_images: false, earlier_prompts: false }
            Err(
                Failure {
                    kind: Connection,
                    message: "the agent has disconnected",
                },
            )
            gone: true
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn silent_agent_times_out() {
    let (client, _agent) = duplex_transport();
    let (events, _heard) = mpsc::channel(1);
    let driven = drive_agent(client, hello(), events, async |_| ()).await;
    expect!["the agent did not answer `initialize` within 60 s"].assert_eq(&driven.unwrap_err().message);
}

#[tokio::test]
async fn cancelled_question_frees_its_place() {
    let (client, mut agent) = duplex_transport();
    let (events, mut heard) = mpsc::channel(1);
    let asking = async {
        let asked: Value = serde_json::from_str(&agent.incoming.next().await.unwrap().unwrap()).unwrap();
        let hello = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"protocolVersion": 1}});
        let params = json!({"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": []});
        let question =
            json!({"jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": params});
        let withdrawal = json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 7}});
        for line in [hello, question, withdrawal] {
            agent.outgoing.send(line.to_string()).await.unwrap();
        }
        agent.incoming.next().await.unwrap().unwrap()
    };
    let driven = drive_agent(client, hello(), events, async |_| match heard.recv().await {
        Some(ClientEvent::Permission { mut answer, .. }) => answer.closed().await,
        other => unreachable!("{other:?}"),
    });
    let (driven, answered) = tokio::join!(driven, asking);
    driven.unwrap();
    expect![[r#"{"jsonrpc":"2.0","id":7,"result":{"outcome":{"outcome":"cancelled"}}}"#]]
        .assert_eq(&answered);
}
