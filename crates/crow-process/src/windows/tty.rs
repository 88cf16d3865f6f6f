//! The console of this process. Its raw mode is not implemented: the interactive terminal needs a reader of console
//! events instead of bytes.

use std::{
    fs::File,
    io,
    os::windows::io::{AsHandle, AsRawHandle as _},
};

use windows_sys::Win32::System::Console::{CONSOLE_SCREEN_BUFFER_INFO, GetConsoleScreenBufferInfo};

use super::check_bool;
use crate::terminal_cells::TerminalCells;

/// The reason why the interactive terminal does not start.
const NOT_SUPPORTED: &str = "the interactive terminal does not support Windows yet";

/// The mode of a terminal.
#[derive(Debug, Clone)]
pub struct TerminalMode(());

impl TerminalMode {
    /// Returns an error: raw mode is not implemented.
    pub fn of_terminal(_terminal: &impl AsHandle) -> io::Result<Self> {
        Err(unsupported_error())
    }

    /// Returns the same mode, but raw.
    #[must_use]
    pub fn to_raw(&self) -> Self {
        self.clone()
    }

    /// Returns an error: raw mode is not implemented.
    pub fn apply_to(&self, _terminal: &impl AsHandle) -> io::Result<()> {
        Err(unsupported_error())
    }
}

/// Opens the terminal of this process for reading and writing.
pub fn open_terminal() -> io::Result<File> {
    Err(unsupported_error())
}

/// Returns the size of a console.
pub fn terminal_size(terminal: &impl AsHandle) -> io::Result<Option<TerminalCells>> {
    let mut info = CONSOLE_SCREEN_BUFFER_INFO::default();
    #[expect(unsafe_code, reason = "the standard library does not return the size of a console")]
    // SAFETY: the handle is open, and the result is written to a value that lives until the call returns.
    check_bool(unsafe { GetConsoleScreenBufferInfo(terminal.as_handle().as_raw_handle(), &raw mut info) })?;
    let window = info.srWindow;
    let columns = u16::try_from(window.Right - window.Left + 1).unwrap_or_default();
    let rows = u16::try_from(window.Bottom - window.Top + 1).unwrap_or_default();
    Ok((columns > 0 && rows > 0).then_some(TerminalCells { columns, rows }))
}

/// Returns stdin as a file of its own, which has no buffer of another reader.
pub fn duplicate_stdin() -> io::Result<File> {
    io::stdin().as_handle().try_clone_to_owned().map(File::from)
}

/// Returns an error: no shell can continue a stopped process.
pub fn suspend_process() -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "Windows cannot suspend a process"))
}

fn unsupported_error() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, NOT_SUPPORTED)
}
