//! The end of a process.

use std::process::ExitStatus;

/// Returns the signal that ended a process: none, because Windows has no signals.
pub(crate) fn signal_number(_status: ExitStatus) -> Option<i32> {
    None
}
