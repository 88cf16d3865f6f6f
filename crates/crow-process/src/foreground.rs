//! A program that has the terminal of this process, such as an editor.

use std::{io, path::Path};

use crate::system::foreground::shell_command;

/// Runs a shell command line in the foreground, with this process's terminal as its input and output. Returns whether
/// it succeeded. The caller has to stop reading the terminal.
pub async fn run_in_foreground(command_line: &str, argument: &Path, cwd: &Path) -> io::Result<bool> {
    Ok(shell_command(command_line, argument).current_dir(cwd).status().await?.success())
}
