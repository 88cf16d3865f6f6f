//! Joins two connections: what comes in on one goes out on the other.

use futures_util::{SinkExt, StreamExt};

use crate::transport::{IncomingLines, Lines, Outgoing};

/// Who left first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// The side of the client.
    Client,
    /// The side of the agent.
    Agent,
}

/// Passes lines on both ways until a side leaves; what it had said by then is passed on. Holds one line each way.
pub async fn splice(client: Lines, agent: Lines) -> Left {
    let (to_client, from_client) = (client.outgoing, client.incoming);
    let (to_agent, from_agent) = (agent.outgoing, agent.incoming);
    tokio::select! {
        left = pass_on(from_client, to_agent, (Left::Client, Left::Agent)) => left,
        left = pass_on(from_agent, to_client, (Left::Agent, Left::Client)) => left,
    }
}

async fn pass_on(mut from: IncomingLines, to: Outgoing, (speaker, hearer): (Left, Left)) -> Left {
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
                Left::Client => return hearer,
                // It may have closed its ears and go on speaking.
                Left::Agent => to = None,
            }
        }
    }
    speaker
}
