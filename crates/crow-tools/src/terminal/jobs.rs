//! The jobs of one session: commands that run on behind its calls. Knows who they are and how they stand; nothing
//! of how they are started or told of.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crow_core::Confinement;
use crow_process::{BackgroundJob, CapturedOutput, JobWaitOptions};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{SETTLE, in_client::ClientJob, words::CommandExit};
use crate::tool::{ToolError, to_title};

/// A server, a watcher, a shell or two; whoever starts more has lost sight of them.
const JOBS_MAX: usize = 16;

/// The jobs of one session. Dropping them ends those that run.
#[derive(Debug, Default)]
pub(crate) struct JobTable {
    inner: Mutex<JobTableState>,
}

#[derive(Debug, Default)]
struct JobTableState {
    n_named: u32,
    n_reserved: usize,
    /// In the order they were started.
    jobs: Vec<Arc<JobEntry>>,
}

/// One job.
#[derive(Debug)]
pub(super) struct JobEntry {
    pub(super) name: String,
    /// Its command, on one line.
    pub(super) title: String,
    /// How it is held.
    pub(super) confinement: Confinement,
    pub(super) at: JobBackend,
    /// The model was told that it ended.
    is_told: AtomicBool,
}

/// Where a job runs.
#[derive(Debug)]
pub(super) enum JobBackend {
    Here(BackgroundJob),
    InClient(ClientJob),
}

/// A place among the jobs for one that is about to start.
pub(super) struct JobSlot<'a> {
    jobs: &'a JobTable,
}

impl JobTable {
    /// Keeps a place for a job. The oldest that ended is forgotten for it.
    pub(super) fn reserve_slot(&self) -> Result<JobSlot<'_>, ToolError> {
        let mut inner = self.lock();
        if inner.jobs.len() + inner.n_reserved >= JOBS_MAX {
            match inner.jobs.iter().position(|job| job.command_exit().is_some()) {
                Some(at) => drop(inner.jobs.remove(at)),
                None => {
                    let why = format!(
                        "not started: {JOBS_MAX} jobs run, and that is how many there may be; end one with reset and \
                         its `job`. {}",
                        inner.render_list()
                    );
                    return Err(ToolError(why));
                }
            }
        }
        inner.n_reserved += 1;
        Ok(JobSlot { jobs: self })
    }

    /// Finds a job by its name, or without one the last that runs, or the last.
    pub(super) fn find_job(&self, name: Option<&str>) -> Result<Arc<JobEntry>, ToolError> {
        let inner = self.lock();
        let found = match name {
            Some(name) => inner.jobs.iter().find(|job| job.name == name),
            None => inner.jobs.iter().rfind(|job| job.command_exit().is_none()).or(inner.jobs.last()),
        };
        found.cloned().ok_or_else(|| ToolError(inner.missing_message(name)))
    }

    /// Takes a job out by its name, or all without one.
    pub(super) fn remove_jobs(&self, name: Option<&str>) -> Result<Vec<Arc<JobEntry>>, ToolError> {
        let mut inner = self.lock();
        let Some(name) = name else { return Ok(std::mem::take(&mut inner.jobs)) };
        match inner.jobs.iter().position(|job| job.name == name) {
            Some(at) => Ok(vec![inner.jobs.remove(at)]),
            None => Err(ToolError(inner.missing_message(Some(name)))),
        }
    }

    /// Whether one of them has not ended.
    pub(crate) fn has_running(&self) -> bool {
        self.lock().jobs.iter().any(|job| job.command_exit().is_none())
    }

    /// Names the jobs that ended and that the model has not been told of.
    pub(super) fn take_ended_jobs(&self) -> Vec<Arc<JobEntry>> {
        let inner = self.lock();
        inner
            .jobs
            .iter()
            .filter(|job| job.command_exit().is_some() && !job.mark_reported())
            .cloned()
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, JobTableState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JobTableState {
    fn missing_message(&self, name: Option<&str>) -> String {
        match name {
            Some(name) => format!("there is no job `{name}` in this session. {}", self.render_list()),
            None => "there is no job in this session; background=true starts one".into(),
        }
    }

    fn render_list(&self) -> String {
        let jobs: Vec<String> = self.jobs.iter().map(|job| format!("{} ({})", job.name, job.title)).collect();
        if jobs.is_empty() { "There are none.".into() } else { format!("The jobs are: {}.", jobs.join(", ")) }
    }
}

impl JobSlot<'_> {
    /// Puts a job there.
    pub(super) fn insert_job(self, command: &str, confinement: Confinement, at: JobBackend) -> Arc<JobEntry> {
        let mut inner = self.jobs.lock();
        inner.n_named += 1;
        let name = format!("job-{}", inner.n_named);
        let title = format!("`{}`", to_title(command));
        let entry = Arc::new(JobEntry { name, title, confinement, at, is_told: AtomicBool::new(false) });
        inner.jobs.push(entry.clone());
        entry
    }
}

impl Drop for JobSlot<'_> {
    fn drop(&mut self) {
        self.jobs.lock().n_reserved -= 1;
    }
}

impl JobEntry {
    /// Tells how it ended, when it has.
    pub(super) fn command_exit(&self) -> Option<CommandExit> {
        match &self.at {
            JobBackend::Here(job) => job.status().ended.map(CommandExit::Here),
            JobBackend::InClient(job) => job.command_exit(),
        }
    }

    /// Waits until it ended, or until it said something and then was quiet; of what a client's terminal says only the
    /// end is told.
    pub(super) async fn wait_until_settled(&self, patience: JobWaitOptions) {
        match &self.at {
            JobBackend::Here(job) => job.wait_until_quiet(patience).await,
            JobBackend::InClient(job) => job.wait_for_exit(patience.within.min(SETTLE)).await,
        }
    }

    /// Waits until it ended, at most so long.
    pub(super) async fn wait_for_exit(&self, within: Duration) {
        match &self.at {
            JobBackend::Here(job) => job.wait_until_ended(within).await,
            JobBackend::InClient(job) => job.wait_for_exit(within).await,
        }
    }

    /// Takes what it said since this was last done.
    pub(super) async fn take_output(&self, cut: &CancellationToken) -> CapturedOutput {
        match &self.at {
            JobBackend::Here(job) => job.take_output().await,
            JobBackend::InClient(job) => job.take_output(cut).await,
        }
    }

    /// Notes that the model knows its end; gives whether it did before.
    pub(super) fn mark_reported(&self) -> bool {
        self.is_told.swap(true, Ordering::Relaxed)
    }

    async fn end_job(&self) {
        match &self.at {
            JobBackend::Here(job) => job.shut_down().await,
            JobBackend::InClient(job) => job.end_command().await,
        }
    }
}

/// Ends jobs, all at the same time.
pub(super) async fn end_jobs(jobs: &[Arc<JobEntry>]) {
    let mut ending = JoinSet::new();
    for job in jobs.iter().map(Arc::clone) {
        ending.spawn(async move { job.end_job().await });
    }
    while ending.join_next().await.is_some() {}
}
