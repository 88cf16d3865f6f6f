//! Child processes: each in a session and process group of its own, without Crow's stdin, on a pipe or a terminal of
//! its own, with bounded output, and never left behind.
//!
//! Must not know the purpose of a program, tools, models, or which variables hold secrets: the caller specifies
//! those, and `crow-core` those that any name reveals.
//!
//! When the child exits, the rest of its group is killed after a short drain: a process that should live on must be
//! started as a background job. A program that calls `setsid` leaves the group; it delays nothing, and the supervisor
//! ends it.
//!
//! Each system has a module with the same functions; the others use it by the name `system`.

mod ansi;
mod browser;
mod command;
mod environment;
mod filter;
mod foreground;
mod groups;
mod input_wait;
mod job;
mod launch_spec;
mod output;
mod piped_process;
mod program;
mod run;
mod sandbox;
mod spill;
mod stderr;
mod stop_request;
mod supervisor;
mod terminal_cells;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use self::unix as system;
#[cfg(windows)]
use self::windows as system;

pub use browser::open_in_browser;
pub use command::{CommandSpec, SpawnError};
pub use environment::secret_variables;
pub use filter::{FilterLimits, FilterResult, run_filter};
pub use foreground::run_in_foreground;
pub use groups::ProcessGroups;
pub use input_wait::InputWait;
pub use job::{BackgroundJob, JobInputError, JobStatus, JobWaitOptions};
pub use launch_spec::SUBCOMMAND;
pub use output::{CapturedOutput, OutputLimits, SpillFile};
pub use piped_process::{PipedProcess, ProcessPipes, spawn_piped_process};
pub use program::{ExitReason, OutputWatcher, ProgramResult, RunningProgram, StdioKind, WaitOutcome};
pub use run::{RunLimits, run_program};
pub use stderr::StderrReader;
pub use stop_request::StopRequest;
pub use supervisor::{CommandConfinement, SandboxDefaults, SandboxWrapper, run_sandbox_exec};
pub use system::{
    environment::{complete_environment, hide_environment},
    input::{
        InputStop, InputStopper, discard_input, has_input, input_stop, is_hung_up, wait_for_input,
        wait_for_input_or_stop,
    },
    limits::{effective_uid, ignore_file_size_signal, raise_descriptor_limit},
    other_process::has_process_ended,
    shell::{SHELL_DIRECTORY, find_program, posix_shell},
    signals::{SignalListener, WindowResizes, outlive_parent, wait_for_stop_signal},
    tty::{TerminalMode, duplicate_stdin, open_terminal, suspend_process, terminal_size},
};
pub use terminal_cells::TerminalCells;

#[cfg(unix)]
#[cfg(test)]
mod tests;
