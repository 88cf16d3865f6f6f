//! Bundles: a commit with its history as bytes for another machine. What comes from there is taken in `import`.

use std::path::{Path, PathBuf};

use crow_core::{GIT_BUNDLE_BYTES_MAX, GitBundle};
use tokio_util::sync::CancellationToken;

use super::error::WorktreeError;
use super::git::{BRANCH_PREFIX, GitCli, GitLocation, GitRepository, RepositoryPath, path_str};

/// Objects that are bundled may need this many times the bytes of a bundle on disk, as those do that were not packed yet.
const OBJECT_BYTES_FACTOR: u64 = 8;

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

/// A name of the work of a task, for an error.
pub(super) const WORK: &str = "the work, compressed and without what was there before,";

/// A choice of commits.
pub(super) struct BundleRequest<'a> {
    /// The arguments that choose the commits.
    pub(super) revisions: &'a [&'a str],
    pub(super) reference: &'a str,
    /// A name for an error.
    pub(super) what: &'static str,
    /// A path for the bundle that is free.
    pub(super) file: &'a Path,
    pub(super) n_bytes_max: u64,
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
        let n_bytes_max = GIT_BUNDLE_BYTES_MAX;
        git.bundle(BundleRequest { revisions, reference: HEAD_REFERENCE, what, file, n_bytes_max }).await
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
            what: WORK,
            file,
            n_bytes_max: GIT_BUNDLE_BYTES_MAX,
        };
        git.bundle(request).await.map(Some)
    }
}

impl GitRepository<'_> {
    pub(super) async fn bundle(&self, request: BundleRequest<'_>) -> Result<BundledCommit, WorktreeError> {
        let BundleRequest { revisions, reference, what, file, n_bytes_max } = request;
        let measure = [&["rev-list", "--disk-usage", "--objects"], revisions].concat();
        let n_bytes = self.run_checked(&measure).await?.parse().unwrap_or(u64::MAX);
        if n_bytes > OBJECT_BYTES_FACTOR * n_bytes_max {
            return Err(WorktreeError::BundleTooLarge { what, n_bytes, n_bytes_max });
        }
        let create = ["bundle", "create", "--quiet", "--version=2", path_str(file)?];
        let created = self.run_checked(&[&create, revisions].concat()).await;
        let read = async {
            created?;
            let n_bytes = file_len(file).await?;
            if n_bytes > n_bytes_max {
                return Err(WorktreeError::BundleTooLarge { what, n_bytes, n_bytes_max });
            }
            tokio::fs::read(file).await.map_err(|error| unreadable(file, error))
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

async fn file_len(file: &Path) -> Result<u64, WorktreeError> {
    let metadata = tokio::fs::metadata(file).await.map_err(|error| unreadable(file, error))?;
    Ok(metadata.len())
}

fn unreadable(file: &Path, error: std::io::Error) -> WorktreeError {
    WorktreeError::UnusableDirectory { directory: file.to_owned(), error }
}
