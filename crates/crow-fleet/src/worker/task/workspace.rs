//! The files of a task: a directory of its own, or a worktree of the code that its parent has sent; new, as this worker has left
//! them, or as another one has saved them.

use std::path::{Path, PathBuf};

use crow_tools::SnapshotFiles;
use tokio_util::sync::CancellationToken;

use super::accepted::AcceptedTask;
use super::checkout::{CheckoutRequest, TaskCheckout};
use super::earlier_work::EarlierWork;
use super::saver::SNAPSHOT_DIR;
use crate::code::EndCode;
use crate::worker::WorkerContext;

/// The directory of repositories for later tasks, beside the directories of tasks.
const BASES_DIR: &str = "repositories";

/// The working directory of a task without code, in its directory.
const WORK_DIR: &str = "work";

/// The files of a task that runs.
pub(super) enum TaskWorkspace<'a> {
    Directory(PathBuf),
    Checkout(Box<TaskCheckout<'a>>),
}

impl<'a> TaskWorkspace<'a> {
    /// Makes the files in the directory of a task, or opens those in which it goes on; the error is the reason.
    pub(super) async fn prepare(
        context: &'a WorkerContext,
        task: &'a AcceptedTask,
        directory: &'a Path,
    ) -> Result<Self, String> {
        let snapshot = match &task.earlier_work {
            Some(EarlierWork::Saved(saved)) => {
                let bytes = saved.download(&context.jetstream, &task.address).await;
                Some(bytes.map_err(|reason| format!("what {} has saved: {reason}", saved.worker))?)
            }
            Some(EarlierWork::Kept(_)) | None => None,
        };
        let git = &context.options.git;
        let Some(code) = &task.message.code else {
            let work = directory.join(WORK_DIR);
            let made = tokio::fs::create_dir_all(&work).await;
            made.map_err(|error| format!("the worker could not make a directory for the task: {error}"))?;
            if let Some(bundle) = snapshot {
                let (scratch, cancel) = (directory.join(SNAPSHOT_DIR), CancellationToken::new());
                let restored = git.restore_directory(&work, &bundle, &scratch, &cancel).await;
                restored.map_err(|error| error.to_string())?;
            }
            return Ok(Self::Directory(work));
        };
        let request = CheckoutRequest {
            git,
            jetstream: &context.jetstream,
            address: &task.address,
            worker: &task.taken.worker,
            code,
            directory,
            bases_dir: context.options.workspaces_dir.join(BASES_DIR),
        };
        let checkout = match &task.earlier_work {
            Some(EarlierWork::Kept(_)) => TaskCheckout::reopen(request).await,
            Some(EarlierWork::Saved(_)) | None => TaskCheckout::create(request, snapshot.as_deref()).await,
        };
        let failed = |reason| format!("the worker could not check out the code: {reason}");
        checkout.map(|checkout| Self::Checkout(Box::new(checkout))).map_err(failed)
    }

    /// The working directory of the task.
    pub(super) fn cwd(&self) -> &Path {
        match self {
            Self::Directory(directory) => directory,
            Self::Checkout(checkout) => checkout.cwd(),
        }
    }

    /// The files for a snapshot.
    pub(super) fn files(&self) -> SnapshotFiles {
        match self {
            Self::Directory(directory) => SnapshotFiles::Directory(directory.clone()),
            Self::Checkout(checkout) => checkout.files(),
        }
    }

    /// Sends back the work on code; `None` if there is none.
    pub(super) async fn send_back(&self) -> Option<EndCode> {
        match self {
            Self::Directory(_) => None,
            Self::Checkout(checkout) => Some(checkout.send_back().await),
        }
    }
}
