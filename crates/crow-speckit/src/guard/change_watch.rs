//! Who changes a protected file while a step runs: what appears while a call of the model runs is the call's and is put back;
//! what appears between calls is the person's and stays. Knows calls by when they begin and end.

use std::collections::BTreeSet;
use std::path::Path;

use super::{GuardSnapshot, ProtectedChange};
use crate::{Feature, SpeckitError, TaskId};

/// The protected files of a step at work.
#[derive(Debug)]
pub struct ChangeWatch {
    snapshot: GuardSnapshot,
    feature: Option<Feature>,
    n_running: usize,
    /// What ran on behind the calls when it was last looked: it may have ended since.
    background: BackgroundWork,
    /// Tasks that were ticked when it was last looked.
    ticked_before: BTreeSet<TaskId>,
    /// Tasks that calls ticked.
    newly_ticked: BTreeSet<TaskId>,
    /// What was put back and not told yet.
    unreported: Vec<ProtectedChange>,
}

/// Whether something of the model runs on behind its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackgroundWork {
    /// Nothing does: what changes between calls is changed by a person.
    None,
    /// A job or a child agent does.
    Running,
}

impl ChangeWatch {
    /// Begins with the files as they are.
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

    /// Notes that a call begins.
    pub fn begin_call(&mut self, background: BackgroundWork) {
        if self.n_running == 0 {
            self.check_between_calls(background);
        }
        self.n_running += 1;
    }

    /// Notes that a call has ended, and returns what was put back of what the calls changed.
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

    /// Ends a turn, and returns what was put back since the last one.
    pub fn end_turn(&mut self, background: BackgroundWork) -> Vec<ProtectedChange> {
        self.n_running = 0;
        self.check_between_calls(background);
        let mut changes = std::mem::take(&mut self.unreported);
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        changes.dedup();
        changes
    }

    /// Says that a file is to be as it is now, because Crow itself wrote it.
    pub fn accept_file(&mut self, path: &Path) -> Result<(), SpeckitError> {
        if let Some(ticked_now) = self.feature.as_ref().and_then(ticked_tasks) {
            self.ticked_before = ticked_now;
        }
        self.snapshot.accept_file(path)
    }

    /// Returns the tasks that calls ticked since this was last asked.
    pub fn take_ticked_tasks(&mut self) -> BTreeSet<TaskId> {
        std::mem::take(&mut self.newly_ticked)
    }

    /// Looks where no call runs. What ran on at the last look may have changed something before it ended.
    fn check_between_calls(&mut self, background: BackgroundWork) {
        let previous = std::mem::replace(&mut self.background, background);
        self.check_changes(if previous == BackgroundWork::Running { previous } else { background });
    }

    /// Takes what changed for the person's, or puts it back where something of the model may have done it.
    fn check_changes(&mut self, background: BackgroundWork) {
        let ticked_now = self.feature.as_ref().and_then(ticked_tasks);
        match background {
            BackgroundWork::None => self.snapshot.adopt_changes(),
            BackgroundWork::Running => {
                self.unreported.extend(self.snapshot.restore_files());
                self.newly_ticked.extend(
                    ticked_now.iter().flatten().filter(|id| !self.ticked_before.contains(id)).cloned(),
                );
            }
        }
        if let Some(ticked_now) = ticked_now {
            self.ticked_before = ticked_now;
        }
    }
}

/// The tasks that are ticked; `None` where the list cannot be read.
fn ticked_tasks(feature: &Feature) -> Option<BTreeSet<TaskId>> {
    let list = feature.read_task_list().ok()?;
    Some(list.tasks.into_iter().filter(|task| task.done).map(|task| task.id).collect())
}
