//! A program that stays: spoken to on pipes for as long as it is wanted, and gone with whoever wanted it.

use std::io;

use tokio::{
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    time::timeout,
};

use crate::{
    CommandSpec, ExitReason, ProcessGroups, SpawnError,
    groups::GroupGuard,
    program::{GRACE, REAP, exit_reason, group_leader},
};

/// A program at our side. Dropping it kills its whole group at once.
///
/// The guard stands before the child: the group is killed before the child is given to the reaper.
#[derive(Debug)]
pub struct PipedProcess {
    group: GroupGuard,
    child: Child,
}

/// How a companion is spoken to. Closing its stdin is how most of them are asked to end.
#[derive(Debug)]
pub struct ProcessPipes {
    /// What it reads.
    pub stdin: ChildStdin,
    /// What it answers.
    pub stdout: ChildStdout,
    /// What it complains of; has to be read, or the program stops when the pipe is full.
    pub stderr: ChildStderr,
}

/// Starts a program that stays until it is dropped or ended.
pub async fn spawn_piped_process(
    groups: &ProcessGroups,
    command: CommandSpec,
) -> Result<(PipedProcess, ProcessPipes), SpawnError> {
    if groups.is_closed() {
        return Err(SpawnError::Closed);
    }
    let mut child = command.spawn_piped().await?;
    let group = groups.guard_group(group_leader(&child)?);
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

    /// Ends it: what closed its stdin gets a moment to work, then the group is asked, then killed.
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

    /// Kills its whole group and waits until it has gone.
    pub async fn kill(mut self) -> Option<ExitReason> {
        self.group.kill();
        match timeout(REAP, self.child.wait()).await {
            Ok(status) => status.ok().map(exit_reason),
            Err(_) => {
                tracing::warn!("a killed program has not gone");
                None
            }
        }
    }
}
