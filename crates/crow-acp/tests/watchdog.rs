//! A client that never answers, with a clock that advances when every task waits.

use crow_acp::{
    AcpClientCapabilities, AgentInfo, ClientInfo, IncomingRequest, OfferedAnswers, PermissionOutcome,
    PermissionRequest, PermissionSubject,
};
use crow_core::{CallId, SessionId, ToolAccess, ToolCallInfo, ToolKind};
use serde_json::Map;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

#[tokio::test(start_paused = true)]
async fn question_times_out_after_twelve_hours() {
    let (to_agent, to_client) = crow_acp::duplex_transport();
    let (events, _unanswered) = mpsc::channel(8);
    let (incoming, _requests) = mpsc::channel::<IncomingRequest>(8);
    let (connected, client) = oneshot::channel();
    let about = AgentInfo { version: "1", program: None, reads_images: true };
    let agent = tokio::spawn(crow_acp::serve_client(to_client, about, incoming, |client| {
        connected.send(client).expect("the test waits for it");
    }));
    let info = ToolCallInfo {
        title: "write".into(),
        kind: ToolKind::Edit,
        locations: Vec::new(),
        access: ToolAccess::Nothing,
    };
    let hello = ClientInfo {
        name: "crow-cli",
        version: "1",
        capabilities: AcpClientCapabilities::default(),
        agent_name: None,
        wants_raw_updates: false,
    };
    let answered = crow_acp::drive_agent(to_agent, hello, events, async |_| {
        let question = PermissionRequest {
            subject: PermissionSubject::Call,
            call: CallId::from_position(1, 0),
            info: &info,
            arguments: &Map::new(),
            preview: &[],
            reason: None,
            offered_answers: OfferedAnswers::Once,
        };
        client
            .await
            .unwrap()
            .request_permission(&SessionId::new("s"), question, &CancellationToken::new())
            .await
    });
    let expected = PermissionOutcome::Unavailable { reason: "no answer within twelve hours".into() };
    assert_eq!(answered.await.unwrap(), expected);
    agent.await.unwrap().unwrap();
}
