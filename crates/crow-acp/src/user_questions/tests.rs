use crow_core::{MessageId, SessionUpdate};
use expect_test::{Expect, expect};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::*;
use crate::form::FormSubject;
use crate::{
    AcpClientCapabilities, AgentInfo, ClientEvent, ClientInfo, ElicitationChoice, IncomingRequest,
    LineTransport, drive_agent, duplex_transport, serve_client,
};

fn nests() -> ElicitationForm {
    let oak = ElicitationChoice { label: "oak".into(), description: "The old one.".into() };
    let elm = ElicitationChoice { label: "elm".into(), description: String::new() };
    ElicitationForm {
        message: "Which nest?".into(),
        options: vec![oak, elm],
        free_text: true,
        subject: FormSubject::Question,
    }
}

/// The client's reaction to the form.
enum Does {
    Answers(Value),
    /// No reaction until the turn is cancelled.
    Waits,
    /// Disconnects.
    Leaves,
}

/// Serves a client with these capabilities, sends it an update, and shows it the form. Returns its part of the wire
/// after `initialize`, and the outcome.
async fn filled(capabilities: Value, form: ElicitationForm, does: Does) -> String {
    let (mut lines, theirs) = duplex_transport();
    let (incoming, mut requests) = mpsc::channel::<IncomingRequest>(8);
    let (connected, client) = oneshot::channel();
    let agent = tokio::spawn(serve_client(
        theirs,
        AgentInfo { version: "1", program: None, reads_images: true },
        incoming,
        |client| {
            drop(connected.send(client));
        },
    ));
    let hello = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello});
    lines.outgoing.send(hello.to_string()).await.unwrap();
    lines.incoming.next().await.unwrap().unwrap();
    assert!(matches!(requests.recv().await, Some(IncomingRequest::Initialized)));

    let cancel = CancellationToken::new();
    let (client, session) = (client.await.unwrap(), SessionId::new("s"));
    client
        .send_update(&session, SessionUpdate::Text { message: MessageId::from_seq(1), text: "Well.".into() });
    let asking = async {
        let formed = client.elicit_form(&session, &form, &cancel).await;
        client.send_update(
            &session,
            SessionUpdate::Text { message: MessageId::from_seq(2), text: "Bye.".into() },
        );
        formed
    };
    let (formed, heard) = tokio::join!(asking, play(lines, does, &cancel));
    drop(client);
    agent.await.unwrap().unwrap();
    format!("{heard}= {formed:?}\n")
}

/// Plays the client until it received the last update.
async fn play(mut lines: LineTransport, does: Does, cancel: &CancellationToken) -> String {
    let mut heard = String::new();
    while let Some(line) = lines.incoming.next().await {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let method = message["method"].as_str().unwrap();
        let text = message["params"]["update"]["content"]["text"].as_str().unwrap_or_default();
        heard.push_str(format!("{method} {text}").trim_end());
        heard.push('\n');
        match (method, &does) {
            ("elicitation/create", Does::Answers(said)) => {
                let mut answer = said.clone();
                answer["jsonrpc"] = "2.0".into();
                answer["id"] = message["id"].clone();
                lines.outgoing.send(answer.to_string()).await.unwrap();
            }
            ("elicitation/create", Does::Waits) => cancel.cancel(),
            ("elicitation/create", Does::Leaves) => break,
            _ if text == "Bye." => break,
            _ => {}
        }
    }
    heard
}

#[track_caller]
fn check(capabilities: Value, form: ElicitationForm, does: Does, expected: &Expect) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    expected.assert_eq(&runtime.block_on(filled(capabilities, form, does)));
}

fn has_forms() -> Value {
    json!({"elicitation": {"form": {}}})
}

#[test]
fn form_follows_earlier_updates() {
    let answer = json!({"result": {"action": "accept", "content": {"answer": "elm"}}});
    check(
        has_forms(),
        nests(),
        Does::Answers(answer),
        &expect![[r#"
            session/update Well.
            elicitation/create
            session/update Bye.
            = Accepted("elm")
        "#]],
    );
}

#[test]
fn form_answer_that_cannot_be_parsed_is_none() {
    for (answer, expected) in [
        (
            json!({"result": {"content": {"answer": "elm"}}}),
            &expect![[r#"
                session/update Well.
                elicitation/create
                session/update Bye.
                = Unavailable { reason: "the client's answer cannot be read" }
            "#]],
        ),
        (
            json!({"error": {"code": -32603, "message": "the dialog broke"}}),
            &expect![[r#"
                session/update Well.
                elicitation/create
                session/update Bye.
                = Unavailable { reason: "the dialog broke" }
            "#]],
        ),
    ] {
        check(has_forms(), nests(), Does::Answers(answer), expected);
    }
}

#[test]
fn form_of_a_cancelled_turn_is_cancelled() {
    check(
        has_forms(),
        nests(),
        Does::Waits,
        &expect![[r#"
        session/update Well.
        elicitation/create
        $/cancel_request
        session/update Bye.
        = Cancelled
    "#]],
    );
}

#[test]
fn form_is_closed_when_the_client_disconnects() {
    check(
        has_forms(),
        nests(),
        Does::Leaves,
        &expect![[r#"
        session/update Well.
        elicitation/create
        = Cancelled
    "#]],
    );
}

#[test]
fn client_without_forms_gets_none() {
    for capabilities in [json!({}), json!({"elicitation": {}}), json!({"elicitation": {"url": {}}})] {
        check(
            capabilities,
            nests(),
            Does::Waits,
            &expect![[r#"
                session/update Well.
                session/update Bye.
                = Unavailable { reason: "the client does not support forms" }
            "#]],
        );
    }
    let none = ElicitationForm { options: Vec::new(), free_text: false, ..nests() };
    check(
        has_forms(),
        none,
        Does::Waits,
        &expect![[r#"
            session/update Well.
            session/update Bye.
            = Unavailable { reason: "the form has no answers" }
        "#]],
    );
}

/// Our own client answers our own agent.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "both ends of one exchange")]
async fn both_ends_agree_on_forms() {
    let (to_agent, to_client) = duplex_transport();
    let (events, mut heard) = mpsc::channel(8);
    let (incoming, _requests) = mpsc::channel::<IncomingRequest>(8);
    let (connected, client) = oneshot::channel();
    let agent = tokio::spawn(serve_client(
        to_client,
        AgentInfo { version: "1", program: None, reads_images: true },
        incoming,
        |client| {
            drop(connected.send(client));
        },
    ));
    let capabilities = AcpClientCapabilities { forms: true, ..AcpClientCapabilities::default() };
    let came = drive_agent(
        to_agent,
        ClientInfo {
            name: "crow-cli",
            version: "1",
            capabilities,
            agent_name: None,
            wants_raw_updates: false,
        },
        events,
        async |_| {
            let (client, session, cancel) =
                (client.await.unwrap(), SessionId::new("s"), CancellationToken::new());
            let mut came = Vec::new();
            let unavailable = ElicitationOutcome::Unavailable { reason: "there is no terminal".into() };
            let chosen = |said: &str| Some(ElicitationOutcome::Accepted(said.into()));
            for given in [
                chosen("elm"),
                chosen("a beech"),
                Some(ElicitationOutcome::Declined),
                Some(unavailable),
                None,
            ] {
                let form = nests();
                let asking = client.elicit_form(&session, &form, &cancel);
                let answering = async {
                    let Some(ClientEvent::Form { session: of, form, answer }) = heard.recv().await else {
                        return;
                    };
                    assert_eq!((&of, *form), (&session, nests()));
                    // Without one it is dropped.
                    if let Some(given) = given {
                        answer.send(given).unwrap();
                    }
                };
                came.push(format!("{:?}", tokio::join!(asking, answering).0));
            }
            // A cancelled form frees its place.
            let form = nests();
            let asking = client.elicit_form(&session, &form, &cancel);
            let withdrawing = async {
                let Some(ClientEvent::Form { mut answer, .. }) = heard.recv().await else { return };
                cancel.cancel();
                answer.closed().await;
            };
            came.push(format!("{:?}", tokio::join!(asking, withdrawing).0));
            came.join("\n")
        },
    );
    expect![[r#"
        Accepted("elm")
        Accepted("a beech")
        Declined
        Unavailable { reason: "there is no terminal" }
        Cancelled
        Cancelled"#]]
    .assert_eq(&came.await.unwrap());
    agent.await.unwrap().unwrap();
}
