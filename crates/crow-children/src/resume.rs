//! Resumes a session of an external agent, with the capabilities that the agent has.

use std::path::Path;

use crow_acp::AgentConnection;
use crow_core::{Failure, FailureKind, SessionId};

/// Resumes an earlier session of an external agent. Some agents declare that they can resume sessions, and can only
/// load them.
pub(crate) async fn resume_session(
    connection: &AgentConnection,
    session: &SessionId,
    cwd: &Path,
) -> Result<(), Failure> {
    let capabilities = connection.capabilities();
    if capabilities.resume_session {
        let result = connection.resume_session(session, cwd).await;
        if result.is_ok() || !capabilities.load_session {
            return result;
        }
    }
    if capabilities.load_session {
        return connection.load_session(session, cwd).await.map(drop);
    }
    let reason = "this agent cannot resume a session; start a new task";
    Err(Failure::new(FailureKind::InvalidValue, reason))
}
