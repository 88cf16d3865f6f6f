//! A git worktree for a child: its changes go to a branch, not to the user's directory.
//!
//! Must not know who works in it or why. Repositories are untrusted: none of their programs are run, see `git.rs`.

mod bundle;
mod error;
mod git;
mod git_status;
mod ignored;
mod import;
mod settle;
mod snapshot;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

pub use self::bundle::{BundledCommit, RepositoryHead};
pub use self::error::WorktreeError;
pub use self::git::GitCli;
use self::git::{BRANCH_PREFIX, GitLocation, GitRepository, RepositoryPath, path_str};
pub use self::import::{BranchImport, RepositoryImport};
pub use self::settle::{FileChangeKind, SettledWorktree, WorktreeFileChange};
pub use self::snapshot::{BundledSnapshot, SnapshotContent, SnapshotFiles, SnapshotRequest};

/// Git's mark of a worktree whose creation was interrupted.
const INITIALIZING_LOCK: &str = "locked initializing";

/// Lock reason of a worktree whose work is all on the branch, until its directory is deleted.
const SETTLED_LOCK: &str = "crow: settled";

/// A directory with a branch of its own beside the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// The working directory: the same one below the worktree as requested below the repository.
    pub path: PathBuf,
    /// The branch that is checked out there.
    pub branch: String,
    /// Number of uncommitted files in the repository, which are not in the worktree.
    pub n_uncommitted: usize,
    name: String,
    /// The repository that it belongs to.
    repository: PathBuf,
    root: PathBuf,
    /// Git's own directory for it, so that files in the worktree cannot change it.
    git_dir: PathBuf,
    /// The commit that it started from.
    base: String,
}

impl Worktree {
    /// Creates a worktree `parent/name` of the repository of `dir`, on the branch `crow/name` from `HEAD`.
    ///
    /// An existing branch is continued, and so is an existing worktree, with all that is in it.
    pub async fn create(
        git: &GitCli,
        dir: &Path,
        parent: &Path,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<Self, WorktreeError> {
        let is_valid = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        if name.is_empty() || name.starts_with('-') || !name.chars().all(is_valid) {
            return Err(WorktreeError::InvalidName { name: name.to_owned() });
        }
        let RepositoryPath { root: repository, prefix } = git.find_repository(dir, cancel).await?;
        let parent = prepare_parent(parent).await?;
        let location = GitLocation::Discovered { dir: repository.clone() };
        let request = WorktreeRequest {
            git: git.open_repository(location, cancel).await?,
            root: parent.join(name),
            name,
            repository,
        };
        let base = request.git.head_commit().await?;
        let n_uncommitted = request.git.count_uncommitted().await?;
        let origin = request.open_or_add(&base).await?;
        let base = match origin {
            WorktreeOrigin::New => base,
            WorktreeOrigin::Existing => request.merge_base(base).await?,
        };
        let worktree = request.build_worktree(&prefix, n_uncommitted, base).await;
        if worktree.is_err() && origin == WorktreeOrigin::New {
            request.roll_back().await?;
        }
        worktree
    }
}

/// The directory of the worktrees with links resolved, as git gives it.
async fn prepare_parent(parent: &Path) -> Result<PathBuf, WorktreeError> {
    let failed =
        |error: std::io::Error| WorktreeError::UnusableDirectory { directory: parent.to_owned(), error };
    tokio::fs::create_dir_all(parent).await.map_err(failed)?;
    tokio::fs::canonicalize(parent).await.map_err(failed)
}

#[derive(PartialEq, Eq)]
enum WorktreeOrigin {
    New,
    Existing,
}

/// A requested worktree.
struct WorktreeRequest<'a> {
    git: GitRepository<'a>,
    root: PathBuf,
    name: &'a str,
    repository: PathBuf,
}

impl WorktreeRequest<'_> {
    fn branch_name(&self) -> String {
        format!("{BRANCH_PREFIX}{}", self.name)
    }

    /// Opens an existing worktree, or adds one with the branch checked out.
    async fn open_or_add(&self, base: &str) -> Result<WorktreeOrigin, WorktreeError> {
        let (root, branch) = (path_str(&self.root)?, self.branch_name());
        let worktrees = self.git.run_checked(&["worktree", "list", "--porcelain"]).await?;
        if let Some(existing) =
            worktrees.split("\n\n").find(|entry| entry.lines().next() == Some(&format!("worktree {root}")))
        {
            let is_unusable =
                |line: &str| line == INITIALIZING_LOCK || line.strip_prefix("locked ") == Some(SETTLED_LOCK);
            let has_directory = tokio::fs::symlink_metadata(&self.root).await.is_ok();
            if has_directory && !existing.lines().any(is_unusable) {
                return Ok(WorktreeOrigin::Existing);
            }
            // Only this one: others may be on a disk that is not mounted.
            self.git.run_checked(&["worktree", "remove", "--force", "--force", root]).await?;
        }
        if tokio::fs::symlink_metadata(&self.root).await.is_ok() {
            return Err(WorktreeError::PathOccupied { directory: self.root.clone() });
        }
        if self.git.has_branch(&branch).await? {
            self.add_worktree(&[root, &branch]).await?;
            return Ok(WorktreeOrigin::Existing);
        }
        let added = self.add_worktree(&["-b", &branch, root, base]).await;
        if added.is_err() {
            self.roll_back().await?;
        }
        added.map(|()| WorktreeOrigin::New)
    }

    async fn add_worktree(&self, args: &[&str]) -> Result<(), WorktreeError> {
        self.git.run_checked(&[&["worktree", "add", "--quiet"], args].concat()).await.map(drop)
    }

    /// Removes a new worktree and its branch.
    async fn roll_back(&self) -> Result<(), WorktreeError> {
        let git = self.git.ignoring_cancel();
        git.run_best_effort(&["worktree", "remove", "--force", "--force", path_str(&self.root)?]).await;
        git.run_best_effort(&["branch", "-D", &self.branch_name()]).await;
        Ok(())
    }

    /// The commit at which a continued branch left the repository's own.
    async fn merge_base(&self, head: String) -> Result<String, WorktreeError> {
        let base = self
            .git
            .run_optional(&["merge-base", &head, &format!("refs/heads/{}", self.branch_name())])
            .await?;
        Ok(base.unwrap_or(head))
    }

    async fn build_worktree(
        &self,
        prefix: &Path,
        n_uncommitted: usize,
        base: String,
    ) -> Result<Worktree, WorktreeError> {
        let path = self.root.join(prefix);
        let failed = |error| WorktreeError::UnusableDirectory { directory: path.clone(), error };
        // A directory without a committed file is not in the worktree.
        tokio::fs::create_dir_all(&path).await.map_err(failed)?;
        // A committed link may lead out.
        if tokio::fs::canonicalize(&path).await.map_err(failed)? != path {
            return Err(WorktreeError::OutsideWorktree { directory: path });
        }
        let worktree_git = self.git.at_location(GitLocation::Discovered { dir: self.root.clone() });
        let git_dir = PathBuf::from(worktree_git.run_checked(&["rev-parse", "--absolute-git-dir"]).await?);
        Ok(Worktree {
            path,
            branch: self.branch_name(),
            n_uncommitted,
            name: self.name.to_owned(),
            repository: self.repository.clone(),
            root: self.root.clone(),
            git_dir,
            base,
        })
    }
}
