//! A long-lived program that communicates over pipes and ends with its owner.

use std::io;

use tokio::{
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    time::timeout,
};

use crate::{
    CommandSpec, ExitReason, ProcessGroups, SpawnError,
    groups::GroupGuard,
    program::{GRACE, REAP, exit_reason},
    system::spawn::GroupedChild,
};

/// A long-lived child process. Dropping it kills its whole group at once.
///
/// The guard is the first field: the group is killed before the child is given to the reaper.
#[derive(Debug)]
pub struct PipedProcess {
    group: GroupGuard,
    child: Child,
}

/// The pipes of a child. Most programs end when their stdin is closed.
#[derive(Debug)]
pub struct ProcessPipes {
    pub stdin: ChildStdin,
    pub stdout: ChildStdout,
    /// Must be read, or the program blocks when the pipe is full.
    pub stderr: ChildStderr,
}

/// Starts a program that runs until it is dropped or shut down.
pub async fn spawn_piped_process(
    groups: &ProcessGroups,
    command: CommandSpec,
) -> Result<(PipedProcess, ProcessPipes), SpawnError> {
    if groups.is_closed() {
        return Err(SpawnError::Closed);
    }
    let GroupedChild { mut child, group } = command.spawn_piped().await?;
    let group = groups.guard_group(group);
    match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
        (Some(stdin), Some(stdout), Some(stderr)) => {
            Ok((PipedProcess { group, child }, ProcessPipes { stdin, stdout, stderr }))
        }
        _ => Err(io::Error::other("the child has no pipes").into()),
    }
}

impl PipedProcess {
    /// Waits until it ends by itself.
    pub async fn wait(&mut self) -> io::Result<ExitReason> {
        self.child.wait().await.map(exit_reason)
    }

    /// Ends it: after its stdin is closed it gets a moment to finish, then its group gets SIGTERM, then SIGKILL.
    pub async fn shut_down(mut self) -> Option<ExitReason> {
        if let Ok(Ok(status)) = timeout(GRACE, self.child.wait()).await {
            return Some(exit_reason(status));
        }
        self.group.terminate();
        if let Ok(Ok(status)) = timeout(GRACE, self.child.wait()).await {
            return Some(exit_reason(status));
        }
        self.kill().await
    }

    /// Kills its whole group and waits for its end.
    pub async fn kill(mut self) -> Option<ExitReason> {
        self.group.kill();
        match timeout(REAP, self.child.wait()).await {
            Ok(status) => status.ok().map(exit_reason),
            Err(_) => {
                tracing::warn!("a killed program has not ended");
                None
            }
        }
    }
}
