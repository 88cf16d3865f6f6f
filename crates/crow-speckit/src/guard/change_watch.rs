//! Attributes changes of protected files while a step runs: changes during a call of the model are the call's and are
//! reverted; changes between calls are the user's and stay. Knows only when calls begin and end.

use std::collections::BTreeSet;
use std::path::Path;

use super::{GuardSnapshot, ProtectedChange};
use crate::{Feature, SpeckitError, TaskId};

/// The protected files of a running step.
#[derive(Debug)]
pub struct ChangeWatch {
    snapshot: GuardSnapshot,
    feature: Option<Feature>,
    n_running: usize,
    /// Whether background work was running at the last check; it may have ended since.
    background: BackgroundWork,
    /// Tasks that were ticked at the last check.
    ticked_before: BTreeSet<TaskId>,
    /// Tasks ticked by calls.
    newly_ticked: BTreeSet<TaskId>,
    /// Reverted changes that were not reported yet.
    unreported: Vec<ProtectedChange>,
}

/// Whether background work of the model is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackgroundWork {
    /// None: changes between calls are the user's.
    None,
    /// A job or a child agent is running.
    Running,
}

impl ChangeWatch {
    /// Starts with the current files.
    pub fn new(snapshot: GuardSnapshot, feature: Option<Feature>) -> Self {
        let ticked_before = feature.as_ref().and_then(ticked_tasks).unwrap_or_default();
        let background = BackgroundWork::None;
        Self {
            snapshot,
            feature,
            n_running: 0,
            background,
            ticked_before,
            newly_ticked: BTreeSet::new(),
            unreported: Vec::new(),
        }
    }

    /// Records the start of a call.
    pub fn begin_call(&mut self, background: BackgroundWork) {
        if self.n_running == 0 {
            self.check_between_calls(background);
        }
        self.n_running += 1;
    }

    /// Records the end of a call and returns the reverted changes.
    pub fn end_call(&mut self, background: BackgroundWork) -> Vec<ProtectedChange> {
        self.background = background;
        self.n_running = self.n_running.saturating_sub(1);
        if self.n_running > 0 {
            return Vec::new();
        }
        let n_reported = self.unreported.len();
        self.check_changes(BackgroundWork::Running);
        self.unreported[n_reported..].to_vec()
    }

    /// Ends a turn and returns the changes reverted since the last one.
    pub fn end_turn(&mut self, background: BackgroundWork) -> Vec<ProtectedChange> {
        self.n_running = 0;
        self.check_between_calls(background);
        let mut changes = std::mem::take(&mut self.unreported);
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        changes.dedup();
        changes
    }

    /// Accepts the current state of a file because Crow itself wrote it. Of the ticks in it, only that of the `marked` task is
    /// Crow's: calls that still run may have set others.
    pub fn accept_file(&mut self, path: &Path, marked: Option<&TaskId>) -> Result<(), SpeckitError> {
        let ticked_now = self.feature.as_ref().and_then(ticked_tasks);
        if self.n_running > 0 || self.background == BackgroundWork::Running {
            self.record_ticks(ticked_now.as_ref());
        }
        if let Some(marked) = marked {
            self.newly_ticked.remove(marked);
        }
        if let Some(ticked_now) = ticked_now {
            self.ticked_before = ticked_now;
        }
        self.snapshot.accept_file(path)
    }

    /// Returns the tasks ticked by calls since the last call of this method.
    pub fn take_ticked_tasks(&mut self) -> BTreeSet<TaskId> {
        std::mem::take(&mut self.newly_ticked)
    }

    /// Checks outside of calls. Background work of the last check may have changed something before it ended.
    fn check_between_calls(&mut self, background: BackgroundWork) {
        let previous = std::mem::replace(&mut self.background, background);
        self.check_changes(if previous == BackgroundWork::Running { previous } else { background });
    }

    /// Adopts changes as the user's, or reverts them if the model's background work may have made them.
    fn check_changes(&mut self, background: BackgroundWork) {
        let ticked_now = self.feature.as_ref().and_then(ticked_tasks);
        match background {
            BackgroundWork::None => self.snapshot.adopt_changes(),
            BackgroundWork::Running => {
                self.unreported.extend(self.snapshot.restore_files());
                self.record_ticks(ticked_now.as_ref());
            }
        }
        if let Some(ticked_now) = ticked_now {
            self.ticked_before = ticked_now;
        }
    }

    /// Records the ticks since the last check as those of calls.
    fn record_ticks(&mut self, ticked_now: Option<&BTreeSet<TaskId>>) {
        let ticked_now = ticked_now.into_iter().flatten();
        self.newly_ticked.extend(ticked_now.filter(|id| !self.ticked_before.contains(id)).cloned());
    }
}

/// Returns the ticked tasks; `None` if the list cannot be read.
fn ticked_tasks(feature: &Feature) -> Option<BTreeSet<TaskId>> {
    let list = feature.read_task_list().ok()?;
    Some(list.tasks.into_iter().filter(|task| task.done).map(|task| task.id).collect())
}
