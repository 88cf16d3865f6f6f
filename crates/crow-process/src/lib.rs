//! Child processes: each in a session and group of its own, without a terminal and without our input,
//! with bounded output, and never left behind.
//!
//! Must never know what a program is for, what a tool or a model is, or which variables hold secrets:
//! the caller names those.
//!
//! When the child exits, what it left running in its group is killed after a short drain: a command that
//! wants something to live on has to be asked for in another way. A program that calls `setsid` itself
//! leaves the group and is out of reach; it keeps nobody waiting.

mod command;
mod companion;
mod groups;
mod output;
mod run;
mod sandbox;
mod warden;

pub use command::{Command, SpawnError};
pub use companion::{Companion, Pipes, accompany};
pub use groups::Groups;
pub use output::{Output, Spilled};
pub use run::{Bounds, Ended, Ran, Watcher, run};
pub use sandbox::{Support, sandbox_support};
pub use warden::{Confine, StandingRules, WORD, Warden, watch};

#[cfg(test)]
mod tests;
