//! Systems without a sandbox implementation.

use crow_core::SandboxSupport;

/// The reason, for sessions and `doctor`.
const UNSUPPORTED: &str = "this system has none that Crow can use";

/// Returns how well commands can be confined here.
#[expect(clippy::unused_async, reason = "the same signature as on Linux")]
pub(crate) async fn probe_sandbox(_program: String) -> SandboxSupport {
    SandboxSupport::Unavailable { reason: UNSUPPORTED.into() }
}

/// Parses a report from elsewhere. No supervisor here asks for one.
pub(crate) fn cannot_hold(_report: &str) -> Option<&str> {
    Some(UNSUPPORTED)
}

/// Returns what the helper program prints.
pub(crate) fn probe_report() -> String {
    String::new()
}
