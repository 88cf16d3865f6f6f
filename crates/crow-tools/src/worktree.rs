//! A git worktree of its own for a child: what it does lands on a branch, not in the folder of the person.
//!
//! Must never know who works in it or what for. A repository is hostile: nothing that it names is run, see `git.rs`.

mod git;
mod settle;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

pub use self::git::{Git, WorktreeError};
use self::git::{Place, Repository};
pub use self::settle::{ChangedFile, FileChange, Settled};

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
    pub async fn make(
        git: &Git,
        folder: &Path,
        at: &Path,
        name: &str,
        cut: &CancellationToken,
    ) -> Result<Self, WorktreeError> {
        let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        if name.is_empty() || name.starts_with('-') || !name.chars().all(is_plain) {
            return Err(WorktreeError::BadName { name: name.to_owned() });
        }
        let (repository, prefix) = git.find(folder, cut).await?;
        let at = prepare(at).await?;
        let place = Place::Of { folder: repository.clone() };
        let asked = Asked { git: git.bind(place, cut).await?, root: at.join(name), name, repository };
        let base = asked.head().await?;
        let status = ["status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=all"];
        let n_uncommitted = asked.git.ask(&status).await?.lines().count();
        let opened = asked.open(&base).await?;
        let base = match opened {
            Opened::New => base,
            Opened::Again => asked.base_of_branch(base).await?,
        };
        let made = asked.enter(&prefix, n_uncommitted, base).await;
        if made.is_err() && opened == Opened::New {
            asked.take_back().await?;
        }
        made
    }
}

/// The folder for worktrees by its real path, which is what git calls it.
async fn prepare(at: &Path) -> Result<PathBuf, WorktreeError> {
    let failed = |error: std::io::Error| WorktreeError::Folder { folder: at.to_owned(), error };
    tokio::fs::create_dir_all(at).await.map_err(failed)?;
    tokio::fs::canonicalize(at).await.map_err(failed)
}

#[derive(PartialEq, Eq)]
enum Opened {
    New,
    Again,
}

/// A worktree that is asked for.
struct Asked<'a> {
    git: Repository<'a>,
    root: PathBuf,
    name: &'a str,
    repository: PathBuf,
}

impl Asked<'_> {
    fn branch(&self) -> String {
        format!("{BRANCHES}{}", self.name)
    }

    async fn head(&self) -> Result<String, WorktreeError> {
        let head = self.git.try_ask(&["rev-parse", "--quiet", "--verify", "HEAD^{commit}"]).await?;
        head.ok_or_else(|| WorktreeError::NoCommit { folder: self.repository.clone() })
    }

    /// Has the folder there, with the branch checked out.
    async fn open(&self, base: &str) -> Result<Opened, WorktreeError> {
        self.git.ask(&["worktree", "prune"]).await?;
        let (root, branch) = (spelled(&self.root)?, self.branch());
        let all = self.git.ask(&["worktree", "list", "--porcelain"]).await?;
        if let Some(left) =
            all.split("\n\n").find(|one| one.lines().next() == Some(&format!("worktree {root}")))
        {
            let is_of_no_use =
                |line: &str| line == HALF_MADE || line.strip_prefix("locked ") == Some(SETTLED);
            if !left.lines().any(is_of_no_use) {
                return Ok(Opened::Again);
            }
            self.git.ask(&["worktree", "remove", "--force", "--force", root]).await?;
        }
        if tokio::fs::symlink_metadata(&self.root).await.is_ok() {
            return Err(WorktreeError::InTheWay { folder: self.root.clone() });
        }
        if self.git.has_branch(&branch).await? {
            self.add(&[root, &branch]).await?;
            return Ok(Opened::Again);
        }
        let added = self.add(&["-b", &branch, root, base]).await;
        if added.is_err() {
            self.take_back().await?;
        }
        added.map(|()| Opened::New)
    }

    async fn add(&self, what: &[&str]) -> Result<(), WorktreeError> {
        self.git.ask(&[&["worktree", "add", "--quiet"], what].concat()).await.map(drop)
    }

    /// Leaves nothing of a worktree that was new.
    async fn take_back(&self) -> Result<(), WorktreeError> {
        let git = self.git.past_cut();
        git.tidy(&["worktree", "remove", "--force", "--force", spelled(&self.root)?]).await;
        git.tidy(&["branch", "-D", &self.branch()]).await;
        Ok(())
    }

    /// Where the branch that goes on left the repository's own.
    async fn base_of_branch(&self, head: String) -> Result<String, WorktreeError> {
        let base = self.git.try_ask(&["merge-base", &head, &format!("refs/heads/{}", self.branch())]).await?;
        Ok(base.unwrap_or(head))
    }

    async fn enter(
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
        let there = self.git.of(Place::Of { folder: self.root.clone() });
        let git_folder = PathBuf::from(there.ask(&["rev-parse", "--absolute-git-dir"]).await?);
        Ok(Worktree {
            path,
            branch: self.branch(),
            n_uncommitted,
            name: self.name.to_owned(),
            repository: self.repository.clone(),
            root: self.root.clone(),
            git_folder,
            base,
        })
    }
}

fn spelled(path: &Path) -> Result<&str, WorktreeError> {
    path.to_str().ok_or_else(|| WorktreeError::NotText { path: path.to_owned() })
}
