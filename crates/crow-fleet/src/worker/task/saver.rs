//! Saves the files of a task that runs, so that it can go on on another machine that has its session. That takes at most a tenth of
//! the time.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::Context;
use crow_tools::{BundledSnapshot, SnapshotContent, SnapshotFiles, SnapshotRequest};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::accepted::{AcceptedTask, SessionProgress, TaskDirectories};
use crate::code::{BundleRecord, BundleSubjects, clear_bundle, upload_bundle};
use crate::record::{SavedRecord, SavedWork, TaskDelivery};
use crate::streams::{PublishOutcome, publish};
use crate::subject::{TaskAddress, random_name};
use crate::ticket::TaskTicket;
use crate::worker::WorkerContext;

/// The place of a snapshot while it is made, in the directory of a task.
pub(super) const SNAPSHOT_DIR: &str = ".snapshot";

/// Pause after saving, in times of how long that took.
const PAUSE_FACTOR: u32 = 9;

/// Time to save what is there when the worker stops, or to remove it when the task has ended.
const LAST_TIME_MAX: Duration = Duration::from_secs(15);

/// Saves the files of one task.
pub(super) struct TaskSaver {
    context: Arc<WorkerContext>,
    writer: SavedRecordWriter,
    files: SnapshotFiles,
    /// The name of the task's directory.
    directory: String,
    first_cwd: PathBuf,
    progress: watch::Receiver<SessionProgress>,
    /// Two uploads in turn: one stays until the next is complete.
    uploads: [SavedUpload; 2],
    n_uploads: usize,
    /// The last snapshot, if it is what the record says.
    last: Option<SnapshotContent>,
    has_failed: bool,
}

/// A bundle at the server that is replaced again and again.
#[derive(Debug, Default)]
struct SavedUpload {
    /// Its name, once it has one.
    name: Option<String>,
    /// The largest number of chunks that it had.
    n_chunks: usize,
}

/// Writes the record of what is saved.
struct SavedRecordWriter {
    jetstream: Context,
    address: TaskAddress,
    ticket: TaskTicket,
    worker: String,
    delivery: TaskDelivery,
}

impl TaskSaver {
    pub(super) fn new(
        context: Arc<WorkerContext>,
        task: &AcceptedTask,
        place: TaskDirectories<'_>,
        files: SnapshotFiles,
    ) -> Self {
        Self {
            writer: SavedRecordWriter::new(&context, task),
            context,
            files,
            directory: place.directory.to_owned(),
            first_cwd: place.first_cwd.to_owned(),
            progress: task.progress.subscribe(),
            uploads: Default::default(),
            n_uploads: 0,
            last: None,
            has_failed: false,
        }
    }

    /// Saves the files after calls that have ended, until the task has.
    pub(super) async fn run_beside<T>(&mut self, running: impl Future<Output = T>) -> T {
        tokio::select! {
            biased;
            end = running => end,
            never = self.save_again_and_again() => match never {},
        }
    }

    async fn save_again_and_again(&mut self) -> Infallible {
        while self.progress.changed().await.is_ok() {
            let begin = Instant::now();
            self.save().await;
            sleep(begin.elapsed() * PAUSE_FACTOR).await;
        }
        std::future::pending().await
    }

    /// Saves what the task leaves, whose processes have ended.
    pub(super) async fn save_at_end(&mut self) {
        if timeout(LAST_TIME_MAX, self.save()).await.is_err() {
            tracing::warn!("the last changes of a task could not be saved in time");
        }
    }

    /// Saves the files as they are now, once the session can go on.
    async fn save(&mut self) {
        let session = self.progress.borrow_and_update().session.clone();
        if session.is_empty() {
            return;
        }
        match self.try_save(session).await {
            Ok(()) => self.has_failed = false,
            Err(reason) => {
                self.last = None;
                if !std::mem::replace(&mut self.has_failed, true) {
                    let task = &self.writer.address.task;
                    tracing::warn!(%reason, task, "the files could not be saved; on another machine the task begins again");
                }
            }
        }
    }

    async fn try_save(&mut self, session: String) -> Result<(), String> {
        let kept_tasks = &self.context.kept_tasks;
        let scratch = &kept_tasks.directory(&self.directory).join(SNAPSHOT_DIR);
        let request = SnapshotRequest { files: &self.files, last: self.last.as_ref(), scratch };
        let taken = self.context.options.git.take_snapshot(request, &CancellationToken::new()).await;
        let BundledSnapshot { content, bundle } = match taken {
            Ok(Some(snapshot)) => snapshot,
            Ok(None) => return Ok(()),
            Err(error) => {
                // What was saved before does not belong to the conversation any more.
                self.writer.write(None).await?;
                return Err(error.to_string());
            }
        };
        let upload = &mut self.uploads[self.n_uploads % 2];
        self.n_uploads += 1;
        let name = match &upload.name {
            Some(name) => name,
            None => upload.name.insert(random_name()?),
        };
        let record = BundleRecord::with_name(name.clone(), &bundle);
        upload.n_chunks = upload.n_chunks.max(record.chunk_lengths().count());
        let subjects = self.writer.bundle_subjects(name);
        upload_bundle(&self.context.jetstream, &subjects, bundle).await?;
        let work = SavedWork {
            session,
            first_cwd: self.first_cwd.clone(),
            directory: self.directory.clone(),
            bundle: record,
        };
        self.writer.write(Some(work)).await?;
        self.last = Some(content);
        Ok(())
    }

    /// Removes what was saved of a task that nothing goes on with.
    pub(super) async fn clear(self) {
        if self.n_uploads > 0 && !matches!(timeout(LAST_TIME_MAX, self.try_clear()).await, Ok(Ok(()))) {
            tracing::debug!("what was saved of a task was not removed; the server does that after a day");
        }
    }

    async fn try_clear(&self) -> Result<(), String> {
        self.writer.write(None).await?;
        for SavedUpload { name, n_chunks } in &self.uploads {
            if let Some(name) = name {
                let subjects = self.writer.bundle_subjects(name);
                clear_bundle(&self.context.jetstream, &subjects, *n_chunks).await?;
            }
        }
        Ok(())
    }
}

impl SavedRecordWriter {
    fn new(context: &WorkerContext, task: &AcceptedTask) -> Self {
        Self {
            jetstream: context.jetstream.clone(),
            address: task.address.clone(),
            ticket: task.message.ticket.clone(),
            worker: task.taken.worker.clone(),
            delivery: task.taken.task_delivery(),
        }
    }

    fn bundle_subjects(&self, name: &str) -> BundleSubjects {
        let TaskAddress { queue, parent, .. } = &self.address;
        BundleSubjects::from_worker(queue, [&self.worker, parent], name)
    }

    /// Replaces the record; the error is the reason why that failed.
    async fn write(&self, work: Option<SavedWork>) -> Result<(), String> {
        let Self { address, delivery, worker, .. } = self;
        let payload = SavedRecord { delivery: *delivery, work }.encode(&self.ticket)?;
        // Each is another message.
        let message_id = random_name()?;
        match publish(&self.jetstream, address.saved_subject(worker), payload, &message_id).await {
            PublishOutcome::Stored { .. } => Ok(()),
            PublishOutcome::AlreadyStored => Err("the server has it already".to_owned()),
            PublishOutcome::NoStream => Err("the server has no queues any more".to_owned()),
            PublishOutcome::Unknown(reason) => Err(reason),
        }
    }
}

/// Records that a task cannot go on where earlier workers have left it.
pub(super) async fn withdraw(context: &WorkerContext, task: &AcceptedTask) {
    if let Err(reason) = SavedRecordWriter::new(context, task).write(None).await {
        tracing::warn!(%reason, "it could not be said that a task begins again");
    }
}
