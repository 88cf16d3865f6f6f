//! Starts a program in a session and process group of its own.

use std::io;

use nix::unistd;
use tokio::{net::unix::pipe, process::Child};

use super::{process_group::ProcessGroup, signals::restore_default_actions};

/// A child on pipes, in its group.
pub(crate) struct GroupedChild {
    pub(crate) child: Child,
    pub(crate) group: ProcessGroup,
}

/// The reading end of a pipe.
pub(crate) type OutputPipe = pipe::Receiver;

/// A child on a pipe or on a terminal.
pub(crate) type ProgramChild = Child;

/// Converts a child on pipes.
pub(crate) fn to_program_child(child: Child) -> ProgramChild {
    child
}

/// Converts the reading end of a pipe.
pub(crate) fn to_output_pipe(reader: io::PipeReader) -> io::Result<OutputPipe> {
    OutputPipe::from_owned_fd(reader.into())
}

/// Starts a command as the leader of a new session, and so of a new process group with its own pid.
pub(crate) fn spawn_detached(mut command: tokio::process::Command) -> io::Result<GroupedChild> {
    detach_from_terminal(&mut command);
    let child = command.spawn()?;
    Ok(GroupedChild { group: ProcessGroup::of_leader(&child)?, child })
}

/// Starts a new session instead of only a process group: without a controlling terminal, a program that wants to ask
/// for a password fails at once; in a background group it would stop forever.
fn detach_from_terminal(command: &mut tokio::process::Command) {
    let set_up = child_setup();
    let after_fork = move || {
        unistd::setsid()?;
        set_up()
    };
    #[expect(unsafe_code, reason = "the only way to act between fork and exec")]
    // SAFETY: the closure only makes system calls that are safe after fork; it neither allocates nor locks.
    unsafe {
        command.pre_exec(after_fork);
    }
}

/// Runs in the child between fork and exec, so that it does not outlive Crow and can be interrupted.
pub(super) fn child_setup() -> impl Fn() -> io::Result<()> + Send + Sync + 'static {
    let parent = unistd::getpid();
    move || {
        restore_default_actions()?;
        set_parent_death_signal(parent)
    }
}

/// Makes the system kill the child when Crow is killed. Linux ties this to the thread that spawned it: children are
/// spawned from the runtime's thread, which lives as long as the process.
#[cfg(target_os = "linux")]
fn set_parent_death_signal(parent: unistd::Pid) -> io::Result<()> {
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
    // The parent may have died before this call.
    if unistd::getppid() == parent { Ok(()) } else { Err(nix::errno::Errno::ESRCH.into()) }
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "the same signature as on Linux")]
fn set_parent_death_signal(_parent: unistd::Pid) -> io::Result<()> {
    Ok(())
}
