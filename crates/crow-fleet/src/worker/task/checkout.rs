//! The worktree of a task that has code: made of what its parent sent, and sent back with the end of the task.

use std::path::{Path, PathBuf};

use async_nats::jetstream::Context;
use crow_tools::{
    BranchImport, BundledCommit, GitCli, RepositoryImport, SettledWorktree, SnapshotFiles, Worktree,
};
use tokio_util::sync::CancellationToken;

use crate::code::{BundleRecord, BundleSubjects, CodeRecord, EndCode, download_bundle, upload_bundle};
use crate::subject::TaskAddress;
use crate::worker::base_repositories::BaseRepositories;

/// The repository of a task in its directory. The name of a worktree has no dot.
const REPOSITORY_DIR: &str = ".repository";

/// The place where foreign objects are checked.
const QUARANTINE_DIR: &str = ".quarantine";

/// A bundle while it is made.
const BUNDLE_FILE: &str = ".bundle";

/// A request to check out the code of a task.
pub(super) struct CheckoutRequest<'a> {
    pub(super) git: &'a GitCli,
    pub(super) jetstream: &'a Context,
    pub(super) address: &'a TaskAddress,
    /// The name of this worker.
    pub(super) worker: &'a str,
    pub(super) code: &'a CodeRecord,
    /// The directory of the task.
    pub(super) directory: &'a Path,
    /// The directory of the repositories that are kept for later tasks.
    pub(super) bases_dir: PathBuf,
}

impl CheckoutRequest<'_> {
    async fn download(&self, bundle: &BundleRecord) -> Result<Vec<u8>, String> {
        let subjects = BundleSubjects::from_parent(&self.address.queue, &self.address.parent, bundle);
        let downloaded = download_bundle(self.jetstream, &subjects, bundle).await;
        downloaded.map(|downloaded| downloaded.bytes).map_err(|reason| format!("its bundle: {reason}"))
    }
}

/// The worktree of a task in a repository of its own.
pub(super) struct TaskCheckout<'a> {
    request: CheckoutRequest<'a>,
    worktree: Worktree,
}

impl<'a> TaskCheckout<'a> {
    /// Fetches the code, checks it and makes a worktree of it, with the files of a snapshot if there is one; the error is the
    /// reason.
    pub(super) async fn create(
        request: CheckoutRequest<'a>,
        snapshot: Option<&[u8]>,
    ) -> Result<Self, String> {
        let CheckoutRequest { git, code, directory, bases_dir, address, .. } = &request;
        let bases = BaseRepositories { git, directory: bases_dir.join(&address.parent) };
        let base = &code.bundles.base;
        let base = bases.open(base, async || request.download(base).await).await?;
        let bundle = match &code.bundles.since {
            Some(bundle) => Some(request.download(bundle).await?),
            None => None,
        };
        let repository = directory.join(REPOSITORY_DIR);
        let import = RepositoryImport {
            directory: &repository,
            base: &base,
            commit: &code.commit,
            bundle: bundle.as_deref(),
            prefix: Path::new(&code.directory),
        };
        // The whole step is dropped if the task must stop.
        let cancel = CancellationToken::new();
        let imported = git.import_repository(import, &cancel).await;
        imported.map_err(|error| error.to_string())?;
        let Some(bundle) = snapshot else { return Self::reopen(request).await };
        let (base, name) = (code.commit.as_str(), code.name.as_str());
        let quarantine = &directory.join(QUARANTINE_DIR);
        let import = BranchImport { repository: &repository, base, name, bundle, quarantine };
        git.restore_branch(import, &cancel).await.map_err(|error| error.to_string())?;
        let checkout = Self::reopen(request).await?;
        let undone = checkout.worktree.undo_snapshot_commit(checkout.request.git, &cancel).await;
        undone.map(|()| checkout).map_err(|error| error.to_string())
    }

    /// Opens the worktree in the directory of a task, which is made if it is not there; the error is the reason.
    pub(super) async fn reopen(request: CheckoutRequest<'a>) -> Result<Self, String> {
        let CheckoutRequest { git, code, directory, .. } = &request;
        let repository = directory.join(REPOSITORY_DIR).join(&code.directory);
        let cancel = CancellationToken::new();
        let worktree = Worktree::create(git, &repository, directory, &code.name, &cancel).await;
        let worktree = worktree.map_err(|error| error.to_string())?;
        Ok(Self { request, worktree })
    }

    /// The working directory of the task.
    pub(super) fn cwd(&self) -> &Path {
        &self.worktree.path
    }

    /// Its files for a snapshot.
    pub(super) fn files(&self) -> SnapshotFiles {
        let worktree = Box::new(self.worktree.clone());
        SnapshotFiles::Worktree { worktree, base: self.request.code.commit.clone() }
    }

    /// Commits the work, as in any worktree of a task, and stores it for the parent.
    pub(super) async fn send_back(&self) -> EndCode {
        match self.try_send_back().await {
            Ok(code) => code,
            Err(reason) => EndCode::lost(&reason),
        }
    }

    async fn try_send_back(&self) -> Result<EndCode, String> {
        let CheckoutRequest { git, code, directory, .. } = &self.request;
        let cancel = CancellationToken::new();
        let SettledWorktree { branch, leftover, .. } = self.worktree.settle(git, &cancel).await;
        let Some(branch) = branch else {
            return leftover.map_or(Ok(EndCode::Unchanged), Err);
        };
        let (repository, file) = (directory.join(REPOSITORY_DIR), directory.join(BUNDLE_FILE));
        let bundled = git.bundle_branch(&repository, [&code.commit, &code.name], &file, &cancel).await;
        let sent = match bundled {
            Ok(Some(bundled)) => self.upload(bundled).await,
            Ok(None) => return leftover.map_or(Ok(EndCode::Unchanged), Err),
            // If the work could not be committed, that is the reason.
            Err(error) => Err(leftover.clone().unwrap_or_else(|| error.to_string())),
        };
        match (sent, leftover) {
            (Ok(bundle), None) => Ok(EndCode::Bundle(bundle)),
            (Ok(bundle), Some(leftover)) => Ok(EndCode::partial(bundle, &leftover)),
            (Err(reason), Some(_)) => Err(reason),
            (Err(reason), None) => {
                Err(format!("{reason}; the work is on the branch {branch} of {}", repository.display()))
            }
        }
    }

    /// Stores a bundle for the parent.
    async fn upload(&self, bundled: BundledCommit) -> Result<BundleRecord, String> {
        let CheckoutRequest { address, worker, jetstream, .. } = &self.request;
        let bundle = BundleRecord::new(&bundled.bytes)?;
        let subjects = BundleSubjects::from_worker(&address.queue, [worker, &address.parent], &bundle.name);
        upload_bundle(jetstream, &subjects, bundled.bytes).await?;
        Ok(bundle)
    }
}
