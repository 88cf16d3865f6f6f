//! Joins two connections: input of one is output of the other.

use futures_util::{SinkExt, StreamExt};

use crate::transport::{IncomingLines, LineTransport, OutgoingLines};

/// The side that disconnected first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplicePeer {
    Client,
    Agent,
}

impl SplicePeer {
    fn other(self) -> Self {
        match self {
            Self::Client => Self::Agent,
            Self::Agent => Self::Client,
        }
    }
}

/// Forwards lines both ways until a side disconnects; its earlier lines are still forwarded. Holds one line each way.
pub async fn splice_transports(client: LineTransport, agent: LineTransport) -> SplicePeer {
    let (to_client, from_client) = (client.outgoing, client.incoming);
    let (to_agent, from_agent) = (agent.outgoing, agent.incoming);
    tokio::select! {
        left = forward_lines(SplicePeer::Client, from_client, to_agent) => left,
        left = forward_lines(SplicePeer::Agent, from_agent, to_client) => left,
    }
}

/// Forwards the lines of one side to the other; returns the side that disconnected.
async fn forward_lines(source: SplicePeer, mut from: IncomingLines, to: OutgoingLines) -> SplicePeer {
    let mut to = Some(to);
    while let Some(line) = from.next().await {
        let line = match line {
            Ok(line) => line,
            Err(error) => {
                tracing::warn!(?source, %error, "forwarding ended");
                break;
            }
        };
        let Some(sink) = &mut to else { continue };
        if sink.send(line).await.is_err() {
            match source.other() {
                SplicePeer::Client => return SplicePeer::Client,
                // It may have closed its input and still send.
                SplicePeer::Agent => to = None,
            }
        }
    }
    source
}
