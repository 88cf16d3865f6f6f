//! What the system does to a process that crosses a limit.

use nix::sys::{
    resource::{Resource, getrlimit, setrlimit},
    signal::{SigHandler, Signal, signal},
};

/// As many descriptors as a thousand children need, three times over. What we start has the same limit, and old programs
/// close every descriptor up to it, so it is not all that the system would give.
const DESCRIPTORS_WANTED: u64 = 16 * 1024;

/// The user whom this process acts for.
pub fn effective_uid() -> u32 {
    nix::unistd::geteuid().as_raw()
}

/// Has a write beyond the limit on a file's size fail like any other, instead of ending the process.
pub fn ignore_file_size_signal() {
    // SAFETY: no handler runs; the signal is ignored from here on.
    #[expect(unsafe_code, reason = "handlers are process-wide, and this sets none")]
    let ignored = unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) };
    if let Err(error) = ignored {
        tracing::warn!(%error, "a limit on the size of files ends the process");
    }
}

/// Lets the process open as many files and pipes as many children need, where the system allows it: the usual limit is
/// spent by two hundred.
pub fn raise_descriptor_limit() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE).and_then(|(soft, hard)| {
        let wanted = hard.min(DESCRIPTORS_WANTED);
        if soft < wanted { setrlimit(Resource::RLIMIT_NOFILE, wanted, hard) } else { Ok(()) }
    });
    if let Err(error) = raised {
        tracing::warn!(%error, "the limit on open files stays as it is");
    }
}
