//! Conversions that the others share: the ID of a session, and `_meta`.

use agent_client_protocol as sdk;
use crow_core::SessionId;
use sdk::v1::schema as wire;
use serde_json::Value;

pub(crate) fn session_id(session: &SessionId) -> wire::SessionId {
    wire::SessionId::new(session.as_str())
}

pub(super) fn to_meta(value: Value) -> Option<wire::Meta> {
    if let Value::Object(object) = value { Some(object) } else { None }
}
