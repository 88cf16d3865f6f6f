//! Emulators behind [`TerminalIo`], for tests.

use std::{cell::RefCell, io, rc::Rc};

use crow_testkit::terminal::{EmulatorSize, TerminalEmulator};

use super::{ScreenSize, TerminalIo};

/// A terminal that a test shares with the screen.
#[derive(Clone)]
pub(super) struct EmulatorIo(Rc<RefCell<EmulatorState>>);

struct EmulatorState {
    emulator: TerminalEmulator,
    /// Bytes of each frame.
    frames: Vec<Vec<u8>>,
    n_position_queries: usize,
}

impl EmulatorIo {
    pub(super) fn reflowing(size: ScreenSize) -> Self {
        Self::with_emulator(TerminalEmulator::reflowing(emulator_size(size)))
    }

    pub(super) fn clipping(size: ScreenSize) -> Self {
        Self::with_emulator(TerminalEmulator::clipping(emulator_size(size)))
    }

    fn with_emulator(emulator: TerminalEmulator) -> Self {
        Self(Rc::new(RefCell::new(EmulatorState { emulator, frames: Vec::new(), n_position_queries: 0 })))
    }

    pub(super) fn resize(&self, size: ScreenSize) {
        self.0.borrow_mut().emulator.resize(emulator_size(size));
    }

    /// The cursor's row and column.
    pub(super) fn cursor(&self) -> (u16, u16) {
        self.0.borrow().emulator.cursor()
    }

    /// Returns how many queries for the position were sent since the last call.
    pub(super) fn take_position_queries(&self) -> usize {
        std::mem::take(&mut self.0.borrow_mut().n_position_queries)
    }

    pub(super) fn take_frames(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.0.borrow_mut().frames)
    }

    /// The rows of history and screen; a row that the terminal wrapped is one row. Blank rows at the end are dropped.
    pub(super) fn rows(&self) -> Vec<String> {
        self.0.borrow_mut().emulator.rows()
    }
}

impl TerminalIo for EmulatorIo {
    fn write_frame(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.n_position_queries += usize::from(bytes == b"\x1b[6n");
        state.emulator.process(bytes);
        state.frames.push(bytes.to_vec());
        Ok(())
    }

    fn size(&self) -> io::Result<ScreenSize> {
        let size = self.0.borrow().emulator.size();
        Ok(ScreenSize { columns: size.columns, rows: size.rows })
    }

    fn set_raw(&mut self, _: bool) -> io::Result<()> {
        Ok(())
    }
}

fn emulator_size(size: ScreenSize) -> EmulatorSize {
    EmulatorSize { columns: size.columns, rows: size.rows }
}
