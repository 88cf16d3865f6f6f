//! Exit codes and messages of a supervisor that could not run its command.

use crate::launch_spec::SUBCOMMAND;

/// The exit code for a command line that was not understood.
pub(super) const EXIT_USAGE: u8 = 2;

/// The exit code of a shell for a program that exists and cannot be started.
pub(super) const EXIT_CANNOT_RUN: u8 = 126;

/// The exit code of a shell for a missing program.
pub(super) const EXIT_NOT_FOUND: u8 = 127;

#[expect(clippy::print_stderr, reason = "the caller reads it")]
pub(super) fn print_error(reason: &str) {
    eprintln!("crow-cli {SUBCOMMAND}: {reason}");
}
