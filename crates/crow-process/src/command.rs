//! What to start, and starting it. Knows the operating system; knows nothing of output or time.

use std::{io, path::PathBuf, process::Stdio};

use nix::unistd;
use tokio::{net::unix::pipe, process::Child};

/// A program with all it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
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
pub(crate) struct Spawned {
    pub(crate) child: Child,
    pub(crate) pipe: pipe::Receiver,
}

impl Command {
    /// Starts the program as the leader of a new session, and so of a new group with its own pid.
    pub(crate) async fn spawn(self) -> Result<Spawned, SpawnError> {
        // A missing folder and a missing program are one error number to the system.
        if !tokio::fs::metadata(&self.cwd).await.is_ok_and(|found| found.is_dir()) {
            return Err(SpawnError::NoFolder { cwd: self.cwd });
        }
        let (reader, writer) = io::pipe()?;
        let pipe = pipe::Receiver::from_owned_fd(reader.into())?;
        #[expect(clippy::disallowed_methods, reason = "this is the place that everybody else is sent to")]
        let mut command = tokio::process::Command::new(&self.program);
        command.args(&self.args).current_dir(&self.cwd);
        for name in &self.env_removed {
            command.env_remove(name);
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        detach(&mut command);
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(SpawnError::NoProgram { program: self.program });
            }
            Err(error) => return Err(error.into()),
        };
        // `command` still holds our ends for writing; while they live the pipe never ends.
        drop(command);
        Ok(Spawned { child, pipe })
    }
}

/// A session of its own rather than only a group: without a controlling terminal a program that wants to
/// ask for a password fails at once, where in a background group it would stop for ever.
fn detach(command: &mut tokio::process::Command) {
    let parent = unistd::getpid();
    let after_fork = move || {
        unistd::setsid()?;
        die_with(parent)
    };
    #[expect(unsafe_code, reason = "the only way to act between fork and exec")]
    // SAFETY: the closure makes three system calls that are safe after fork; it neither allocates nor locks.
    unsafe {
        command.pre_exec(after_fork);
    }
}

/// Has the system kill the child if we are killed. Linux ties this to the thread that spawned: children
/// are spawned from the runtime's thread, which lives as long as the process.
#[cfg(target_os = "linux")]
fn die_with(parent: unistd::Pid) -> io::Result<()> {
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
    // The parent may have died before the wish was made.
    if unistd::getppid() == parent { Ok(()) } else { Err(nix::errno::Errno::ESRCH.into()) }
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "the same signature as on Linux")]
fn die_with(_parent: unistd::Pid) -> io::Result<()> {
    Ok(())
}
