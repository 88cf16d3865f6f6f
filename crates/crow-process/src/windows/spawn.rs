//! Starts a program without a window, inside a job object.

use std::{
    fs::File,
    io,
    os::windows::io::{BorrowedHandle, OwnedHandle},
    process::ExitStatus,
};

use tokio::process::{Child, Command};
use windows_sys::Win32::System::Threading::{CREATE_NO_WINDOW, CREATE_SUSPENDED};

use super::{process_group::ProcessGroup, terminal::TerminalChild};

/// A child on pipes, in its group.
pub(crate) struct GroupedChild {
    pub(crate) child: Child,
    pub(crate) group: ProcessGroup,
}

/// The reading end of a pipe. A read is done by another thread, and none is lost if its future is dropped.
pub(crate) type OutputPipe = tokio::fs::File;

/// A child on a pipe or on a terminal.
pub(crate) enum ProgramChild {
    Piped(Child),
    Terminal(TerminalChild),
}

impl ProgramChild {
    /// Waits for its end. Cancel safe.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        match self {
            Self::Piped(child) => child.wait().await,
            Self::Terminal(child) => child.wait().await,
        }
    }
}

/// Converts a child on pipes.
pub(crate) fn to_program_child(child: Child) -> ProgramChild {
    ProgramChild::Piped(child)
}

/// Converts the reading end of a pipe.
#[expect(clippy::unnecessary_wraps, reason = "the same signature as on other systems")]
pub(crate) fn to_output_pipe(reader: io::PipeReader) -> io::Result<OutputPipe> {
    Ok(OutputPipe::from_std(File::from(OwnedHandle::from(reader))))
}

/// Starts a command with its own console, which has no window: it cannot read ours.
pub(crate) fn spawn_detached(mut command: Command) -> io::Result<GroupedChild> {
    command.creation_flags(CREATE_SUSPENDED | CREATE_NO_WINDOW);
    let mut child = command.spawn()?;
    match contain_child(&child) {
        Ok(group) => Ok(GroupedChild { child, group }),
        Err(error) => {
            // It is suspended, and nothing else would ever end it.
            child.start_kill()?;
            Err(error)
        }
    }
}

fn contain_child(child: &Child) -> io::Result<ProcessGroup> {
    let (Some(handle), Some(pid)) = (child.raw_handle(), child.id()) else {
        return Err(io::Error::other("the child has ended"));
    };
    #[expect(unsafe_code, reason = "tokio's child does not lend its handle")]
    // SAFETY: the child owns the handle and lives longer than this borrow.
    let process = unsafe { BorrowedHandle::borrow_raw(handle) };
    ProcessGroup::contain(process, pid, None)
}
