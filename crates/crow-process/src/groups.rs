//! Which process groups are alive, so that the end of the process leaves none behind.
//! Knows group numbers only.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};

/// Every group that is alive; clones share it.
#[derive(Debug, Clone, Default)]
pub struct ProcessGroups {
    inner: Arc<Mutex<GroupsInner>>,
}

#[derive(Debug, Default)]
struct GroupsInner {
    alive: BTreeSet<Pid>,
    closed: bool,
}

impl ProcessGroups {
    /// Starts with none.
    pub fn new() -> Self {
        Self::default()
    }

    /// Kills every group at once and lets no new one begin; for the end of the process.
    pub fn kill_all(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        for &group in &inner.alive {
            signal_group(group, Signal::SIGKILL);
        }
    }

    /// Counts the groups alive.
    pub fn n_alive(&self) -> usize {
        self.lock().alive.len()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Takes a group under guard. When everything was closed meanwhile the group is killed at once.
    pub(crate) fn guard_group(&self, leader: Pid) -> GroupGuard {
        let mut inner = self.lock();
        inner.alive.insert(leader);
        if inner.closed {
            signal_group(leader, Signal::SIGKILL);
        }
        GroupGuard { groups: self.clone(), leader }
    }

    fn lock(&self) -> MutexGuard<'_, GroupsInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One group; dropping it kills what is left of the group.
#[derive(Debug)]
pub(crate) struct GroupGuard {
    groups: ProcessGroups,
    leader: Pid,
}

impl GroupGuard {
    pub(crate) fn terminate(&self) {
        signal_group(self.leader, Signal::SIGTERM);
        // What is stopped hears nothing else.
        signal_group(self.leader, Signal::SIGCONT);
    }

    /// Says that its terminal is gone: what an interactive shell ends for.
    pub(crate) fn hang_up(&self) {
        signal_group(self.leader, Signal::SIGHUP);
    }

    pub(crate) fn interrupt(&self) {
        signal_group(self.leader, Signal::SIGINT);
    }

    pub(crate) fn kill(&self) {
        signal_group(self.leader, Signal::SIGKILL);
    }
}

impl Drop for GroupGuard {
    fn drop(&mut self) {
        self.kill();
        self.groups.lock().alive.remove(&self.leader);
    }
}

/// Kill the group, not the child: a shell's children outlive it. A group that is gone already is fine.
fn signal_group(group: Pid, signal: Signal) {
    match killpg(group, signal) {
        Ok(()) | Err(nix::errno::Errno::ESRCH) => {}
        Err(error) => tracing::warn!(%group, %signal, %error, "could not signal a process group"),
    }
}
