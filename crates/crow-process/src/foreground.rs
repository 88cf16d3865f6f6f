//! A program that has the terminal of this process, such as an editor.

use std::{io, path::Path};

use crate::system::foreground::{ForegroundProgram, shell_command};

/// Runs a shell command line in the foreground, with this process's terminal as its input and output. Returns whether
/// it succeeded. The program is ended when `stop` is ready. The caller has to stop reading the terminal.
pub async fn run_in_foreground(
    command_line: &str,
    argument: &Path,
    cwd: &Path,
    stop: impl Future<Output = ()>,
) -> io::Result<bool> {
    let mut command = shell_command(command_line, argument);
    command.current_dir(cwd);
    let mut program = ForegroundProgram::start(command)?;
    tokio::select! {
        biased;
        status = program.wait() => return Ok(status?.success()),
        () = stop => {}
    }
    program.end().await?;
    Ok(false)
}
