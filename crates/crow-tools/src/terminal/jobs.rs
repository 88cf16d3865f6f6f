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
use crow_process::{Job, Output, Patience};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{SETTLE, in_client::ClientJob, words::How};
use crate::tool::{Refusal, title};

/// A server, a watcher, a shell or two; whoever starts more has lost sight of them.
const JOBS_MAX: usize = 16;

/// The jobs of one session. Dropping them ends those that run.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    n_named: u32,
    n_reserved: usize,
    /// In the order they were started.
    jobs: Vec<Arc<Entry>>,
}

/// One job.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    /// Its command, on one line.
    pub(super) title: String,
    /// How it is held.
    pub(super) confinement: Confinement,
    pub(super) at: Place,
    /// The model was told that it ended.
    is_told: AtomicBool,
}

/// Where a job runs.
#[derive(Debug)]
pub(super) enum Place {
    Here(Job),
    InClient(ClientJob),
}

/// A place among the jobs for one that is about to start.
pub(super) struct Seat<'a> {
    jobs: &'a Jobs,
}

impl Jobs {
    /// Keeps a place for a job. The oldest that ended is forgotten for it.
    pub(super) fn reserve(&self) -> Result<Seat<'_>, Refusal> {
        let mut inner = self.lock();
        if inner.jobs.len() + inner.n_reserved >= JOBS_MAX {
            match inner.jobs.iter().position(|job| job.ended().is_some()) {
                Some(at) => drop(inner.jobs.remove(at)),
                None => {
                    let why = format!(
                        "not started: {JOBS_MAX} jobs run, and that is how many there may be; end one with reset and \
                         its `job`. {}",
                        inner.listed()
                    );
                    return Err(Refusal(why));
                }
            }
        }
        inner.n_reserved += 1;
        Ok(Seat { jobs: self })
    }

    /// Finds a job by its name, or without one the last that runs, or the last.
    pub(super) fn find(&self, name: Option<&str>) -> Result<Arc<Entry>, Refusal> {
        let inner = self.lock();
        let found = match name {
            Some(name) => inner.jobs.iter().find(|job| job.name == name),
            None => inner.jobs.iter().rfind(|job| job.ended().is_none()).or(inner.jobs.last()),
        };
        found.cloned().ok_or_else(|| Refusal(inner.missing(name)))
    }

    /// Takes a job out by its name, or all without one.
    pub(super) fn remove(&self, name: Option<&str>) -> Result<Vec<Arc<Entry>>, Refusal> {
        let mut inner = self.lock();
        let Some(name) = name else { return Ok(std::mem::take(&mut inner.jobs)) };
        match inner.jobs.iter().position(|job| job.name == name) {
            Some(at) => Ok(vec![inner.jobs.remove(at)]),
            None => Err(Refusal(inner.missing(Some(name)))),
        }
    }

    /// Whether one of them has not ended.
    pub(crate) fn has_running(&self) -> bool {
        self.lock().jobs.iter().any(|job| job.ended().is_none())
    }

    /// Names the jobs that ended and that the model has not been told of.
    pub(super) fn news(&self) -> Vec<Arc<Entry>> {
        let inner = self.lock();
        inner.jobs.iter().filter(|job| job.ended().is_some() && !job.tell()).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn missing(&self, name: Option<&str>) -> String {
        match name {
            Some(name) => format!("there is no job `{name}` in this session. {}", self.listed()),
            None => "there is no job in this session; background=true starts one".into(),
        }
    }

    fn listed(&self) -> String {
        let jobs: Vec<String> = self.jobs.iter().map(|job| format!("{} ({})", job.name, job.title)).collect();
        if jobs.is_empty() { "There are none.".into() } else { format!("The jobs are: {}.", jobs.join(", ")) }
    }
}

impl Seat<'_> {
    /// Puts a job there.
    pub(super) fn fill(self, command: &str, confinement: Confinement, at: Place) -> Arc<Entry> {
        let mut inner = self.jobs.lock();
        inner.n_named += 1;
        let name = format!("job-{}", inner.n_named);
        let title = format!("`{}`", title(command));
        let entry = Arc::new(Entry { name, title, confinement, at, is_told: AtomicBool::new(false) });
        inner.jobs.push(entry.clone());
        entry
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.jobs.lock().n_reserved -= 1;
    }
}

impl Entry {
    /// Tells how it ended, when it has.
    pub(super) fn ended(&self) -> Option<How> {
        match &self.at {
            Place::Here(job) => job.pulse().ended.map(How::Here),
            Place::InClient(job) => job.ended(),
        }
    }

    /// Waits until it ended, or until it said something and then was quiet; of what a client's terminal says only the
    /// end is told.
    pub(super) async fn settled(&self, patience: Patience) {
        match &self.at {
            Place::Here(job) => job.settled(patience).await,
            Place::InClient(job) => job.wait(patience.within.min(SETTLE)).await,
        }
    }

    /// Waits until it ended, at most so long.
    pub(super) async fn wait(&self, within: Duration) {
        match &self.at {
            Place::Here(job) => job.ended(within).await,
            Place::InClient(job) => job.wait(within).await,
        }
    }

    /// Takes what it said since this was last done.
    pub(super) async fn take(&self, cut: &CancellationToken) -> Output {
        match &self.at {
            Place::Here(job) => job.take().await,
            Place::InClient(job) => job.take(cut).await,
        }
    }

    /// Notes that the model knows its end; gives whether it did before.
    pub(super) fn tell(&self) -> bool {
        self.is_told.swap(true, Ordering::Relaxed)
    }

    async fn end(&self) {
        match &self.at {
            Place::Here(job) => job.end().await,
            Place::InClient(job) => job.end().await,
        }
    }
}

/// Ends jobs, all at the same time.
pub(super) async fn end(jobs: &[Arc<Entry>]) {
    let mut ending = JoinSet::new();
    for job in jobs.iter().map(Arc::clone) {
        ending.spawn(async move { job.end().await });
    }
    while ending.join_next().await.is_some() {}
}
