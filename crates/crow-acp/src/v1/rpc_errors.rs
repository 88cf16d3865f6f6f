//! Converts failures to JSON-RPC errors and back.

use agent_client_protocol as sdk;
use crow_core::{Failure, FailureKind};
use serde_json::{Value, json};

/// Converts a failure to a JSON-RPC error with its kind and message.
pub(crate) fn to_rpc_error(failure: &Failure) -> sdk::Error {
    let (code, message) = match failure.kind {
        FailureKind::SessionNotFound => (-32002, "session not found"),
        FailureKind::InvalidValue => (-32602, "Invalid params"),
        FailureKind::AuthRequired => (-32000, "Authentication required"),
        FailureKind::ProviderAuth
        | FailureKind::ProviderRate
        | FailureKind::ProviderOverloaded
        | FailureKind::ProviderRejected
        | FailureKind::ModelNotFound
        | FailureKind::ContextOverflow
        | FailureKind::Connection
        | FailureKind::Protocol
        | FailureKind::Store
        | FailureKind::Config
        | FailureKind::Internal => (-32603, "Internal error"),
    };
    sdk::Error::new(code, message).data(json!({ "kind": failure.kind.as_str(), "details": failure.message }))
}

/// Converts an error of the other side to a failure.
pub(crate) fn from_rpc_error(error: &sdk::Error) -> Failure {
    let data = error.data.as_ref();
    let field = |name: &str| data.and_then(|data| data.get(name)).and_then(Value::as_str);
    let kind = match (field("kind").and_then(FailureKind::parse), i32::from(error.code)) {
        (Some(kind), _) => kind,
        (None, -32002) => FailureKind::SessionNotFound,
        (None, -32602) => FailureKind::InvalidValue,
        (None, -32000) => FailureKind::AuthRequired,
        (None, _) => FailureKind::Internal,
    };
    let message = match (field("details"), data.and_then(Value::as_str)) {
        (Some(details), _) => details.to_owned(),
        (None, Some(details)) => format!("{}: {details}", error.message),
        (None, None) => error.message.clone(),
    };
    Failure::new(kind, message)
}

/// The error of a client without a user, which neither rejects nor cancels.
pub(crate) fn no_user_error(reason: &str) -> sdk::Error {
    sdk::Error::new(-32603, reason)
}

/// The error of a client that does not have a file.
pub(crate) fn missing_file_error(reason: &str) -> sdk::Error {
    sdk::Error::new(-32002, reason)
}
