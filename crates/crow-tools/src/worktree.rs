//! A git worktree of its own for a child: what it does lands on a branch, not in the folder of the person.
//!
//! Must never know who works in it or what for. A repository is hostile: nothing that it names is run, see `git.rs`.

mod git;
mod settle;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

pub use self::git::{GitCli, WorktreeError};
use self::git::{GitLocation, GitRepository};
pub use self::settle::{FileChangeKind, SettledWorktree, WorktreeFileChange};

/// Where the branches of children stand among the others.
const BRANCHES: &str = "crow/";

/// What git says of a worktree that it had not finished when it was ended.
const HALF_MADE: &str = "locked initializing";

/// What stands in one whose work is all on the branch, until its folder is gone.
const SETTLED: &str = "crow: settled";

/// A folder with a branch of its own beside the repository's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// Where to work: the same folder below the worktree as was asked for below the repository.
    pub path: PathBuf,
    /// The branch that is checked out there.
    pub branch: String,
    /// Files that were changed in the repository and not committed: they are not in the worktree.
    pub n_uncommitted: usize,
    name: String,
    /// The repository that it belongs to.
    repository: PathBuf,
    root: PathBuf,
    /// What git keeps of it, so that nothing in the folder itself says where that is.
    git_folder: PathBuf,
    /// The commit that it started from.
    base: String,
}

impl Worktree {
    /// Makes a worktree `at/name` of the repository that `folder` is in, on the branch `crow/name` from `HEAD`.
    ///
    /// A branch that is there already goes on, and so does a worktree that somebody left: with all that is in it.
    pub async fn create(
        git: &GitCli,
        folder: &Path,
        at: &Path,
        name: &str,
        cut: &CancellationToken,
    ) -> Result<Self, WorktreeError> {
        let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        if name.is_empty() || name.starts_with('-') || !name.chars().all(is_plain) {
            return Err(WorktreeError::BadName { name: name.to_owned() });
        }
        let (repository, prefix) = git.find_repository(folder, cut).await?;
        let at = prepare_parent(at).await?;
        let place = GitLocation::Of { folder: repository.clone() };
        let asked = WorktreeRequest {
            git: git.open_repository(place, cut).await?,
            root: at.join(name),
            name,
            repository,
        };
        let base = asked.head_commit().await?;
        let status = ["status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=all"];
        let n_uncommitted = asked.git.run_checked(&status).await?.lines().count();
        let opened = asked.open_or_add(&base).await?;
        let base = match opened {
            WorktreeOrigin::New => base,
            WorktreeOrigin::Again => asked.merge_base(base).await?,
        };
        let made = asked.build_worktree(&prefix, n_uncommitted, base).await;
        if made.is_err() && opened == WorktreeOrigin::New {
            asked.roll_back().await?;
        }
        made
    }
}

/// The folder for worktrees by its real path, which is what git calls it.
async fn prepare_parent(at: &Path) -> Result<PathBuf, WorktreeError> {
    let failed = |error: std::io::Error| WorktreeError::Folder { folder: at.to_owned(), error };
    tokio::fs::create_dir_all(at).await.map_err(failed)?;
    tokio::fs::canonicalize(at).await.map_err(failed)
}

#[derive(PartialEq, Eq)]
enum WorktreeOrigin {
    New,
    Again,
}

/// A worktree that is asked for.
struct WorktreeRequest<'a> {
    git: GitRepository<'a>,
    root: PathBuf,
    name: &'a str,
    repository: PathBuf,
}

impl WorktreeRequest<'_> {
    fn branch_name(&self) -> String {
        format!("{BRANCHES}{}", self.name)
    }

    async fn head_commit(&self) -> Result<String, WorktreeError> {
        let head = self.git.run_optional(&["rev-parse", "--quiet", "--verify", "HEAD^{commit}"]).await?;
        head.ok_or_else(|| WorktreeError::NoCommit { folder: self.repository.clone() })
    }

    /// Has the folder there, with the branch checked out.
    async fn open_or_add(&self, base: &str) -> Result<WorktreeOrigin, WorktreeError> {
        self.git.run_checked(&["worktree", "prune"]).await?;
        let (root, branch) = (path_str(&self.root)?, self.branch_name());
        let all = self.git.run_checked(&["worktree", "list", "--porcelain"]).await?;
        if let Some(left) =
            all.split("\n\n").find(|one| one.lines().next() == Some(&format!("worktree {root}")))
        {
            let is_of_no_use =
                |line: &str| line == HALF_MADE || line.strip_prefix("locked ") == Some(SETTLED);
            if !left.lines().any(is_of_no_use) {
                return Ok(WorktreeOrigin::Again);
            }
            self.git.run_checked(&["worktree", "remove", "--force", "--force", root]).await?;
        }
        if tokio::fs::symlink_metadata(&self.root).await.is_ok() {
            return Err(WorktreeError::InTheWay { folder: self.root.clone() });
        }
        if self.git.has_branch(&branch).await? {
            self.add_worktree(&[root, &branch]).await?;
            return Ok(WorktreeOrigin::Again);
        }
        let added = self.add_worktree(&["-b", &branch, root, base]).await;
        if added.is_err() {
            self.roll_back().await?;
        }
        added.map(|()| WorktreeOrigin::New)
    }

    async fn add_worktree(&self, what: &[&str]) -> Result<(), WorktreeError> {
        self.git.run_checked(&[&["worktree", "add", "--quiet"], what].concat()).await.map(drop)
    }

    /// Leaves nothing of a worktree that was new.
    async fn roll_back(&self) -> Result<(), WorktreeError> {
        let git = self.git.ignoring_cancel();
        git.run_best_effort(&["worktree", "remove", "--force", "--force", path_str(&self.root)?]).await;
        git.run_best_effort(&["branch", "-D", &self.branch_name()]).await;
        Ok(())
    }

    /// Where the branch that goes on left the repository's own.
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
        let failed = |error| WorktreeError::Folder { folder: path.clone(), error };
        // A folder without a committed file is not in the worktree.
        tokio::fs::create_dir_all(&path).await.map_err(failed)?;
        // What is committed may be a link that leads out.
        if tokio::fs::canonicalize(&path).await.map_err(failed)? != path {
            return Err(WorktreeError::LeadsOut { folder: path });
        }
        let there = self.git.at_location(GitLocation::Of { folder: self.root.clone() });
        let git_folder = PathBuf::from(there.run_checked(&["rev-parse", "--absolute-git-dir"]).await?);
        Ok(Worktree {
            path,
            branch: self.branch_name(),
            n_uncommitted,
            name: self.name.to_owned(),
            repository: self.repository.clone(),
            root: self.root.clone(),
            git_folder,
            base,
        })
    }
}

fn path_str(path: &Path) -> Result<&str, WorktreeError> {
    path.to_str().ok_or_else(|| WorktreeError::NotText { path: path.to_owned() })
}
