//! What the system does to a process that crosses a limit.

use nix::sys::signal::{SigHandler, Signal, signal};

/// Has a write beyond the limit on a file's size fail like any other, instead of ending the process.
pub fn survive_large_files() {
    // SAFETY: no handler runs; the signal is ignored from here on.
    #[expect(unsafe_code, reason = "handlers are process-wide, and this sets none")]
    let ignored = unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) };
    if let Err(error) = ignored {
        tracing::warn!(%error, "a limit on the size of files ends the process");
    }
}
