//! Methods outside the stable protocol that clients use.

use agent_client_protocol as sdk;
use crow_core::MessageId;
use sdk::v1::schema as wire;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::primitives::to_meta;
use crate::incoming::{EarlierPrompt, SteerOutcome};

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

/// The prompts that a session can be forked before; advertised as `_meta.crow.prompts`.
#[derive(Debug, Clone, Serialize, Deserialize, sdk::JsonRpcRequest)]
#[request(method = "_crow/session/prompts", response = ListPromptsResponse)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListPromptsRequest {
    pub(crate) session_id: wire::SessionId,
}

#[derive(Debug, Clone, Serialize, Deserialize, sdk::JsonRpcResponse)]
pub(crate) struct ListPromptsResponse {
    prompts: Vec<PromptRow>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptRow {
    message_id: String,
    text: String,
    undoable_turns: u64,
    undoable_files: u64,
}

pub(crate) fn list_prompts_response(prompts: Vec<EarlierPrompt>) -> ListPromptsResponse {
    let prompts = prompts.into_iter().map(|prompt| PromptRow {
        message_id: prompt.message.as_str().to_owned(),
        text: prompt.text,
        undoable_turns: prompt.n_undoable_turns,
        undoable_files: prompt.n_undoable_files,
    });
    ListPromptsResponse { prompts: prompts.collect() }
}

pub(crate) fn earlier_prompts(response: ListPromptsResponse) -> Vec<EarlierPrompt> {
    let prompts = response.prompts.into_iter().map(|row| EarlierPrompt {
        message: MessageId::new(row.message_id),
        text: row.text,
        n_undoable_turns: row.undoable_turns,
        n_undoable_files: row.undoable_files,
    });
    prompts.collect()
}

/// Encodes the prompt that a fork ends before.
pub(crate) fn fork_end_meta(before: &MessageId) -> Option<wire::Meta> {
    to_meta(json!({ "crow": { "before": before.as_str() } }))
}

/// Parses the prompt that a fork ends before.
pub(crate) fn fork_end(meta: Option<&wire::Meta>) -> Option<MessageId> {
    Some(MessageId::new(meta?.get("crow")?.get("before")?.as_str()?))
}
