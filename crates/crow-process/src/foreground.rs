//! A program that has the terminal of this process, such as an editor.

use std::{io, path::Path};

use tokio::process::Command;

/// Runs a shell command line in the foreground, with this process's terminal as its input and output. Returns whether
/// it succeeded. The caller has to stop reading the terminal.
#[expect(clippy::disallowed_methods, reason = "it shares the terminal and the group of this process")]
pub async fn run_in_foreground(command_line: &str, argument: &Path, cwd: &Path) -> io::Result<bool> {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{command_line} \"$1\""), "sh"]).arg(argument).current_dir(cwd);
    Ok(command.status().await?.success())
}
