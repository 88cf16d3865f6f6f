//! A pseudo terminal for a program. Depends on the operating system; knows nothing of output or time.

use std::io;

use nix::errno::Errno;
use pty_process::{OwnedReadPty, OwnedWritePty, Size};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{
    process_group::ProcessGroup,
    spawn::{ProgramChild, child_setup},
};

/// Rows and columns: what programs expect at least, and lines that a model reads without a break.
const SIZE: (u16, u16) = (24, 100);

/// Our end of a terminal. Dropping both halves hangs it up.
pub(crate) struct PseudoTerminal {
    pub(crate) output: TerminalOutput,
    pub(crate) input: TerminalInput,
}

pub(crate) struct TerminalOutput(OwnedReadPty);
pub(crate) struct TerminalInput(OwnedWritePty);

/// A child on a terminal, in its group.
pub(crate) struct TerminalProgram {
    pub(crate) child: ProgramChild,
    pub(crate) group: ProcessGroup,
    pub(crate) terminal: PseudoTerminal,
}

/// Starts a command as the leader of a session with a terminal of its own.
pub(crate) fn spawn_on_pty(command: tokio::process::Command) -> io::Result<TerminalProgram> {
    let (pty, pts) = pty_process::open().map_err(to_io_error)?;
    pty.resize(Size::new(SIZE.0, SIZE.1)).map_err(to_io_error)?;
    let command = pty_process::Command::from(command);
    #[expect(unsafe_code, reason = "the only way to act between fork and exec")]
    // SAFETY: the closure makes system calls that are safe after fork; it neither allocates nor locks.
    let command = unsafe { command.pre_exec(child_setup()) };
    let child = command.spawn(pts).map_err(to_io_error)?;
    let (output, input) = pty.into_split();
    let terminal = PseudoTerminal { output: TerminalOutput(output), input: TerminalInput(input) };
    Ok(TerminalProgram { group: ProcessGroup::of_leader(&child)?, child, terminal })
}

impl TerminalOutput {
    /// Reads output; zero bytes when no process has the terminal open any more.
    pub(crate) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer).await {
            // Linux reports the end this way.
            Err(error) if error.raw_os_error() == Some(Errno::EIO as i32) => Ok(0),
            read => read,
        }
    }
}

impl TerminalInput {
    /// Writes as much as there is room for.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).await
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the crate may add to its errors")]
fn to_io_error(error: pty_process::Error) -> io::Error {
    match error {
        pty_process::Error::Io(error) => error,
        pty_process::Error::Rustix(errno) => errno.into(),
        other => io::Error::other(other.to_string()),
    }
}
