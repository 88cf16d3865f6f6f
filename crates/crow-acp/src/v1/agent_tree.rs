//! The extensions between agents of a tree, in `_meta` and in methods of our own: an agent's depth, its usage, and
//! the budget for more agents.

use std::path::PathBuf;

use agent_client_protocol as sdk;
use crow_core::{Failure, FailureKind, SessionId};
use sdk::schema::ProtocolVersion;
use sdk::v1::schema as wire;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::agent_update::AgentUpdate;
use crate::capabilities::{AcpAgentCapabilities, ClientInfo};
use crate::incoming::TurnScope;
use crate::v1::primitives::{session_id, to_meta};

/// The key of our own data in `_meta`.
const CROW: &str = "crow";

const TASKS_ENDED: &str = "tasks_ended";

const DEPTH: &str = "depth";

const SPENT: &str = "spent";

const ESTIMATED: &str = "estimated";

/// The currency of every price.
const DOLLARS: &str = "USD";

const BILLION: f64 = 1e9;

/// Requests a slot for one more child.
#[derive(Debug, Clone, Serialize, Deserialize, sdk::JsonRpcRequest)]
#[request(method = "_crow/claim", response = ClaimResponse)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClaimRequest {
    pub(crate) session_id: wire::SessionId,
}

#[derive(Debug, Clone, Serialize, Deserialize, sdk::JsonRpcResponse)]
pub(crate) struct ClaimResponse {
    pub(crate) claim: u64,
}

/// Releases a slot.
#[derive(Debug, Clone, Serialize, Deserialize, sdk::JsonRpcNotification)]
#[notification(method = "_crow/release")]
pub(crate) struct ReleaseNotification {
    pub(crate) claim: u64,
}

/// Makes the first request to an agent.
pub(crate) fn initialize_request(client_info: &ClientInfo) -> wire::InitializeRequest {
    let client_capabilities = client_info.capabilities;
    let compaction = client_capabilities.compactions.then(wire::CompactionCapabilities::new);
    let notices = client_capabilities.notices.then(wire::NoticeCapabilities::new);
    let session = wire::ClientSessionCapabilities::new().compaction(compaction).notices(notices);
    let form = wire::ElicitationFormCapabilities::new;
    let forms = client_capabilities.forms.then(|| wire::ElicitationCapabilities::new().form(form()));
    let files = wire::FileSystemCapabilities::new()
        .read_text_file(client_capabilities.reads_files)
        .write_text_file(client_capabilities.writes_files);
    let depth = client_capabilities.tree_depth.map(|depth| (DEPTH, json!(depth)));
    let spent = client_capabilities.session_tokens.then(|| (SPENT, json!(true)));
    let crow: serde_json::Map<_, _> =
        depth.into_iter().chain(spent).map(|(name, value)| (name.to_owned(), value)).collect();
    let crow = (!crow.is_empty()).then(|| (CROW, Value::Object(crow)));
    let output = client_capabilities.terminal_output.then(|| ("terminal_output", json!(true)));
    let meta: serde_json::Map<_, _> =
        crow.into_iter().chain(output).map(|(name, value)| (name.to_owned(), value)).collect();
    let capabilities = wire::ClientCapabilities::new()
        .fs(files)
        .terminal(client_capabilities.terminals)
        .session(session)
        .elicitation(forms)
        .subagents(client_capabilities.children.then(wire::SubagentCapabilities::new))
        .meta((!meta.is_empty()).then_some(meta));
    wire::InitializeRequest::new(ProtocolVersion::V1)
        .client_capabilities(capabilities)
        .client_info(wire::Implementation::new(client_info.name, client_info.version))
}

/// Parses an agent's capabilities.
pub(crate) fn agent_capabilities(answer: &wire::InitializeResponse) -> Result<AcpAgentCapabilities, Failure> {
    if answer.protocol_version != ProtocolVersion::V1 {
        let reason =
            format!("the agent speaks version {} of the protocol, Crow version 1", answer.protocol_version);
        return Err(Failure::new(FailureKind::Protocol, reason));
    }
    let steering = answer.meta.as_ref().and_then(|meta| meta.get("steering"));
    let extensions = answer.meta.as_ref().and_then(|meta| meta.get(CROW));
    Ok(AcpAgentCapabilities {
        load_session: answer.agent_capabilities.load_session,
        resume_session: answer.agent_capabilities.session_capabilities.resume.is_some(),
        fork_session: answer.agent_capabilities.session_capabilities.fork.is_some(),
        list_sessions: answer.agent_capabilities.session_capabilities.list.is_some(),
        reads_images: answer.agent_capabilities.prompt_capabilities.image,
        steering: steering.and_then(|steering| steering.get("supported")).and_then(Value::as_bool)
            == Some(true),
        earlier_prompts: extensions.and_then(|crow| crow.get("prompts")).and_then(Value::as_bool)
            == Some(true),
    })
}

/// Parses this agent's depth in the tree.
pub(super) fn tree_depth(meta: Option<&wire::Meta>) -> Option<u32> {
    let depth = meta?.get(CROW)?.get(DEPTH)?.as_u64()?;
    Some(u32::try_from(depth).unwrap_or(u32::MAX))
}

/// Whether a client wants the tokens of its sessions.
pub(super) fn wants_session_tokens(meta: Option<&wire::Meta>) -> bool {
    meta.and_then(|meta| meta.get(CROW)?.get(SPENT)?.as_bool()) == Some(true)
}

/// Converts the start of a child session.
pub(super) fn child_update(
    child: &SessionId,
    title: String,
    cwd: String,
    is_running: bool,
) -> wire::SessionUpdate {
    let state = match is_running {
        true => wire::StateUpdate::Running(wire::RunningStateUpdate::new()),
        false => wire::StateUpdate::Idle(wire::IdleStateUpdate::new()),
    };
    let child = wire::SubagentUpdate::new(session_id(child));
    wire::SessionUpdate::SubagentUpdate(child.title(title).cwd(PathBuf::from(cwd)).state(state))
}

/// Parses the start or a change of a child session.
pub(super) fn to_child_update(child: &wire::SubagentUpdate) -> AgentUpdate {
    AgentUpdate::Child {
        session: SessionId::new(&*child.session_id.0),
        title: child.title.value().cloned(),
        is_running: child.state.value().map(|state| !matches!(state, wire::StateUpdate::Idle(_))),
    }
}

/// Encodes the condition for the end of a turn.
pub(crate) fn turn_scope_meta(turn_scope: TurnScope) -> Option<wire::Meta> {
    match turn_scope {
        TurnScope::WithoutTasks => None,
        TurnScope::WithTasks => to_meta(json!({ CROW: { "until": TASKS_ENDED } })),
    }
}

/// Parses the condition for the end of a turn.
pub(crate) fn turn_scope(meta: Option<&wire::Meta>) -> TurnScope {
    let scope = meta.and_then(|said| said.get(CROW)?.get("until")?.as_str());
    if scope == Some(TASKS_ENDED) { TurnScope::WithTasks } else { TurnScope::WithoutTasks }
}

/// Converts a session's cost in billionths of a dollar.
pub(super) fn to_wire_cost(billionths: u64) -> wire::Cost {
    wire::Cost::new(billionths as f64 / BILLION, DOLLARS)
}

/// Parses a session's cost, if it is in dollars.
pub(super) fn from_wire_cost(cost: &wire::Cost) -> Option<u64> {
    let is_valid = cost.currency == DOLLARS && cost.amount.is_finite() && cost.amount >= 0.0;
    // The conversion saturates.
    is_valid.then(|| (cost.amount * BILLION).round() as u64)
}

/// Encodes the tokens used by a session and its children, and whether the context usage is an estimate.
pub(super) fn usage_meta(tokens_spent: Option<u64>, is_estimate: bool) -> Option<wire::Meta> {
    let tokens_spent = tokens_spent.map(|tokens| (SPENT, json!(tokens)));
    let estimate = is_estimate.then(|| (ESTIMATED, json!(true)));
    let fields: serde_json::Map<_, _> =
        tokens_spent.into_iter().chain(estimate).map(|(name, value)| (name.to_owned(), value)).collect();
    (!fields.is_empty()).then(|| to_meta(json!({ CROW: fields }))).flatten()
}

/// Parses the tokens used by a session and its children.
pub(crate) fn tokens_spent(meta: Option<&wire::Meta>) -> Option<u64> {
    meta?.get(CROW)?.get(SPENT)?.as_u64()
}

/// True if the context usage is an estimate.
pub(super) fn is_estimate(meta: Option<&wire::Meta>) -> bool {
    meta.and_then(|meta| meta.get(CROW)?.get(ESTIMATED)?.as_bool()) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn child_is_announced_and_parsed() {
        for is_running in [true, false] {
            let sent = child_update(&SessionId::new("calm-owl"), "Look".into(), "/work".into(), is_running);
            let wire::SessionUpdate::SubagentUpdate(child) = sent else { unreachable!() };
            let parsed = to_child_update(&child);
            let (session, title) = (SessionId::new("calm-owl"), Some("Look".to_owned()));
            assert_eq!(parsed, AgentUpdate::Child { session, title, is_running: Some(is_running) });
        }
    }
}
