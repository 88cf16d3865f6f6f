//! Settles a worktree: commits everything and removes the directory. Work that cannot be on the branch keeps the
//! directory.

use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use super::error::WorktreeError;
use super::git::{GitCli, GitLocation, GitRepository, path_str};
use super::ignored::IgnoredFiles;
use super::{SETTLED_LOCK, Worktree};

/// More than a user reads; the count includes all.
pub(super) const FILES_MAX: usize = 200;

/// The mode of a repository within a repository.
const REPOSITORY_MODE: &str = "160000";

/// As wide as a terminal, and a screen or two long.
const STAT: [&str; 2] = ["--stat=100", "--stat-count=60"];

/// The result of the work in a worktree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SettledWorktree {
    /// The branch with the work; `None` if nothing was changed.
    pub branch: Option<String>,
    /// Number of files that differ from the start.
    pub n_files: usize,
    /// The first of them.
    pub files: Vec<WorktreeFileChange>,
    /// The diffstat: one line per file.
    pub stat: String,
    /// The diff, truncated with a note if it is long.
    pub diff: String,
    /// A sentence about anything left over: a directory that could not be removed, or work that is only there.
    pub leftover: Option<String>,
    /// A sentence about the files that git ignores. Some of them keep the directory.
    pub ignored: Option<String>,
    /// The directory, if it was kept for a repository or an ignored file in it.
    pub kept: Option<PathBuf>,
}

/// A changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeFileChange {
    /// The kind of change.
    pub kind: FileChangeKind,
    /// Its path in the repository, quoted as by git if it has unusual characters.
    pub path: String,
    /// Its previous path, if it was renamed.
    pub previous_path: Option<String>,
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileChangeKind {
    /// The file is new.
    Added,
    /// The file has another content, mode or type.
    Modified,
    /// The file was deleted.
    Deleted,
    /// The file has another name, and possibly another content.
    Renamed,
}

impl Worktree {
    /// Commits everything to the branch and removes the directory; without a change the branch is deleted as well. Ignored
    /// files that may have been written on purpose keep both.
    ///
    /// A failure is described in [`SettledWorktree::leftover`], and the work stays in the directory.
    pub async fn settle(&self, git: &GitCli, cancel: &CancellationToken) -> SettledWorktree {
        match self.try_settle(git, cancel).await {
            Ok(settled) => settled,
            Err(error) => SettledWorktree {
                branch: Some(self.branch.clone()),
                leftover: Some(format!("the work is in {}: {error}", self.root.display())),
                ..SettledWorktree::default()
            },
        }
    }

    async fn try_settle(
        &self,
        git: &GitCli,
        cancel: &CancellationToken,
    ) -> Result<SettledWorktree, WorktreeError> {
        let repository =
            git.open_repository(GitLocation::Discovered { dir: self.repository.clone() }, cancel).await?;
        let root = self.root.display();
        if !repository.has_branch(&self.branch).await? {
            repository.run_checked(&["update-ref", &self.branch_ref(), &self.base]).await?;
        }
        let ignored = match self.root_exists().await {
            true => self.commit_all(git, cancel).await?,
            false => IgnoredFiles::default(),
        };
        let (mut settled, repositories) = self.diff_from_base(&repository).await?;
        let is_kept = !repositories.is_empty() || ignored.keep_worktree();
        settled.kept = is_kept.then(|| self.root.clone());
        settled.ignored = ignored.describe(settled.kept.as_deref());
        settled.leftover = match repositories.first() {
            Some(path) => Some(format!(
                "{path} is a repository of its own, which cannot be on the branch; it is in {root}"
            )),
            None if is_kept => None,
            None => self.remove_worktree(&repository.ignoring_cancel(), settled.branch.is_some()).await?,
        };
        Ok(settled)
    }

    async fn root_exists(&self) -> bool {
        tokio::fs::symlink_metadata(&self.root).await.is_ok_and(|metadata| metadata.is_dir())
    }

    pub(super) fn branch_ref(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }

    /// Commits the directory to the branch, wherever its `HEAD` points to; returns what git ignores in it.
    async fn commit_all(
        &self,
        git: &GitCli,
        cancel: &CancellationToken,
    ) -> Result<IgnoredFiles, WorktreeError> {
        let location = GitLocation::Explicit { dir: self.root.clone(), git_dir: self.git_dir.clone() };
        let worktree_git = git.open_repository(location, cancel).await?;
        let reference = self.branch_ref();
        if worktree_git.run_optional(&["symbolic-ref", "--quiet", "HEAD"]).await?.as_ref() != Some(&reference)
        {
            worktree_git.run_checked(&["symbolic-ref", "HEAD", &reference]).await?;
        }
        worktree_git.run_checked(&["add", "--all"]).await?;
        let is_unchanged = worktree_git
            .run_optional(&["diff", "--cached", "--quiet", "--no-ext-diff", "HEAD"])
            .await?
            .is_some();
        if !is_unchanged {
            let message = format!("crow: {}", self.name);
            worktree_git
                .run_checked(&["commit", "--quiet", "--no-verify", "--no-gpg-sign", "--message", &message])
                .await?;
        }
        IgnoredFiles::list(&worktree_git).await
    }

    /// Returns the changes, and the paths among them that are repositories.
    async fn diff_from_base(
        &self,
        repository: &GitRepository<'_>,
    ) -> Result<(SettledWorktree, Vec<String>), WorktreeError> {
        let tip = repository
            .run_checked(&["rev-parse", "--verify", &format!("{}^{{commit}}", self.branch_ref())])
            .await?;
        if tip == self.base {
            return Ok((SettledWorktree::default(), Vec::new()));
        }
        describe_branch(repository, &self.branch, [&self.base, &tip]).await
    }

    /// Removes the directory, and the branch if it has no commits; returns a sentence if that failed.
    async fn remove_worktree(
        &self,
        repository: &GitRepository<'_>,
        keeps_branch: bool,
    ) -> Result<Option<String>, WorktreeError> {
        let root = path_str(&self.root)?;
        let exists = self.root_exists().await;
        let removed = async {
            if exists {
                // From here on it must not count as unfinished work: it may be partly deleted.
                repository.run_checked(&["worktree", "lock", "--reason", SETTLED_LOCK, root]).await?;
                let remove = ["worktree", "remove", "--force", "--force", root];
                if repository.run_checked(&remove).await.is_err() {
                    // The child may have changed the worktree's link to its repository.
                    repository.run_best_effort(&["worktree", "repair", root]).await;
                    repository.run_checked(&remove).await?;
                }
            } else {
                repository.run_best_effort(&["worktree", "remove", "--force", "--force", root]).await;
            }
            if !keeps_branch {
                repository.run_checked(&["branch", "-D", &self.branch]).await?;
            }
            Ok::<(), WorktreeError>(())
        };
        Ok(match removed.await {
            Err(error) => Some(format!("the worktree {root} could not be removed: {error}")),
            Ok(()) if exists => None,
            Ok(()) => Some(format!("the directory {root} was gone: uncommitted work in it is lost")),
        })
    }
}

/// Returns what a branch changes between two commits, and the changed paths that are repositories.
pub(super) async fn describe_branch(
    repository: &GitRepository<'_>,
    branch: &str,
    [base, tip]: [&str; 2],
) -> Result<(SettledWorktree, Vec<String>), WorktreeError> {
    let diff = async |how: &[&str]| {
        let diff = ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=none"];
        repository.run_checked(&[&diff, how, &[base, tip]].concat()).await
    };
    let (raw, stat) = (diff(&["--raw"]).await?, diff(&STAT).await?);
    let (mut files, mut repositories) = (Vec::new(), Vec::new());
    for (mode, file) in raw.lines().filter_map(parse_raw_diff_line) {
        if mode == REPOSITORY_MODE {
            repositories.push(file.path.clone());
        }
        if files.len() < FILES_MAX {
            files.push(file);
        }
    }
    let settled = SettledWorktree {
        branch: Some(branch.to_owned()),
        n_files: parse_file_count(&stat),
        files,
        stat,
        diff: diff(&["--patch"]).await?,
        leftover: None,
        ignored: None,
        kept: None,
    };
    Ok((settled, repositories))
}

/// Parses a line of a raw diff, with the file's new mode.
fn parse_raw_diff_line(line: &str) -> Option<(&str, WorktreeFileChange)> {
    let (fields, paths) = line.strip_prefix(':')?.split_once('\t')?;
    let (mode, status) = (fields.split(' ').nth(1)?, fields.rsplit(' ').next()?);
    let (previous_path, path) = match paths.split_once('\t') {
        Some((previous_path, path)) => (Some(previous_path.to_owned()), path.to_owned()),
        None => (None, paths.to_owned()),
    };
    let kind = match status.as_bytes().first()? {
        b'A' | b'C' => FileChangeKind::Added,
        b'D' => FileChangeKind::Deleted,
        b'R' => FileChangeKind::Renamed,
        _ => FileChangeKind::Modified,
    };
    Some((mode, WorktreeFileChange { kind, path, previous_path }))
}

/// Parses the number of files in the last line of a diffstat.
fn parse_file_count(stat: &str) -> usize {
    let last = stat.lines().next_back().unwrap_or_default();
    last.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or_default()
}
