//! The jobs of one session: commands that continue after their call returned. Must not know how they are started or
//! reported.

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

use super::{client_job::ClientJob, command_exit::CommandExit, limits::JOB_START_WAIT};
use crate::{title::to_title, tool_error::ToolError};

/// A server, a watcher and a few shells; more would be an oversight.
const JOBS_MAX: usize = 16;

/// The jobs of one session. Dropping them ends the running ones.
#[derive(Debug, Default)]
pub(crate) struct JobTable {
    state: Mutex<JobTableState>,
}

#[derive(Debug, Default)]
struct JobTableState {
    n_started: u32,
    n_reserved: usize,
    /// In the order in which they were started.
    jobs: Vec<Arc<JobEntry>>,
}

#[derive(Debug)]
pub(super) struct JobEntry {
    pub(super) name: String,
    /// Its command, on one line.
    pub(super) title: String,
    pub(super) confinement: Confinement,
    pub(super) backend: JobBackend,
    /// Whether the model was told that it has ended.
    is_reported: AtomicBool,
    /// Whether its output was taken after its end.
    is_drained: AtomicBool,
}

#[derive(Debug)]
pub(super) enum JobBackend {
    Local(BackgroundJob),
    Client(ClientJob),
}

/// A reserved place for a job that is about to start.
pub(super) struct JobSlot<'a> {
    jobs: &'a JobTable,
}

impl JobTable {
    /// Reserves a place for a job. If all are taken, a job that has ended is forgotten, if possible one that was read.
    pub(super) fn reserve_slot(&self) -> Result<JobSlot<'_>, ToolError> {
        let mut state = self.lock();
        if state.jobs.len() + state.n_reserved >= JOBS_MAX {
            match state.ended_position() {
                Some(index) => drop(state.jobs.remove(index)),
                None => {
                    let reason = format!(
                        "not started: {JOBS_MAX} jobs are running or starting, which is the limit; end one \
                         with reset and its `job`. {}",
                        state.render_list()
                    );
                    return Err(ToolError(reason));
                }
            }
        }
        state.n_reserved += 1;
        Ok(JobSlot { jobs: self })
    }

    /// Finds a job by its name; without one the last running job, or the last job.
    pub(super) fn find_job(&self, name: Option<&str>) -> Result<Arc<JobEntry>, ToolError> {
        let state = self.lock();
        let found = match name {
            Some(name) => state.jobs.iter().find(|job| job.name == name),
            None => state.jobs.iter().rfind(|job| job.command_exit().is_none()).or(state.jobs.last()),
        };
        found.cloned().ok_or_else(|| ToolError(state.missing_message(name)))
    }

    /// Removes a job by its name, or all jobs.
    pub(super) fn remove_jobs(&self, name: Option<&str>) -> Result<Vec<Arc<JobEntry>>, ToolError> {
        let mut state = self.lock();
        let Some(name) = name else { return Ok(std::mem::take(&mut state.jobs)) };
        match state.jobs.iter().position(|job| job.name == name) {
            Some(index) => Ok(vec![state.jobs.remove(index)]),
            None => Err(ToolError(state.missing_message(Some(name)))),
        }
    }

    /// Whether one of them is running.
    pub(crate) fn has_running(&self) -> bool {
        self.lock().jobs.iter().any(|job| job.command_exit().is_none())
    }

    /// Returns the jobs that have ended and were not reported to the model yet.
    pub(super) fn take_ended_jobs(&self) -> Vec<Arc<JobEntry>> {
        let state = self.lock();
        state
            .jobs
            .iter()
            .filter(|job| job.command_exit().is_some() && !job.mark_reported())
            .cloned()
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, JobTableState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JobTableState {
    /// The index of the job that is missed least: of those that have ended, the oldest that was read, else the oldest
    /// whose end was reported, else the oldest.
    fn ended_position(&self) -> Option<usize> {
        let ended = self.jobs.iter().enumerate().filter(|(_, job)| job.command_exit().is_some());
        // The first of equal ones is the oldest.
        let least_missed = ended.min_by_key(|(_, job)| {
            let is_reported = job.is_reported.load(Ordering::Relaxed);
            (!is_reported, !job.is_drained.load(Ordering::Relaxed))
        });
        least_missed.map(|(index, _)| index)
    }

    fn missing_message(&self, name: Option<&str>) -> String {
        match name {
            Some(name) => format!("there is no job `{name}` in this session. {}", self.render_list()),
            None => "there is no job in this session; background=true starts one".into(),
        }
    }

    fn render_list(&self) -> String {
        let jobs: Vec<String> = self.jobs.iter().map(|job| format!("{} ({})", job.name, job.title)).collect();
        match (jobs.is_empty(), self.n_reserved) {
            (true, 0) => "There are none.".into(),
            (true, n_starting) => format!("{n_starting} jobs are just starting."),
            (false, 0) => format!("The jobs are: {}.", jobs.join(", ")),
            (false, n_starting) => {
                format!("The jobs are: {}; and {n_starting} more are just starting.", jobs.join(", "))
            }
        }
    }
}

impl JobSlot<'_> {
    /// Inserts a job in the reserved place.
    pub(super) fn insert_job(
        self,
        command: &str,
        confinement: Confinement,
        backend: JobBackend,
    ) -> Arc<JobEntry> {
        let mut state = self.jobs.lock();
        state.n_started += 1;
        let name = format!("job-{}", state.n_started);
        let title = format!("`{}`", to_title(command));
        let entry = Arc::new(JobEntry {
            name,
            title,
            confinement,
            backend,
            is_reported: AtomicBool::new(false),
            is_drained: AtomicBool::new(false),
        });
        state.jobs.push(entry.clone());
        entry
    }
}

impl Drop for JobSlot<'_> {
    fn drop(&mut self) {
        self.jobs.lock().n_reserved -= 1;
    }
}

impl JobEntry {
    /// Returns the job's exit, if it has ended.
    pub(super) fn command_exit(&self) -> Option<CommandExit> {
        match &self.backend {
            JobBackend::Local(job) => job.status().exit.map(CommandExit::Known),
            JobBackend::Client(job) => job.command_exit(),
        }
    }

    /// Waits until it has ended, or was silent after some output; a job in a client's terminal only until its end.
    pub(super) async fn wait_until_settled(&self, options: JobWaitOptions) {
        match &self.backend {
            JobBackend::Local(job) => job.wait_until_quiet(options).await,
            JobBackend::Client(job) => job.wait_for_exit(options.timeout.min(JOB_START_WAIT)).await,
        }
    }

    /// Waits until it has ended, for at most `timeout`.
    pub(super) async fn wait_for_exit(&self, timeout: Duration) {
        match &self.backend {
            JobBackend::Local(job) => job.wait_until_ended(timeout).await,
            JobBackend::Client(job) => job.wait_for_exit(timeout).await,
        }
    }

    /// Returns the output since the last call.
    pub(super) async fn take_output(&self, cancel: &CancellationToken) -> CapturedOutput {
        let has_ended = self.command_exit().is_some();
        let output = match &self.backend {
            JobBackend::Local(job) => job.take_output().await,
            JobBackend::Client(job) => job.take_output(cancel).await,
        };
        self.is_drained.fetch_or(has_ended, Ordering::Relaxed);
        output
    }

    /// Marks the end as reported; returns whether it was before.
    pub(super) fn mark_reported(&self) -> bool {
        self.is_reported.swap(true, Ordering::Relaxed)
    }

    async fn end_job(&self) {
        match &self.backend {
            JobBackend::Local(job) => job.shut_down().await,
            JobBackend::Client(job) => job.end_command().await,
        }
    }
}

/// Ends jobs concurrently.
pub(super) async fn end_jobs(jobs: &[Arc<JobEntry>]) {
    let mut tasks = JoinSet::new();
    for job in jobs.iter().map(Arc::clone) {
        tasks.spawn(async move { job.end_job().await });
    }
    while tasks.join_next().await.is_some() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_are_starting_are_named() {
        let jobs = JobTable::default();
        let slots: Vec<_> = (0..JOBS_MAX).map(|_| jobs.reserve_slot()).collect();
        let reason = jobs.reserve_slot().err().map(|ToolError(reason)| reason);
        let expected = "not started: 16 jobs are running or starting, which is the limit; end one with reset and its \
                        `job`. 16 jobs are just starting.";
        assert_eq!(reason.as_deref(), Some(expected));
        drop(slots);
        assert!(jobs.reserve_slot().is_ok());
    }
}
