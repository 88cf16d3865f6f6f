//! The terminal of this process: its mode, its size, and the job control of the shell around it.

use std::{
    fmt,
    fs::{File, OpenOptions},
    io,
    os::fd::AsFd,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use crate::terminal_cells::TerminalCells;

/// The device of this process's terminal.
const TERMINAL: &str = "/dev/tty";

/// The mode of a terminal.
#[derive(Clone)]
pub struct TerminalMode(Termios);

impl fmt::Debug for TerminalMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TerminalMode").finish_non_exhaustive()
    }
}

impl TerminalMode {
    /// Returns the current mode of a terminal.
    pub fn of_terminal(terminal: &impl AsFd) -> io::Result<Self> {
        Ok(Self(tcgetattr(terminal)?))
    }

    /// Returns the same mode, but raw: each byte is read as it is typed, and none has an effect of its own.
    #[must_use]
    pub fn to_raw(&self) -> Self {
        let mut mode = self.0.clone();
        mode.make_raw();
        Self(mode)
    }

    /// Sets the mode of a terminal. Output is drained and input is kept: keys typed meanwhile are not lost.
    pub fn apply_to(&self, terminal: &impl AsFd) -> io::Result<()> {
        Ok(tcsetattr(terminal, OptionalActions::Drain, &self.0)?)
    }
}

/// Opens the terminal of this process for reading and writing, whatever stdin and stdout are.
pub fn open_terminal() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(TERMINAL)
}

/// Returns the size of a terminal; `None` where it does not know it, as on a serial line.
pub fn terminal_size(terminal: &impl AsFd) -> io::Result<Option<TerminalCells>> {
    let size = tcgetwinsize(terminal)?;
    let is_known = size.ws_col > 0 && size.ws_row > 0;
    Ok(is_known.then_some(TerminalCells { columns: size.ws_col, rows: size.ws_row }))
}

/// Returns stdin as a file of its own, which has no buffer of another reader.
pub fn duplicate_stdin() -> io::Result<File> {
    io::stdin().as_fd().try_clone_to_owned().map(File::from)
}

/// Stops this process until the shell continues it.
pub fn suspend_process() -> io::Result<()> {
    Ok(kill(Pid::this(), Signal::SIGTSTP)?)
}
