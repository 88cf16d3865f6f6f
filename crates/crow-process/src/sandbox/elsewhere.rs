//! Systems that no sandbox has been written for.

use crow_core::SandboxSupport;

/// Finds out how well commands can be held here.
#[expect(clippy::unused_async, reason = "the same signature as on Linux")]
pub(crate) async fn probe_sandbox(_program: String) -> SandboxSupport {
    SandboxSupport::None { reason: "none has been written for this system yet".into() }
}

/// Returns what the helper program prints.
pub(crate) fn probe_report() -> String {
    String::new()
}
