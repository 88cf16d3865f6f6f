//! Repositories of whole histories that parents have sent, which are kept for their later tasks. One belongs to one parent,
//! because who names its digest gets its files. A task has copies of its packs, so one can be removed at any time.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crow_tools::GitCli;
use tokio_util::sync::CancellationToken;

use crate::code::BundleRecord;
use crate::subject::random_name;

/// Repositories of one parent; each has at most the size of a bundle and its index.
const REPOSITORIES_MAX: usize = 8;

/// Time after which an unused repository is removed. A parent uses a history for half a day.
const UNUSED_MAX: Duration = Duration::from_secs(2 * 24 * 3600);

/// The file whose age is the time since the last use.
const USED_FILE: &str = "used";

/// The repositories of one parent.
pub(super) struct BaseRepositories<'a> {
    pub(super) git: &'a GitCli,
    pub(super) directory: PathBuf,
}

impl BaseRepositories<'_> {
    /// Returns the repository of a bundle, which is downloaded if it is not there; the error is the reason.
    pub(super) async fn open(
        &self,
        bundle: &BundleRecord,
        download: impl AsyncFnOnce() -> Result<Vec<u8>, String>,
    ) -> Result<PathBuf, String> {
        if !bundle.is_valid() {
            return Err("the announcement of its bundle is not valid".to_owned());
        }
        let repository = self.directory.join(&bundle.digest);
        // It has its name only once it is complete.
        if mark_used(&repository).await.is_ok() {
            return Ok(repository);
        }
        let bytes = download().await?;
        let unfinished = self.directory.join(format!("{}.new", random_name()?));
        let made = self.git.import_base(&unfinished, &bytes, &CancellationToken::new()).await;
        let finished = async {
            made.map_err(|error| error.to_string())?;
            mark_used(&unfinished).await.map_err(|error| error.to_string())?;
            match tokio::fs::rename(&unfinished, &repository).await {
                Err(error) if !repository.exists() => Err(error.to_string()),
                // Another task was faster.
                Ok(()) | Err(_) => Ok(()),
            }
        };
        let finished = finished.await;
        if unfinished.exists() {
            remove(&unfinished).await;
        }
        self.remove_old(&repository).await;
        finished.map(|()| repository)
    }

    /// Removes repositories that were not used for long, those beyond the limit, and what a killed worker left.
    async fn remove_old(&self, current: &Path) {
        let mut repositories = match list_repositories(&self.directory).await {
            Ok(repositories) => repositories,
            Err(error) => return tracing::warn!(%error, "the kept repositories could not be listed"),
        };
        repositories.sort();
        let n_too_many = repositories.len().saturating_sub(REPOSITORIES_MAX);
        let now = SystemTime::from(jiff::Timestamp::now());
        for (index, (used, repository)) in repositories.iter().enumerate() {
            let is_old = now.duration_since(*used).is_ok_and(|age| age > UNUSED_MAX);
            if (is_old || index < n_too_many) && repository != current {
                remove(repository).await;
            }
        }
    }
}

/// Sets the time of the last use; fails if the repository does not exist.
async fn mark_used(repository: &Path) -> std::io::Result<()> {
    tokio::fs::write(repository.join(USED_FILE), "").await
}

/// Lists directories with the time of their last use.
async fn list_repositories(directory: &Path) -> std::io::Result<Vec<(SystemTime, PathBuf)>> {
    let (mut repositories, mut entries) = (Vec::new(), tokio::fs::read_dir(directory).await?);
    while let Some(entry) = entries.next_entry().await? {
        let path = entry.path();
        // One that is not finished has the age of its directory.
        let metadata = match tokio::fs::metadata(path.join(USED_FILE)).await {
            Ok(metadata) => metadata,
            Err(_) => entry.metadata().await?,
        };
        repositories.push((metadata.modified()?, path));
    }
    Ok(repositories)
}

async fn remove(repository: &Path) {
    if let Err(error) = tokio::fs::remove_dir_all(repository).await {
        tracing::warn!(%error, repository = %repository.display(), "a kept repository was not removed");
    }
}
