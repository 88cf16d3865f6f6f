//! A program to start, and starting it. Knows nothing of output or time.

use std::{io, path::PathBuf, process::Stdio};

use crate::system::{
    spawn::{GroupedChild, OutputPipe, spawn_detached, to_output_pipe},
    terminal::{TerminalProgram, spawn_on_pty},
};

/// A program with its arguments and environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandSpec {
    /// A path or a name to look up in `PATH`.
    pub program: String,
    pub args: Vec<String>,
    /// The working directory.
    pub cwd: PathBuf,
    /// Variables in addition to Crow's own.
    pub env: Vec<(String, String)>,
    /// Variables of Crow that the program does not inherit.
    pub env_removed: Vec<String>,
}

/// The reason why a program did not start, or was lost.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("there is no program {program}")]
    NoProgram { program: String },
    /// The working directory does not exist.
    #[error("there is no directory {}", cwd.display())]
    NoDirectory { cwd: PathBuf },
    /// Crow is shutting down.
    #[error("no more programs are started: the process is shutting down")]
    Closed,
    /// The system call failed.
    #[error("the system call failed: {0}")]
    System(#[from] io::Error),
}

/// A child and the one pipe for both of its outputs.
pub(crate) struct SpawnedChild {
    pub(crate) grouped: GroupedChild,
    pub(crate) pipe: OutputPipe,
}

impl CommandSpec {
    /// Starts the program with no input and one pipe for its output.
    pub(crate) async fn spawn(self) -> Result<SpawnedChild, SpawnError> {
        let (reader, writer) = io::pipe()?;
        let pipe = to_output_pipe(reader)?;
        let stdio = [Stdio::null(), writer.try_clone()?.into(), writer.into()];
        Ok(SpawnedChild { grouped: self.spawn_on(stdio).await?, pipe })
    }

    /// Starts the program with a pipe each for stdin, stdout and stderr.
    pub(crate) async fn spawn_piped(self) -> Result<GroupedChild, SpawnError> {
        self.spawn_on([Stdio::piped(), Stdio::piped(), Stdio::piped()]).await
    }

    /// Starts the program on a terminal of its own.
    pub(crate) async fn spawn_on_terminal(self) -> Result<TerminalProgram, SpawnError> {
        let program = self.program.clone();
        let command = self.into_tokio_command().await?;
        spawn_on_pty(command).map_err(|error| spawn_error(program, error))
    }

    /// Starts the program away from our terminal, in a group of its own. Our copies of its output pipe are closed when
    /// this returns: a pipe never ends while they are open.
    async fn spawn_on(self, [stdin, stdout, stderr]: [Stdio; 3]) -> Result<GroupedChild, SpawnError> {
        let program = self.program.clone();
        let mut command = self.into_tokio_command().await?;
        command.stdin(stdin).stdout(stdout).stderr(stderr);
        spawn_detached(command).map_err(|error| spawn_error(program, error))
    }

    /// Converts it to tokio's command.
    async fn into_tokio_command(self) -> Result<tokio::process::Command, SpawnError> {
        // The system reports a missing directory and a missing program with the same error number.
        if !tokio::fs::metadata(&self.cwd).await.is_ok_and(|metadata| metadata.is_dir()) {
            return Err(SpawnError::NoDirectory { cwd: self.cwd });
        }
        #[expect(clippy::disallowed_methods, reason = "this is the place that everybody else is sent to")]
        let mut command = tokio::process::Command::new(&self.program);
        command.args(&self.args).current_dir(&self.cwd);
        for name in &self.env_removed {
            command.env_remove(name);
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        Ok(command)
    }
}

fn spawn_error(program: String, error: io::Error) -> SpawnError {
    if error.kind() == io::ErrorKind::NotFound { SpawnError::NoProgram { program } } else { error.into() }
}
