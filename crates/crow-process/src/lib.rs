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
pub use command::{CommandSpec, SpawnError};
pub use companion::{PipedProcess, ProcessPipes, spawn_piped_process};
pub use environment::hide_environment;
pub use filter::{FilterLimits, FilterResult, run_filter};
pub use groups::ProcessGroups;
pub use input::{discard_input, has_input, wait_for_input};
pub use job::{BackgroundJob, JobInputError, JobStatus, JobWaitOptions};
pub use limits::{effective_uid, ignore_file_size_signal, raise_descriptor_limit};
pub use output::{CapturedOutput, OutputLimits, SpillFile};
pub use program::{ExitReason, OutputWatcher, ProgramResult, RunningProgram, StdioKind, WaitOutcome};
pub use run::{RunLimits, run_program};
pub use stderr::StderrReader;
pub use warden::{CommandConfinement, SandboxDefaults, SandboxWrapper, WORD, run_sandbox_exec};

#[cfg(test)]
mod tests;
