use crow_core::{MessageId, SessionUpdate};

use super::*;
use crate::duplex_transport;

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
