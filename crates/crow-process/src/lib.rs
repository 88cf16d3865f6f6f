//! Child processes: each in a session and process group of its own, without Crow's stdin, on a pipe or a terminal of
//! its own, with bounded output, and never left behind.
//!
//! Must not know the purpose of a program, tools, models, or which variables hold secrets: the caller specifies
//! those, and `crow-core` those that any name reveals.
//!
//! When the child exits, the rest of its group is killed after a short drain: a process that should live on must be
//! started as a background job. A program that calls `setsid` leaves the group; it delays nothing, and the supervisor
//! ends it.

mod ansi;
mod browser;
mod command;
mod environment;
mod filter;
mod foreground;
mod groups;
mod input;
mod job;
mod launch_spec;
mod limits;
mod output;
mod piped_process;
mod program;
mod run;
mod sandbox;
mod signals;
mod spill;
mod stderr;
mod supervisor;
mod terminal;
mod tty;

pub use browser::open_in_browser;
pub use command::{CommandSpec, SpawnError};
pub use environment::hide_environment;
pub use filter::{FilterLimits, FilterResult, run_filter};
pub use foreground::run_in_foreground;
pub use groups::ProcessGroups;
pub use input::{
    InputStop, InputStopper, InputWait, discard_input, has_input, input_stop, is_hung_up, wait_for_input,
    wait_for_input_or_stop,
};
pub use job::{BackgroundJob, JobInputError, JobStatus, JobWaitOptions};
pub use launch_spec::SUBCOMMAND;
pub use limits::{effective_uid, ignore_file_size_signal, raise_descriptor_limit};
pub use output::{CapturedOutput, OutputLimits, SpillFile};
pub use piped_process::{PipedProcess, ProcessPipes, spawn_piped_process};
pub use program::{ExitReason, OutputWatcher, ProgramResult, RunningProgram, StdioKind, WaitOutcome};
pub use run::{RunLimits, run_program};
pub use signals::{SignalListener, StopRequest, WindowResizes, wait_for_stop_signal};
pub use stderr::StderrReader;
pub use supervisor::{CommandConfinement, SandboxDefaults, SandboxWrapper, run_sandbox_exec};
pub use tty::{TerminalCells, TerminalMode, duplicate_stdin, suspend_process, terminal_size};

#[cfg(test)]
mod tests;
