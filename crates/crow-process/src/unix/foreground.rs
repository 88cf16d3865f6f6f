//! A program that has the terminal of this process.

use std::path::Path;

use tokio::process::Command;

/// Returns the command that runs a line of the system's shell with a path at its end.
#[expect(clippy::disallowed_methods, reason = "it shares the terminal and the group of this process")]
pub(crate) fn shell_command(command_line: &str, argument: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{command_line} \"$1\""), "sh"]).arg(argument);
    command
}

/// Runs a command in place of this process; returns only if that fails.
#[cfg(not(target_os = "linux"))]
pub(crate) fn run_in_place(command: &mut std::process::Command) -> std::io::Result<std::process::ExitCode> {
    use std::os::unix::process::CommandExt as _;
    Err(command.exec())
}
