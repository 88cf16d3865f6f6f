//! Finds where a task goes on that an earlier worker had begun.

use std::path::Path;

use async_nats::jetstream::Context;
use crow_acp::ResumedSession;
use futures_util::future::join_all;

use crate::code::{BundleSubjects, download_bundle};
use crate::record::{SavedRecord, SavedWork, TakenRecord};
use crate::streams::{StoredRecord, find_result};
use crate::subject::{TaskAddress, is_subject_token};
use crate::ticket::TaskTicket;
use crate::worker::WorkerContext;
use crate::worker::kept_tasks::KeptTask;

/// Workers whose savings are looked at, the latest ones.
const WORKERS_MAX: usize = 8;

/// The conversation with which a task goes on.
pub(super) enum EarlierWork {
    /// Its directory is here.
    Kept(KeptTask),
    /// Another machine has saved its files.
    Saved(SavedTask),
}

/// Work that a worker has saved.
pub(super) struct SavedTask {
    pub(super) worker: String,
    pub(super) work: SavedWork,
}

impl EarlierWork {
    /// Finds the newest one.
    pub(super) async fn find(
        context: &WorkerContext,
        address: &TaskAddress,
        ticket: &TaskTicket,
        records: &[StoredRecord],
    ) -> Option<Self> {
        let kept = context.kept_tasks.find(&address.task, ticket).await;
        let saved = match context.options.shares_sessions {
            true => find_saved(&context.jetstream, address, ticket, records).await,
            false => None,
        };
        let is_newer = |saved: &SavedRecord| kept.as_ref().is_none_or(|kept| kept.delivery < saved.delivery);
        match saved {
            // Without work, what is here is no longer true either.
            Some((worker, saved)) if is_newer(&saved) => {
                saved.work.map(|work| Self::Saved(SavedTask { worker, work }))
            }
            Some(_) | None => kept.map(Self::Kept),
        }
    }

    pub(super) fn session(&self) -> ResumedSession {
        let id = match self {
            Self::Kept(kept) => &kept.session,
            Self::Saved(saved) => &saved.work.session,
        };
        ResumedSession { id: id.clone(), first_cwd: self.first_cwd().to_owned() }
    }

    /// The working directory with which the session began.
    pub(super) fn first_cwd(&self) -> &Path {
        match self {
            Self::Kept(kept) => &kept.first_cwd,
            Self::Saved(saved) => &saved.work.first_cwd,
        }
    }
}

impl SavedTask {
    /// Reads the files; the error is the reason.
    pub(super) async fn download(
        &self,
        jetstream: &Context,
        address: &TaskAddress,
    ) -> Result<Vec<u8>, String> {
        let (bundle, workers) = (&self.work.bundle, [self.worker.as_str(), &address.parent]);
        let subjects = BundleSubjects::from_worker(&address.queue, workers, &bundle.name);
        download_bundle(jetstream, &subjects, bundle).await.map(|downloaded| downloaded.bytes)
    }
}

/// Returns the newest of what earlier workers have saved, with the name of its worker.
async fn find_saved(
    jetstream: &Context,
    address: &TaskAddress,
    ticket: &TaskTicket,
    records: &[StoredRecord],
) -> Option<(String, SavedRecord)> {
    let mut workers: Vec<String> = Vec::new();
    for record in records.iter().rev().filter_map(|record| TakenRecord::decode(&record.payload, ticket)) {
        if workers.len() < WORKERS_MAX
            && is_subject_token(&record.worker)
            && !workers.contains(&record.worker)
        {
            workers.push(record.worker);
        }
    }
    let looks = workers.into_iter().map(async |worker| {
        let subject = address.saved_subject(&worker);
        match find_result(jetstream, subject.clone()).await {
            Ok(payload) => SavedRecord::decode(&payload?, ticket).map(|saved| (worker, saved)),
            Err(reason) => {
                tracing::warn!(
                    %reason,
                    "what {worker} has saved of a task could not be read; the user of this worker needs the right to publish \
                     $JS.API.DIRECT.GET.CROW_CODE.{subject}"
                );
                None
            }
        }
    });
    join_all(looks).await.into_iter().flatten().max_by_key(|(_, saved)| saved.delivery)
}
