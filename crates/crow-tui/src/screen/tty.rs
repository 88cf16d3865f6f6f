//! The controlling terminal: raw mode, size, frames in one write.

use std::{
    fs::File,
    io::{self, Write as _},
    sync::Arc,
};

use crow_process::{TerminalMode, open_terminal, terminal_size};

use super::{ScreenModes, ScreenSize, TerminalIo};

/// The size where the terminal does not know it, as on a serial line.
const FALLBACK: ScreenSize = ScreenSize { columns: 80, rows: 24 };

/// The process's terminal. Clones share it.
#[derive(Debug, Clone)]
pub struct TtyIo {
    file: Arc<File>,
    /// The mode before the program.
    original: TerminalMode,
}

impl TtyIo {
    /// Opens the terminal of the process, whatever stdin and stdout are.
    pub fn open() -> io::Result<Self> {
        Self::from_file(open_terminal()?)
    }

    fn from_file(file: File) -> io::Result<Self> {
        let original = TerminalMode::of_terminal(&file)?;
        Ok(Self { file: Arc::new(file), original })
    }

    /// Returns the terminal for reading.
    pub(super) fn reader(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Restores the terminal from anywhere: a panic hook or a signal handler's task. A second call does nothing.
    pub fn restore(&self, modes: &ScreenModes) -> io::Result<()> {
        let sequence = modes.take_restore_sequence();
        if sequence.is_empty() {
            return Ok(());
        }
        (&*self.file).write_all(sequence.as_bytes())?;
        self.original.apply_to(&self.file)
    }
}

impl TerminalIo for TtyIo {
    fn write_frame(&mut self, bytes: &[u8]) -> io::Result<()> {
        (&*self.file).write_all(bytes)
    }

    fn size(&self) -> io::Result<ScreenSize> {
        let size = terminal_size(&self.file)?;
        Ok(size.map_or(FALLBACK, |size| ScreenSize { columns: size.columns, rows: size.rows }))
    }

    fn set_raw(&mut self, is_raw: bool) -> io::Result<()> {
        let mode = if is_raw { self.original.to_raw() } else { self.original.clone() };
        mode.apply_to(&self.file)
    }
}

#[cfg(test)]
mod tests;
