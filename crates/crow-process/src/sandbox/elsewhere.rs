//! Systems without a sandbox implementation.

use crow_core::SandboxSupport;

/// Returns how well commands can be confined here.
#[expect(clippy::unused_async, reason = "the same signature as on Linux")]
pub(crate) async fn probe_sandbox(_program: String) -> SandboxSupport {
    SandboxSupport::None { reason: "it does not support this system yet".into() }
}

/// Returns what the helper program prints.
pub(crate) fn probe_report() -> String {
    String::new()
}
