//! The code of a parent's tasks: sent before a task begins, fetched after its end.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crow_core::{FarmAddress, NatsServer, replace_control_chars};
use crow_tools::{BundledCommit, GitCli, RepositoryHead};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::records::FarmConnection;
use crate::code::{
    BundleRecord, BundleSubjects, CodeBundles, CodeRecord, CodeReturn, EndCode, ReturnedCode,
    download_bundle, upload_bundle,
};
use crate::connection::FleetClock;
use crate::place::FarmPlace;
use crate::streams::{CODE, CODE_AGE_MAX, delete_message};
use crate::subject::{TaskAddress, is_subject_token, random_name};

/// Time for which uploaded code is used again. The rest of its age is for the tasks that wait.
const CODE_USED_MAX: Duration = Duration::from_secs(CODE_AGE_MAX.as_secs() / 2);

/// Time to delete the chunks of one bundle.
const DELETE_TIME_MAX: Duration = Duration::from_secs(5);

/// A request to send the code that a directory is at.
#[derive(Debug, Clone, Copy)]
pub struct CodeRequest<'a> {
    pub git: &'a GitCli,
    pub directory: &'a Path,
    /// A directory for files that are needed meanwhile.
    pub scratch_dir: &'a Path,
    /// The name of the task; its branch will be `crow/name`.
    pub name: &'a str,
}

/// Code that is at the server for a task.
#[derive(Debug, Clone)]
pub struct SentCode {
    /// The commit that the task begins from; `commit` is what was sent.
    pub head: RepositoryHead,
    /// The name of the task.
    pub name: String,
    bundles: CodeBundles,
    pub(super) address: FarmAddress,
    pub(super) returned: CodeReturn,
}

/// Code that came back from a worker.
#[derive(Debug)]
pub struct FetchedCode {
    /// A bundle as the worker has signed it, from which nothing is known yet.
    pub bundle: Vec<u8>,
    /// A sentence about work that is not in it.
    pub leftover: Option<String>,
    sequences: Vec<u64>,
    connection: Arc<FarmConnection>,
}

/// A bundle that a worker has announced.
#[derive(Debug)]
pub(super) struct AnnouncedBundle {
    worker: String,
    bundle: BundleRecord,
    /// A sentence about work that is not in it.
    leftover: Option<String>,
}

/// The code that a session has sent.
#[derive(Debug, Default)]
pub(super) struct CodeUploads(tokio::sync::Mutex<Vec<UploadedCode>>);

/// Code that is at a server.
#[derive(Debug)]
struct UploadedCode {
    connection: Arc<FarmConnection>,
    queue: String,
    repository: PathBuf,
    commit: String,
    bundles: CodeBundles,
    /// The sequences of the chunks of the last bundle; an earlier upload has those of the base.
    sequences: Vec<u64>,
    /// Counts the time since the upload of the base, also while the machine is suspended.
    age: FleetClock,
}

impl SentCode {
    /// Returns what an earlier process has sent for the task at a place, from this repository; `None` if it sent nothing.
    pub fn of_place(
        place: &FarmPlace,
        server: NatsServer,
        repository: PathBuf,
        n_uncommitted: usize,
    ) -> Option<Self> {
        let CodeRecord { name, commit, directory, bundles } = place.message.code.clone()?;
        let TaskAddress { queue, parent: parent_name, task: _ } = place.address();
        Some(Self {
            head: RepositoryHead { repository, prefix: directory.into(), commit, n_uncommitted },
            name,
            bundles,
            address: FarmAddress { server, queue, parent_name },
            returned: CodeReturn::default(),
        })
    }

    /// Describes it in the message of the task.
    pub(super) fn record(&self) -> CodeRecord {
        CodeRecord {
            name: self.name.clone(),
            commit: self.head.commit.clone(),
            directory: self.head.prefix.to_str().unwrap_or_default().to_owned(),
            bundles: self.bundles.clone(),
        }
    }
}

impl CodeUploads {
    /// Sends the commit that a directory is at, unless the server has it from an earlier task.
    pub(super) async fn send_head(
        &self,
        connection: Arc<FarmConnection>,
        address: &FarmAddress,
        request: CodeRequest<'_>,
        cancel: &CancellationToken,
    ) -> Result<SentCode, String> {
        let CodeRequest { git, directory, name, .. } = request;
        let mut head = git.inspect_head(directory, cancel).await.map_err(|error| error.to_string())?;
        if head.prefix.to_str().is_none() {
            return Err(format!("the directory {} is not UTF-8", directory.display()));
        }
        // Held while code is sent: tasks that begin at once share it.
        let mut uploads = self.0.lock().await;
        uploads.retain(|code| code.age.now() < CODE_AGE_MAX);
        let known: Vec<&UploadedCode> = uploads
            .iter()
            .filter(|code| {
                Arc::ptr_eq(&code.connection, &connection)
                    && code.queue == address.queue
                    && code.repository == head.repository
                    && code.age.now() < CODE_USED_MAX
            })
            .collect();
        let sent = |head: RepositoryHead, bundles: CodeBundles| SentCode {
            head,
            name: name.to_owned(),
            bundles,
            address: address.clone(),
            returned: CodeReturn::default(),
        };
        if let Some(same) = known.iter().find(|code| code.commit == head.commit) {
            return Ok(sent(head, same.bundles.clone()));
        }
        let base = known.iter().rfind(|code| code.bundles.since.is_none());
        let age = base.map(|code| code.age);
        let base = base.map(|code| (code.commit.clone(), code.bundles.base.clone()));
        let (bundled, base) = bundle_head(request, &head.repository, base, cancel).await?;
        // The user may have committed meanwhile.
        head.commit.clone_from(&bundled.commit);
        let bundle = BundleRecord::new(&bundled.bytes)?;
        let subjects = BundleSubjects::from_parent(&address.queue, &address.parent_name, &bundle);
        let sequences = upload_bundle(&connection.jetstream, &subjects, bundled.bytes).await?;
        let (bundles, age) = match base {
            Some(base) => (CodeBundles { base, since: Some(bundle) }, age),
            None => (CodeBundles { base: bundle, since: None }, None),
        };
        uploads.push(UploadedCode {
            connection,
            queue: address.queue.clone(),
            repository: head.repository.clone(),
            commit: head.commit.clone(),
            bundles: bundles.clone(),
            sequences,
            age: age.unwrap_or_else(FleetClock::start),
        });
        Ok(sent(head, bundles))
    }

    /// Takes all code that was sent; each future deletes one bundle.
    pub(super) fn take_deletions(&self) -> Vec<impl Future<Output = ()> + use<>> {
        // A session that ends sends nothing any more.
        let uploads = self.0.try_lock().map(|mut uploads| std::mem::take(&mut *uploads)).unwrap_or_default();
        uploads.into_iter().map(|code| delete_chunks(code.connection, code.sequences)).collect()
    }
}

/// Bundles `HEAD` on top of a base that was sent, if that is less than the base again; returns the base that it needs.
async fn bundle_head(
    CodeRequest { git, scratch_dir, .. }: CodeRequest<'_>,
    repository: &Path,
    base: Option<(String, BundleRecord)>,
    cancel: &CancellationToken,
) -> Result<(BundledCommit, Option<BundleRecord>), String> {
    let file = scratch_dir.join(format!("{}.bundle", random_name()?));
    let made = tokio::fs::create_dir_all(scratch_dir).await;
    made.map_err(|error| format!("the directory {} cannot be made: {error}", scratch_dir.display()))?;
    if let Some((commit, base)) = base {
        match git.bundle_head(repository, Some(&commit), &file, cancel).await {
            Ok(bundled) if (bundled.bytes.len() as u64) < base.n_bytes => return Ok((bundled, Some(base))),
            Ok(_) => {}
            // The commit is an ancestor of the base, or that is no longer in the repository.
            Err(error) => tracing::debug!(%error, "a commit is sent with its history"),
        }
    }
    let bundled = git.bundle_head(repository, None, &file, cancel).await;
    bundled.map(|bundled| (bundled, None)).map_err(|error| error.to_string())
}

impl SentCode {
    /// Returns what the end of its task says about the code: the bundle, or `None` if nothing was changed. The error is the
    /// reason why the work is not there.
    pub(super) fn take_bundle(&self) -> Result<Option<AnnouncedBundle>, String> {
        let ReturnedCode { worker, code: end } =
            self.returned.take().ok_or("the task ended before its worker sent them")?;
        let quote = |reason: String| {
            let reason = replace_control_chars(&reason).replace('\n', " ");
            format!("the worker {} says: {reason}", replace_control_chars(&worker))
        };
        let (bundle, leftover) = match end {
            EndCode::Unchanged => return Ok(None),
            EndCode::Lost(reason) => return Err(quote(reason)),
            EndCode::Bundle(bundle) => (bundle, None),
            EndCode::Partial(bundle, reason) => (bundle, Some(quote(reason))),
        };
        if !is_subject_token(&worker) {
            return Err("the name of their worker is not valid".to_owned());
        }
        Ok(Some(AnnouncedBundle { worker, bundle, leftover }))
    }

    /// Fetches a bundle after the end of its task.
    pub(super) async fn fetch(
        &self,
        announced: AnnouncedBundle,
        connection: Arc<FarmConnection>,
    ) -> Result<FetchedCode, String> {
        let AnnouncedBundle { worker, bundle, leftover } = announced;
        let FarmAddress { queue, parent_name, .. } = &self.address;
        let subjects = BundleSubjects::from_worker(queue, [&worker, parent_name], &bundle.name);
        let downloaded = download_bundle(&connection.jetstream, &subjects, &bundle).await;
        let downloaded =
            downloaded.map_err(|reason| format!("the bundle from the worker {worker}: {reason}"))?;
        let sequences = downloaded.sequences;
        Ok(FetchedCode { bundle: downloaded.bytes, leftover, sequences, connection })
    }
}

impl FetchedCode {
    /// Deletes it at the server, after it was used.
    pub async fn delete(self) {
        delete_chunks(self.connection, self.sequences).await;
    }
}

/// Deletes chunks; what the server does not confirm is deleted by its age.
async fn delete_chunks(connection: Arc<FarmConnection>, sequences: Vec<u64>) {
    let deletions = async {
        for sequence in sequences {
            if let Err(reason) = delete_message(&connection.jetstream, CODE, sequence).await {
                tracing::debug!(%reason, "code was not deleted at the server");
                return;
            }
        }
    };
    if timeout(DELETE_TIME_MAX, deletions).await.is_err() {
        tracing::debug!("the server did not confirm the deletion of code in time");
    }
}
