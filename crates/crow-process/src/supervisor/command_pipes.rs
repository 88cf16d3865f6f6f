//! The pipes of a command, of which the supervisor's processes keep no ends.

use std::{fs::File, io};

use nix::unistd::{dup2_stdin, dup2_stdout, isatty};

/// Replaces stdin and stdout of this process by `/dev/null`, so that our caller sees when the command has closed its own.
/// Messages about the command go to stderr, which stays.
pub(super) fn detach_from_pipes() {
    // On failure the command still runs; only its closed pipes go unnoticed.
    let _ = replace_pipes();
}

fn replace_pipes() -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    // A terminal ends with its command anyway.
    if !isatty(io::stdin()).unwrap_or(false) {
        dup2_stdin(&null)?;
    }
    if !isatty(io::stdout()).unwrap_or(false) {
        dup2_stdout(&null)?;
    }
    Ok(())
}
