//! Processes of which only the ID is known.

use std::fs;

use nix::{errno::Errno, sys::signal::kill, unistd::Pid};

/// Whether no process has this ID, or one that has ended and whose parent does not know yet.
pub fn has_process_ended(pid: u32) -> bool {
    // Others are for groups of processes.
    let Some(pid) = i32::try_from(pid).ok().filter(|&pid| pid > 0) else { return true };
    kill(Pid::from_raw(pid), None) == Err(Errno::ESRCH) || is_zombie(pid)
}

/// Whether a process is a zombie, as far as the system has a file about it.
fn is_zombie(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    // The name before the state may contain anything.
    stat.is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')))
}
