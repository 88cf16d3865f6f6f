//! Failures that several parts of the agent report.

use crow_core::{Failure, FailureKind, SessionId};
use crow_store::StoreError;

/// Converts an error of the store into the failure of a turn.
pub(crate) fn store_failure(error: StoreError) -> Failure {
    if let StoreError::NoSession(id) = error {
        return session_not_found(&id);
    }
    Failure::new(FailureKind::Store, error.to_string())
}

/// The failure of a session that does not handle its messages.
pub(crate) fn stuck_session() -> Failure {
    let reason = "the session is blocked by its database; wait a moment, then try again";
    Failure::new(FailureKind::Store, reason)
}

/// The failure for a session that the client has not opened, whether or not it exists.
pub(crate) fn session_not_open(id: &SessionId) -> Failure {
    let reason = format!("the session {id} is not open; load or resume it first");
    Failure::new(FailureKind::SessionNotFound, reason)
}

/// The failure for a missing session, with a hint.
pub(crate) fn session_not_found(id: &SessionId) -> Failure {
    let reason = format!("there is no session {id}; `crow-cli inspect` lists the sessions");
    Failure::new(FailureKind::SessionNotFound, reason)
}
