//! The process groups that are alive, so that none is left when the process ends.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::system::process_group::ProcessGroup;

/// Every group that is alive; clones share it.
#[derive(Debug, Clone, Default)]
pub struct ProcessGroups {
    inner: Arc<Mutex<GroupsInner>>,
}

#[derive(Debug, Default)]
struct GroupsInner {
    alive: BTreeMap<u32, ProcessGroup>,
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
        inner.alive.values().for_each(ProcessGroup::kill);
    }

    /// Counts the groups alive.
    pub fn n_alive(&self) -> usize {
        self.lock().alive.len()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Takes ownership of a group. If all groups were already killed, it is killed at once.
    pub(crate) fn guard_group(&self, group: ProcessGroup) -> GroupGuard {
        let mut inner = self.lock();
        inner.alive.insert(group.id(), group.clone());
        if inner.is_closed {
            group.kill();
        }
        GroupGuard { groups: self.clone(), group }
    }

    fn lock(&self) -> MutexGuard<'_, GroupsInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A process group; dropping it kills the rest of the group.
#[derive(Debug)]
pub(crate) struct GroupGuard {
    groups: ProcessGroups,
    group: ProcessGroup,
}

impl GroupGuard {
    pub(crate) fn terminate(&self) {
        self.group.terminate();
    }

    /// Ends an interactive shell.
    pub(crate) fn hang_up(&self) {
        self.group.hang_up();
    }

    pub(crate) fn interrupt(&self) {
        self.group.interrupt();
    }

    pub(crate) fn kill(&self) {
        self.group.kill();
    }
}

impl Drop for GroupGuard {
    fn drop(&mut self) {
        self.kill();
        self.groups.lock().alive.remove(&self.group.id());
    }
}
