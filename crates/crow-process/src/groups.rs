//! The process groups that are alive, so that none is left when the process ends. Knows only group numbers.

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
    is_closed: bool,
}

impl ProcessGroups {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Kills every group at once and refuses new ones; for the end of the process.
    pub fn kill_all(&self) {
        let mut inner = self.lock();
        inner.is_closed = true;
        for &group in &inner.alive {
            signal_group(group, Signal::SIGKILL);
        }
    }

    /// Counts the groups alive.
    pub fn n_alive(&self) -> usize {
        self.lock().alive.len()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Takes ownership of a group. If all groups were already killed, it is killed at once.
    pub(crate) fn guard_group(&self, leader: Pid) -> GroupGuard {
        let mut inner = self.lock();
        inner.alive.insert(leader);
        if inner.is_closed {
            signal_group(leader, Signal::SIGKILL);
        }
        GroupGuard { groups: self.clone(), leader }
    }

    fn lock(&self) -> MutexGuard<'_, GroupsInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A process group; dropping it kills the rest of the group.
#[derive(Debug)]
pub(crate) struct GroupGuard {
    groups: ProcessGroups,
    leader: Pid,
}

impl GroupGuard {
    pub(crate) fn terminate(&self) {
        signal_group(self.leader, Signal::SIGTERM);
        // A stopped process does not react to other signals.
        signal_group(self.leader, Signal::SIGCONT);
    }

    /// Sends SIGHUP, which ends an interactive shell.
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

/// Signals the group, not the child: a shell's children outlive it. A group that has already ended is not an error.
fn signal_group(group: Pid, signal: Signal) {
    match killpg(group, signal) {
        Ok(()) | Err(nix::errno::Errno::ESRCH) => {}
        Err(error) => tracing::warn!(%group, %signal, %error, "could not signal a process group"),
    }
}
