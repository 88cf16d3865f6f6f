//! Methods outside the stable protocol that clients use.

use agent_client_protocol as sdk;
use sdk::v1::schema as wire;
use serde::{Deserialize, Serialize};

use crate::incoming::SteerOutcome;

/// Steering input for the running turn; advertised as `_meta.steering`.
#[derive(Debug, Clone, Serialize, Deserialize, sdk::JsonRpcRequest)]
#[request(method = "_session/steering", response = SteerResponse)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SteerRequest {
    pub(crate) session_id: wire::SessionId,
    pub(crate) prompt: Vec<wire::ContentBlock>,
}

#[derive(Debug, Clone, Serialize, Deserialize, sdk::JsonRpcResponse)]
pub(crate) struct SteerResponse {
    outcome: String,
}

pub(crate) fn steer_response(outcome: SteerOutcome) -> SteerResponse {
    let outcome = match outcome {
        SteerOutcome::Injected => "injected",
        SteerOutcome::StartedNewTurn => "startedNewTurn",
    };
    SteerResponse { outcome: outcome.to_owned() }
}

/// Never part of the stable protocol; some clients still select a model this way.
#[derive(Debug, Clone, Serialize, Deserialize, sdk::JsonRpcRequest)]
#[request(method = "session/set_model", response = SetModelResponse)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetModelRequest {
    pub(crate) session_id: wire::SessionId,
    pub(crate) model_id: String,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, sdk::JsonRpcResponse)]
pub(crate) struct SetModelResponse {}
