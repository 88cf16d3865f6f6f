//! Processes, consoles and events on Windows.

pub(crate) mod browser;
pub(crate) mod environment;
pub(crate) mod exit_status;
pub(crate) mod foreground;
pub(crate) mod input;
pub(crate) mod limits;
pub(crate) mod other_process;
pub(crate) mod process_group;
pub(crate) mod shell;
pub(crate) mod signals;
pub(crate) mod spawn;
pub(crate) mod terminal;
pub(crate) mod tty;

mod command_line;
mod job_object;

use std::io;

/// Converts the result of a system call.
fn check_bool(result: i32) -> io::Result<()> {
    if result == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
