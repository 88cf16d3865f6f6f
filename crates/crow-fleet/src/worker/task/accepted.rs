//! A task that a worker has accepted.

use std::path::Path;

use tokio::sync::watch;

use super::earlier_work::EarlierWork;
use crate::record::{TakenRecord, TaskMessage};
use crate::subject::TaskAddress;

/// The parts of a task that was accepted.
pub(super) struct AcceptedTask {
    pub(super) address: TaskAddress,
    pub(super) message: TaskMessage,
    pub(super) taken: TakenRecord,
    /// The conversation with which it goes on.
    pub(super) earlier_work: Option<EarlierWork>,
    pub(super) progress: watch::Sender<SessionProgress>,
}

/// The conversation of a task, as far as it has come. A change of the number is told.
#[derive(Debug, Default)]
pub(super) struct SessionProgress {
    /// The session, once its agent has begun to answer.
    pub(super) session: String,
    pub(super) n_ended_calls: u64,
}

/// The directories of a task that runs.
#[derive(Clone, Copy)]
pub(super) struct TaskDirectories<'a> {
    /// The name of its directory.
    pub(super) directory: &'a str,
    /// The working directory, which is below it.
    pub(super) cwd: &'a Path,
    /// The working directory with which its session began.
    pub(super) first_cwd: &'a Path,
}
