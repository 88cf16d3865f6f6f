//! Child processes: each in a session and group of its own, without our input, on a pipe or on a terminal
//! of its own, with bounded output, and never left behind.
//!
//! Must never know what a program is for, what a tool or a model is, or which variables hold secrets:
//! the caller names those, and `crow-core` those that any name tells.
//!
//! When the child exits, what it left running in its group is killed after a short drain: a command that
//! wants something to live on has to be asked for in another way. A program that calls `setsid` itself
//! leaves the group and is out of reach; it keeps nobody waiting.

mod browser;
mod command;
mod companion;
mod environment;
mod filter;
mod groups;
mod input;
mod job;
mod limits;
mod output;
mod plain;
mod program;
mod run;
mod sandbox;
mod spill;
mod stderr;
mod terminal;
mod warden;

pub use browser::open_in_browser;
pub use command::{Command, SpawnError};
pub use companion::{Companion, Pipes, accompany};
pub use environment::hide_environment;
pub use filter::{FilterBounds, Filtered, filter};
pub use groups::Groups;
pub use input::{drop_input, has_input, wait_for_input};
pub use job::{Job, Patience, Pulse, Unfed};
pub use limits::{allow_many_descriptors, own_user, survive_large_files};
pub use output::{Kept, Output, Spilled};
pub use program::{Ended, Happened, Line, Program, Ran, Watcher};
pub use run::{Bounds, run};
pub use stderr::Stderr;
pub use warden::{Confine, StandingRules, WORD, Warden, watch};

#[cfg(test)]
mod tests;
