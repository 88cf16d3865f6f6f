//! What agents of a tree tell each other beyond the protocol, in `_meta` and in methods of their own: how deep one
//! stands, what it has cost, and whether there is room for another.

use std::path::PathBuf;

use agent_client_protocol as sdk;
use crow_core::{Failure, FailureKind, SessionId};
use sdk::schema::ProtocolVersion;
use sdk::v1::schema as wire;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::client::{AcpAgentCapabilities, ClientInfo};
use crate::incoming::TurnScope;
use crate::v1::opening::to_meta;
use crate::v1::session_id;

/// Under which key of a `_meta` our own words stand.
const CROW: &str = "crow";

const TASKS_ENDED: &str = "tasks_ended";

const SPENT: &str = "spent";

const ESTIMATED: &str = "estimated";

/// The currency of every price.
const DOLLARS: &str = "USD";

const BILLION: f64 = 1e9;

/// Asks for a place for one more child.
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

/// Gives a place back.
#[derive(Debug, Clone, Serialize, Deserialize, sdk::JsonRpcNotification)]
#[notification(method = "_crow/release")]
pub(crate) struct ReleaseNotification {
    pub(crate) claim: u64,
}

/// Spells the first request to an agent.
pub(crate) fn initialize_request(hello: ClientInfo) -> wire::InitializeRequest {
    let can = hello.abilities;
    let compaction = can.compactions.then(wire::CompactionCapabilities::new);
    let notices = can.notices.then(wire::NoticeCapabilities::new);
    let session = wire::ClientSessionCapabilities::new().compaction(compaction).notices(notices);
    let form = wire::ElicitationFormCapabilities::new;
    let forms = can.forms.then(|| wire::ElicitationCapabilities::new().form(form()));
    let files =
        wire::FileSystemCapabilities::new().read_text_file(can.reads_files).write_text_file(can.writes_files);
    let place = can.depth.map(|depth| json!({ CROW: { "depth": depth } }));
    let capabilities = wire::ClientCapabilities::new()
        .fs(files)
        .terminal(can.terminals)
        .session(session)
        .elicitation(forms)
        .meta(place.and_then(to_meta));
    wire::InitializeRequest::new(ProtocolVersion::V1)
        .client_capabilities(capabilities)
        .client_info(wire::Implementation::new("crow-cli", hello.version))
}

/// Reads an agent's first answer.
pub(crate) fn agent_capabilities(answer: &wire::InitializeResponse) -> Result<AcpAgentCapabilities, Failure> {
    if answer.protocol_version != ProtocolVersion::V1 {
        let why = format!(
            "The agent speaks version {} of the protocol; Crow speaks version 1.",
            answer.protocol_version
        );
        return Err(Failure::new(FailureKind::Protocol, why));
    }
    let steering = answer.meta.as_ref().and_then(|meta| meta.get("steering"));
    Ok(AcpAgentCapabilities {
        loads: answer.agent_capabilities.load_session,
        resumes: answer.agent_capabilities.session_capabilities.resume.is_some(),
        forks: answer.agent_capabilities.session_capabilities.fork.is_some(),
        reads_images: answer.agent_capabilities.prompt_capabilities.image,
        steers: steering.and_then(|steering| steering.get("supported")).and_then(Value::as_bool)
            == Some(true),
    })
}

/// Reads how deep in a tree the client has us stand.
pub(super) fn tree_depth(said: Option<&wire::Meta>) -> Option<u32> {
    let depth = said?.get(CROW)?.get("depth")?.as_u64()?;
    Some(u32::try_from(depth).unwrap_or(u32::MAX))
}

/// Spells that a session started another.
pub(super) fn child_update(
    child: &SessionId,
    title: String,
    cwd: String,
    is_working: bool,
) -> wire::SessionUpdate {
    let state = match is_working {
        true => wire::StateUpdate::Running(wire::RunningStateUpdate::new()),
        false => wire::StateUpdate::Idle(wire::IdleStateUpdate::new()),
    };
    let child = wire::SubagentUpdate::new(session_id(child));
    wire::SessionUpdate::SubagentUpdate(child.title(title).cwd(PathBuf::from(cwd)).state(state))
}

/// Spells when the turn of a prompt is over.
pub(crate) fn turn_scope_meta(until: TurnScope) -> Option<wire::Meta> {
    match until {
        TurnScope::Answered => None,
        TurnScope::TasksEnded => to_meta(json!({ CROW: { "until": TASKS_ENDED } })),
    }
}

/// Reads when the turn of a prompt is over.
pub(crate) fn turn_scope(said: Option<&wire::Meta>) -> TurnScope {
    let said = said.and_then(|said| said.get(CROW)?.get("until")?.as_str());
    if said == Some(TASKS_ENDED) { TurnScope::TasksEnded } else { TurnScope::Answered }
}

/// Spells what a session has cost, in billionths of a dollar.
pub(super) fn to_wire_cost(billionths: u64) -> wire::Cost {
    wire::Cost::new(billionths as f64 / BILLION, DOLLARS)
}

/// Reads what a session has cost, where it is told in dollars.
pub(super) fn from_wire_cost(cost: &wire::Cost) -> Option<u64> {
    let is_sensible = cost.currency == DOLLARS && cost.amount.is_finite() && cost.amount >= 0.0;
    // The conversion saturates.
    is_sensible.then(|| (cost.amount * BILLION).round() as u64)
}

/// Spells how many tokens a session and its children have cost, and that how full the context is was not counted.
pub(super) fn usage_meta(spent: Option<u64>, is_guess: bool) -> Option<wire::Meta> {
    let spent = spent.map(|tokens| (SPENT, json!(tokens)));
    let guess = is_guess.then(|| (ESTIMATED, json!(true)));
    let said: serde_json::Map<_, _> =
        spent.into_iter().chain(guess).map(|(name, value)| (name.to_owned(), value)).collect();
    (!said.is_empty()).then(|| to_meta(json!({ CROW: said }))).flatten()
}

/// Reads what a session and its children have cost.
pub(super) fn tokens_spent(said: Option<&wire::Meta>) -> Option<u64> {
    said?.get(CROW)?.get(SPENT)?.as_u64()
}

/// Tells whether how full the context is was not counted.
pub(super) fn is_estimate(said: Option<&wire::Meta>) -> bool {
    said.and_then(|said| said.get(CROW)?.get(ESTIMATED)?.as_bool()) == Some(true)
}
