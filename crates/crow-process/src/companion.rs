//! A program that stays: spoken to on pipes for as long as it is wanted, and gone with whoever wanted it.

use std::io;

use tokio::{
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    time::timeout,
};

use crate::{
    Command, Ended, Groups, SpawnError,
    groups::Guard,
    program::{GRACE, REAP, how, leader},
};

/// A program at our side. Dropping it kills its whole group at once.
///
/// The guard stands before the child: the group is killed before the child is given to the reaper.
#[derive(Debug)]
pub struct Companion {
    group: Guard,
    child: Child,
}

/// How a companion is spoken to. Closing its stdin is how most of them are asked to end.
#[derive(Debug)]
pub struct Pipes {
    /// What it reads.
    pub stdin: ChildStdin,
    /// What it answers.
    pub stdout: ChildStdout,
    /// What it complains of; has to be read, or the program stops when the pipe is full.
    pub stderr: ChildStderr,
}

/// Starts a program that stays until it is dropped or ended.
pub async fn accompany(groups: &Groups, command: Command) -> Result<(Companion, Pipes), SpawnError> {
    if groups.is_closed() {
        return Err(SpawnError::Closed);
    }
    let mut child = command.spawn_piped().await?;
    let group = groups.guard(leader(&child)?);
    match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
        (Some(stdin), Some(stdout), Some(stderr)) => {
            Ok((Companion { group, child }, Pipes { stdin, stdout, stderr }))
        }
        _ => Err(io::Error::other("the child has no pipes").into()),
    }
}

impl Companion {
    /// Waits until it ends by itself.
    pub async fn ended(&mut self) -> io::Result<Ended> {
        self.child.wait().await.map(how)
    }

    /// Ends it: what closed its stdin gets a moment to work, then the group is asked, then killed.
    pub async fn end(mut self) -> Option<Ended> {
        if let Ok(Ok(status)) = timeout(GRACE, self.child.wait()).await {
            return Some(how(status));
        }
        self.group.terminate();
        if let Ok(Ok(status)) = timeout(GRACE, self.child.wait()).await {
            return Some(how(status));
        }
        self.kill().await
    }

    /// Kills its whole group and waits until it has gone.
    pub async fn kill(mut self) -> Option<Ended> {
        self.group.kill();
        match timeout(REAP, self.child.wait()).await {
            Ok(status) => status.ok().map(how),
            Err(_) => {
                tracing::warn!("a killed program has not gone");
                None
            }
        }
    }
}
