//! Bundles: a commit with its history as bytes for another machine. What comes from there is taken in `import`.

use std::path::{Path, PathBuf};

use crow_core::{GIT_BUNDLE_BYTES_MAX, GitBundle};
use tokio_util::sync::CancellationToken;

use super::error::WorktreeError;
use super::git::{BRANCH_PREFIX, GitCli, GitLocation, GitRepository, RepositoryPath, path_str};

/// Bytes on disk of objects that are bundled. Those that were not packed yet need several times as much as in a bundle.
const OBJECT_BYTES_MAX: u64 = 8 * GIT_BUNDLE_BYTES_MAX;

/// The reference of a bundle that is made of `HEAD`.
pub(super) const HEAD_REFERENCE: &str = "HEAD";

/// The commit that a directory of a repository is at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryHead {
    /// The root of the repository.
    pub repository: PathBuf,
    /// The directory, relative to the root.
    pub prefix: PathBuf,
    pub commit: String,
    /// Number of uncommitted files, which are in no bundle.
    pub n_uncommitted: usize,
}

/// A commit with its history, or what it has beyond that of another commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundledCommit {
    pub commit: String,
    pub bytes: Vec<u8>,
}

/// A choice of commits.
struct BundleRequest<'a> {
    /// The arguments that choose the commits.
    revisions: &'a [&'a str],
    reference: &'a str,
    /// A name for an error.
    what: &'static str,
    /// A path for the bundle that is free.
    file: &'a Path,
}

impl GitCli {
    /// Returns the commit of `HEAD`, which must have its whole history here.
    pub async fn inspect_head(
        &self,
        dir: &Path,
        cancel: &CancellationToken,
    ) -> Result<RepositoryHead, WorktreeError> {
        let RepositoryPath { root: repository, prefix } = self.find_repository(dir, cancel).await?;
        let git = self.open_repository(GitLocation::Discovered { dir: repository.clone() }, cancel).await?;
        let commit = git.head_commit().await?;
        if git.run_checked(&["rev-parse", "--is-shallow-repository"]).await? == "true" {
            return Err(WorktreeError::ShallowRepository { directory: repository });
        }
        let n_uncommitted = git.count_uncommitted().await?;
        Ok(RepositoryHead { repository, prefix, commit, n_uncommitted })
    }

    /// Bundles `HEAD` of a repository with its history, or with what it has beyond that of another commit. `file` is a free
    /// path, which is used meanwhile.
    pub async fn bundle_head(
        &self,
        repository: &Path,
        base: Option<&str>,
        file: &Path,
        cancel: &CancellationToken,
    ) -> Result<BundledCommit, WorktreeError> {
        let git =
            self.open_repository(GitLocation::Discovered { dir: repository.to_owned() }, cancel).await?;
        let what = "the history of the commit";
        let whole = [HEAD_REFERENCE];
        let since = [HEAD_REFERENCE, "--not", base.unwrap_or_default()];
        let revisions = if base.is_some() { &since[..] } else { &whole[..] };
        git.bundle(BundleRequest { revisions, reference: HEAD_REFERENCE, what, file }).await
    }

    /// Bundles what the branch `crow/name` has beyond a commit; `None` if that is nothing.
    pub async fn bundle_branch(
        &self,
        repository: &Path,
        [base, name]: [&str; 2],
        file: &Path,
        cancel: &CancellationToken,
    ) -> Result<Option<BundledCommit>, WorktreeError> {
        let git =
            self.open_repository(GitLocation::Discovered { dir: repository.to_owned() }, cancel).await?;
        let branch = format!("{BRANCH_PREFIX}{name}");
        if !git.has_branch(&branch).await? {
            return Ok(None);
        }
        let reference = format!("refs/heads/{branch}");
        let revisions = [reference.as_str(), "--not", base];
        let request = BundleRequest {
            revisions: &revisions,
            reference: &reference,
            what: "the work, compressed and without what was there before,",
            file,
        };
        git.bundle(request).await.map(Some)
    }
}

impl GitRepository<'_> {
    async fn bundle(&self, request: BundleRequest<'_>) -> Result<BundledCommit, WorktreeError> {
        let BundleRequest { revisions, reference, what, file } = request;
        let measure = [&["rev-list", "--disk-usage", "--objects"], revisions].concat();
        let n_bytes = self.run_checked(&measure).await?.parse().unwrap_or(u64::MAX);
        if n_bytes > OBJECT_BYTES_MAX {
            return Err(WorktreeError::BundleTooLarge { what, n_bytes });
        }
        let create = ["bundle", "create", "--quiet", "--version=2", path_str(file)?];
        let created = self.run_checked(&[&create, revisions].concat()).await;
        let read = async {
            created?;
            read_bundle(file, what).await
        };
        let bytes = read.await;
        if let Err(error) = tokio::fs::remove_file(file).await
            && bytes.is_ok()
        {
            tracing::warn!(%error, file = %file.display(), "a bundle was not removed");
        }
        let bytes = bytes?;
        let commit = GitBundle::parse(&bytes, reference)?.commit.to_owned();
        Ok(BundledCommit { commit, bytes })
    }
}

async fn read_bundle(file: &Path, what: &'static str) -> Result<Vec<u8>, WorktreeError> {
    let failed = |error| WorktreeError::UnusableDirectory { directory: file.to_owned(), error };
    let n_bytes = tokio::fs::metadata(file).await.map_err(failed)?.len();
    if n_bytes > GIT_BUNDLE_BYTES_MAX {
        return Err(WorktreeError::BundleTooLarge { what, n_bytes });
    }
    tokio::fs::read(file).await.map_err(failed)
}
