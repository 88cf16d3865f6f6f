//! Processes, terminals and signals on Linux, macOS and other Unix systems.

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
