//! The handle of a connected client: updates in order, requests, and what the client supports.

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol as sdk;
use crow_core::{SessionId, SessionUpdate};

use crate::capabilities::AcpClientCapabilities;
use crate::outbox::{Outbox, ReplayHold};
use crate::v1;

/// A slot is counted in memory, however many processes are in between.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(10);

/// A connected client, as sessions use it.
#[derive(Clone)]
pub struct Client {
    connection: sdk::v1::ConnectionTo<sdk::Client>,
    outbox: Arc<Outbox>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl Client {
    pub(crate) fn new(connection: sdk::v1::ConnectionTo<sdk::Client>, outbox: Arc<Outbox>) -> Self {
        Self { connection, outbox }
    }

    /// Sends an update; the order is preserved within a session.
    pub fn send_update(&self, session: &SessionId, update: SessionUpdate) {
        self.outbox.push_update(session, update);
    }

    /// Begins the replay of a session, whose other updates wait for its end.
    pub fn begin_replay(&self, session: &SessionId) -> ReplayHold {
        ReplayHold::begin(self.outbox.clone(), session.clone())
    }

    /// Waits until the client has caught up enough for more updates.
    pub async fn wait_for_capacity(&self) {
        self.outbox.wait_for_capacity().await;
    }

    /// Waits until all updates of a session are with the SDK, so that an answer cannot overtake them.
    pub async fn flush_updates(&self, session: &SessionId) {
        self.outbox.flush_updates(session).await;
    }

    /// Whether the client has disconnected: no more model requests are made for it.
    pub fn is_gone(&self) -> bool {
        self.outbox.is_gone()
    }

    /// Returns the client's capabilities.
    pub fn capabilities(&self) -> AcpClientCapabilities {
        self.outbox.capabilities()
    }

    pub(crate) async fn send_request<R: sdk::JsonRpcRequest>(
        &self,
        request: R,
    ) -> Result<R::Response, sdk::Error>
    where
        R::Response: Send,
    {
        self.connection.send_request(request).block_task().await
    }

    /// Sends a request whose answer has no effect.
    pub(crate) fn send_detached_request<R: sdk::JsonRpcRequest>(&self, request: R)
    where
        R::Response: Send,
    {
        self.connection.send_request(request).detach();
    }

    /// Requests a slot for one more agent from a client that keeps the tree's budget.
    pub async fn acquire_budget_slot(&self, session: &SessionId) -> Result<u64, String> {
        let request = v1::ClaimRequest { session_id: v1::session_id(session) };
        let answer = tokio::time::timeout(CLAIM_TIMEOUT, self.send_request(request)).await;
        match answer {
            Ok(Ok(answer)) => Ok(answer.claim),
            Ok(Err(error)) => Err(error.message),
            Err(_) => Err("the parent agent did not say whether a slot is free".to_owned()),
        }
    }

    /// Releases such a slot.
    pub fn release_budget_slot(&self, claim: u64) {
        if let Err(error) = self.connection.send_notification(v1::ReleaseNotification { claim }) {
            tracing::debug!(%error, "the client has disconnected, which frees every slot");
        }
    }
}
