//! A client that never answers, with a clock that runs when everybody waits.

use crow_acp::{
    AcpClientCapabilities, AgentInfo, ClientInfo, IncomingRequest, OfferedAnswers, PermissionOutcome,
    PermissionRequest, PermissionSubject,
};
use crow_core::{CallId, SessionId, ToolAccess, ToolCallInfo, ToolKind};
use serde_json::Map;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_is_given_up() {
    let (to_agent, to_client) = crow_acp::duplex_transport();
    let (events, _unanswered) = mpsc::channel(8);
    let (incoming, _requests) = mpsc::channel::<IncomingRequest>(8);
    let (connected, client) = oneshot::channel();
    let about = AgentInfo { version: "1", program: None, reads_images: true };
    let agent = tokio::spawn(crow_acp::serve_client(to_client, about, incoming, |client| {
        connected.send(client).expect("the test waits for it");
    }));
    let facets = ToolCallInfo {
        title: "write".into(),
        kind: ToolKind::Edit,
        locations: Vec::new(),
        touch: ToolAccess::Nothing,
    };
    let hello = ClientInfo { version: "1", abilities: AcpClientCapabilities::default(), keeps_words: false };
    let answered = crow_acp::drive_agent(to_agent, hello, events, async |_| {
        let question = PermissionRequest {
            subject: PermissionSubject::Call,
            call: CallId::from_position(1, 0),
            facets: &facets,
            arguments: &Map::new(),
            preview: &[],
            why: None,
            answers: OfferedAnswers::Once,
        };
        client
            .await
            .unwrap()
            .request_permission(&SessionId::new("s"), question, &CancellationToken::new())
            .await
    });
    let expected = PermissionOutcome::Nobody { why: "nobody answered for twelve hours".into() };
    assert_eq!(answered.await.unwrap(), expected);
    agent.await.unwrap().unwrap();
}
