//! Joins two connections: what comes in on one goes out on the other.

use futures_util::{SinkExt, StreamExt};

use crate::transport::{IncomingLines, LineTransport, OutgoingLines};

/// Who left first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplicePeer {
    /// The side of the client.
    Client,
    /// The side of the agent.
    Agent,
}

/// Passes lines on both ways until a side leaves; what it had said by then is passed on. Holds one line each way.
pub async fn splice_transports(client: LineTransport, agent: LineTransport) -> SplicePeer {
    let (to_client, from_client) = (client.outgoing, client.incoming);
    let (to_agent, from_agent) = (agent.outgoing, agent.incoming);
    tokio::select! {
        left = forward_lines(from_client, to_agent, (SplicePeer::Client, SplicePeer::Agent)) => left,
        left = forward_lines(from_agent, to_client, (SplicePeer::Agent, SplicePeer::Client)) => left,
    }
}

async fn forward_lines(
    mut from: IncomingLines,
    to: OutgoingLines,
    (speaker, hearer): (SplicePeer, SplicePeer),
) -> SplicePeer {
    let mut to = Some(to);
    while let Some(line) = from.next().await {
        let line = match line {
            Ok(line) => line,
            Err(error) => {
                tracing::warn!(?speaker, %error, "nothing more is passed on");
                break;
            }
        };
        let Some(open) = &mut to else { continue };
        if open.send(line).await.is_err() {
            match hearer {
                SplicePeer::Client => return hearer,
                // It may have closed its ears and go on speaking.
                SplicePeer::Agent => to = None,
            }
        }
    }
    speaker
}
