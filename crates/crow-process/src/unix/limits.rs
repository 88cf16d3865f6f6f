//! Limits that the system enforces on this process.

use nix::sys::{
    resource::{Resource, getrlimit, setrlimit},
    signal::{SigHandler, Signal, signal},
};

/// Three times the descriptors of a thousand children. Child processes inherit the limit, and old programs close
/// every descriptor up to it, so it is less than the system would permit.
const DESCRIPTOR_LIMIT: u64 = 16 * 1024;

/// The user ID that this process acts for.
pub fn effective_uid() -> u32 {
    nix::unistd::geteuid().as_raw()
}

/// Makes a write beyond the file size limit fail like any other instead of ending the process.
pub fn ignore_file_size_signal() {
    // SAFETY: no handler runs; the signal is ignored from here on.
    #[expect(unsafe_code, reason = "handlers are process-wide, and this sets none")]
    let result = unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) };
    if let Err(error) = result {
        tracing::warn!(%error, "exceeding the file size limit will end the process");
    }
}

/// Raises the limit on open files and pipes for many children, where the system permits it: two hundred children
/// exhaust the default.
pub fn raise_descriptor_limit() {
    let result = getrlimit(Resource::RLIMIT_NOFILE).and_then(|(soft, hard)| {
        let limit = hard.min(DESCRIPTOR_LIMIT);
        if soft < limit { setrlimit(Resource::RLIMIT_NOFILE, limit, hard) } else { Ok(()) }
    });
    if let Err(error) = result {
        tracing::warn!(%error, "could not raise the limit on open files");
    }
}
