//! The end of a process.

use std::{os::unix::process::ExitStatusExt as _, process::ExitStatus};

/// Returns the signal that ended a process.
pub(crate) fn signal_number(status: ExitStatus) -> Option<i32> {
    status.signal()
}
