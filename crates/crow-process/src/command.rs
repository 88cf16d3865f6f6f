//! A program to start, and starting it. Depends on the operating system; knows nothing of output or time.

use std::{io, path::PathBuf, process::Stdio};

use nix::unistd;
use tokio::{net::unix::pipe, process::Child};

use crate::{
    signals::restore_default_actions,
    terminal::{self, PseudoTerminal},
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
    pub(crate) child: Child,
    pub(crate) pipe: pipe::Receiver,
}

impl CommandSpec {
    /// Starts the program with no input and one pipe for its output.
    pub(crate) async fn spawn(self) -> Result<SpawnedChild, SpawnError> {
        let (reader, writer) = io::pipe()?;
        let pipe = pipe::Receiver::from_owned_fd(reader.into())?;
        let stdio = [Stdio::null(), writer.try_clone()?.into(), writer.into()];
        Ok(SpawnedChild { child: self.spawn_on(stdio).await?, pipe })
    }

    /// Starts the program with a pipe each for stdin, stdout and stderr.
    pub(crate) async fn spawn_piped(self) -> Result<Child, SpawnError> {
        self.spawn_on([Stdio::piped(), Stdio::piped(), Stdio::piped()]).await
    }

    /// Starts the program on a terminal of its own.
    pub(crate) async fn spawn_on_terminal(self) -> Result<(Child, PseudoTerminal), SpawnError> {
        let program = self.program.clone();
        let command = self.into_tokio_command().await?;
        let (child, terminal) =
            terminal::spawn_on_pty(command, child_setup()).map_err(|e| spawn_error(program, e))?;
        Ok((child, terminal))
    }

    /// Starts the program as the leader of a new session, and so of a new process group with its own pid. Our copies
    /// of its output pipe are closed when this returns: a pipe never ends while they are open.
    async fn spawn_on(self, [stdin, stdout, stderr]: [Stdio; 3]) -> Result<Child, SpawnError> {
        let program = self.program.clone();
        let mut command = self.into_tokio_command().await?;
        command.stdin(stdin).stdout(stdout).stderr(stderr);
        detach_from_terminal(&mut command);
        command.spawn().map_err(|error| spawn_error(program, error))
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

/// Starts a new session instead of only a process group: without a controlling terminal, a program that wants to ask
/// for a password fails at once; in a background group it would stop forever.
fn detach_from_terminal(command: &mut tokio::process::Command) {
    let set_up = child_setup();
    let after_fork = move || {
        unistd::setsid()?;
        set_up()
    };
    #[expect(unsafe_code, reason = "the only way to act between fork and exec")]
    // SAFETY: the closure only makes system calls that are safe after fork; it neither allocates nor locks.
    unsafe {
        command.pre_exec(after_fork);
    }
}

/// Runs in the child between fork and exec, so that it does not outlive Crow and can be interrupted.
fn child_setup() -> impl Fn() -> io::Result<()> + Send + Sync + 'static {
    let parent = unistd::getpid();
    move || {
        restore_default_actions()?;
        set_parent_death_signal(parent)
    }
}

/// Makes the system kill the child when Crow is killed. Linux ties this to the thread that spawned it: children are
/// spawned from the runtime's thread, which lives as long as the process.
#[cfg(target_os = "linux")]
fn set_parent_death_signal(parent: unistd::Pid) -> io::Result<()> {
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
    // The parent may have died before this call.
    if unistd::getppid() == parent { Ok(()) } else { Err(nix::errno::Errno::ESRCH.into()) }
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "the same signature as on Linux")]
fn set_parent_death_signal(_parent: unistd::Pid) -> io::Result<()> {
    Ok(())
}
