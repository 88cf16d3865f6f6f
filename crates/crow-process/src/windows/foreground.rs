//! A program that has the console of this process.

use std::{
    ffi::OsString,
    io,
    path::Path,
    process::{ExitCode, ExitStatus},
};

use tokio::process::{Child, Command};

/// Returns the command that runs a line of the system's shell with a path at its end.
#[expect(clippy::disallowed_methods, reason = "it shares the console of this process")]
pub(crate) fn shell_command(command_line: &str, argument: &Path) -> Command {
    let mut command = Command::new("cmd.exe");
    // The outermost quotes are the shell's own; a path contains none.
    let mut line = OsString::from(format!("\"{command_line} \""));
    line.push(argument);
    line.push("\"\"");
    command.args(["/D", "/S", "/C"]).raw_arg(line);
    command
}

/// A program in the foreground.
pub(crate) struct ForegroundProgram(Child);

impl ForegroundProgram {
    /// Starts a command.
    pub(crate) fn start(mut command: Command) -> io::Result<Self> {
        command.kill_on_drop(true).spawn().map(Self)
    }

    /// Waits for the end.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.0.wait().await
    }

    /// Ends the program.
    pub(crate) async fn end(&mut self) -> io::Result<()> {
        self.0.kill().await
    }
}

/// Runs a command in place of this process: waits for it and returns its exit code.
pub(crate) fn run_in_place(command: &mut std::process::Command) -> io::Result<ExitCode> {
    let code = command.status()?.code().unwrap_or_default();
    // A caller of this program gets the lowest byte only, and no failure as success.
    Ok(match u8::try_from(code) {
        Ok(code) => ExitCode::from(code),
        Err(_) => ExitCode::FAILURE,
    })
}
