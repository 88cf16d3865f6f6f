//! A pseudo terminal with a program on it: keys in, screen out.
//!
//! It replies to a program's queries as terminals do and knows which modes are on, but nothing of the program.

mod emulator;
mod keys;
mod output_scanner;
mod program;

pub use emulator::{EmulatorSize, TerminalEmulator};
pub use program::{RecordedOutput, TerminalKind, TerminalProgram, TerminalSetup};
