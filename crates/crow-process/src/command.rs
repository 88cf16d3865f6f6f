//! What to start, and starting it. Knows the operating system; knows nothing of output or time.

use std::{io, path::PathBuf, process::Stdio};

use nix::unistd;
use tokio::{net::unix::pipe, process::Child};

use crate::terminal::{self, PseudoTerminal};

/// A program with all it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandSpec {
    /// The program, a path or a name to look up in `PATH`.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Where it starts.
    pub cwd: PathBuf,
    /// Variables it gets on top of ours.
    pub env: Vec<(String, String)>,
    /// Variables of ours it does not get.
    pub env_removed: Vec<String>,
}

/// Why a program never ran, or was lost.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// There is no such program.
    #[error("there is no program {program}")]
    NoProgram {
        /// What was asked for.
        program: String,
    },
    /// There is no such folder to start in.
    #[error("there is no folder {}", cwd.display())]
    NoFolder {
        /// What was asked for.
        cwd: PathBuf,
    },
    /// Everything is being shut down.
    #[error("no more programs are started, the process is ending")]
    Closed,
    /// The system refused.
    #[error("the system refused: {0}")]
    System(#[from] io::Error),
}

/// A child and the one pipe that both its outputs go to.
pub(crate) struct SpawnedChild {
    pub(crate) child: Child,
    pub(crate) pipe: pipe::Receiver,
}

impl CommandSpec {
    /// Starts the program with no input, and one pipe for what it says.
    pub(crate) async fn spawn(self) -> Result<SpawnedChild, SpawnError> {
        let (reader, writer) = io::pipe()?;
        let pipe = pipe::Receiver::from_owned_fd(reader.into())?;
        let stdio = [Stdio::null(), writer.try_clone()?.into(), writer.into()];
        Ok(SpawnedChild { child: self.spawn_on(stdio).await?, pipe })
    }

    /// Starts the program with a pipe for each of stdin, stdout and stderr.
    pub(crate) async fn spawn_piped(self) -> Result<Child, SpawnError> {
        self.spawn_on([Stdio::piped(), Stdio::piped(), Stdio::piped()]).await
    }

    /// Starts the program on a terminal of its own.
    pub(crate) async fn spawn_on_terminal(self) -> Result<(Child, PseudoTerminal), SpawnError> {
        let program = self.program.clone();
        let command = self.into_tokio_command().await?;
        let (child, terminal) =
            terminal::spawn_on_pty(command, parent_death_hook()).map_err(|e| spawn_error(program, e))?;
        Ok((child, terminal))
    }

    /// Starts the program as the leader of a new session, and so of a new group with its own pid. Our own copies
    /// of what it writes to are closed with the end of this: while they live a pipe never ends.
    async fn spawn_on(self, [stdin, stdout, stderr]: [Stdio; 3]) -> Result<Child, SpawnError> {
        let program = self.program.clone();
        let mut command = self.into_tokio_command().await?;
        command.stdin(stdin).stdout(stdout).stderr(stderr);
        detach_from_terminal(&mut command);
        command.spawn().map_err(|error| spawn_error(program, error))
    }

    /// Makes the system's kind of command of it.
    async fn into_tokio_command(self) -> Result<tokio::process::Command, SpawnError> {
        // A missing folder and a missing program are one error number to the system.
        if !tokio::fs::metadata(&self.cwd).await.is_ok_and(|found| found.is_dir()) {
            return Err(SpawnError::NoFolder { cwd: self.cwd });
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

/// A session of its own rather than only a group: without a controlling terminal a program that wants to
/// ask for a password fails at once, where in a background group it would stop for ever.
fn detach_from_terminal(command: &mut tokio::process::Command) {
    let die_with_us = parent_death_hook();
    let after_fork = move || {
        unistd::setsid()?;
        die_with_us()
    };
    #[expect(unsafe_code, reason = "the only way to act between fork and exec")]
    // SAFETY: the closure makes three system calls that are safe after fork; it neither allocates nor locks.
    unsafe {
        command.pre_exec(after_fork);
    }
}

/// What a child does between fork and exec so as not to outlive us.
fn parent_death_hook() -> impl Fn() -> io::Result<()> + Send + Sync + 'static {
    let parent = unistd::getpid();
    move || set_parent_death_signal(parent)
}

/// Has the system kill the child if we are killed. Linux ties this to the thread that spawned: children
/// are spawned from the runtime's thread, which lives as long as the process.
#[cfg(target_os = "linux")]
fn set_parent_death_signal(parent: unistd::Pid) -> io::Result<()> {
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
    // The parent may have died before the wish was made.
    if unistd::getppid() == parent { Ok(()) } else { Err(nix::errno::Errno::ESRCH.into()) }
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "the same signature as on Linux")]
fn set_parent_death_signal(_parent: unistd::Pid) -> io::Result<()> {
    Ok(())
}
