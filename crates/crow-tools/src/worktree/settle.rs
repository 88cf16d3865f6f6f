//! The end of a worktree: everything in it is committed, and the folder goes. What cannot be kept on the branch keeps
//! the folder.

use tokio_util::sync::CancellationToken;

use super::git::{Git, Place, Repository};
use super::{SETTLED, Worktree, WorktreeError, spelled};

/// More than anybody reads one by one; the count has them all.
pub(super) const FILES_MAX: usize = 200;

/// The mode of a repository within a repository.
const REPOSITORY_MODE: &str = "160000";

/// As wide as a terminal, and as long as a screen or two.
const STAT: [&str; 2] = ["--stat=100", "--stat-count=60"];

/// What came of the work in a worktree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settled {
    /// The branch with the work; there is none when nothing was changed.
    pub branch: Option<String>,
    /// How many files differ from where the work began.
    pub n_files: usize,
    /// The first of them.
    pub files: Vec<ChangedFile>,
    /// The changes in a picture: a line for each file.
    pub stat: String,
    /// The changes themselves; a note stands where there were too many.
    pub diff: String,
    /// A sentence about what is left and where: a folder that could not be removed, or work that is only there.
    pub left: Option<String>,
}

/// A file that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// In which way.
    pub how: FileChange,
    /// Its path in the repository, quoted as git quotes it where it has odd letters.
    pub path: String,
    /// What it was called before.
    pub before: Option<String>,
}

/// How a file differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileChange {
    /// It is new.
    Added,
    /// It has another content, mode or kind.
    Modified,
    /// It is gone.
    Deleted,
    /// It has another name, and perhaps another content.
    Renamed,
}

impl Worktree {
    /// Commits everything on the branch and removes the folder; without a change the branch goes as well.
    ///
    /// What fails is said in [`Settled::left`], and the work stays in the folder.
    pub async fn settle(&self, git: &Git, cut: &CancellationToken) -> Settled {
        match self.try_settle(git, cut).await {
            Ok(settled) => settled,
            Err(error) => Settled {
                branch: Some(self.branch.clone()),
                left: Some(format!("the work is in {}: {error}", self.root.display())),
                ..Settled::default()
            },
        }
    }

    async fn try_settle(&self, git: &Git, cut: &CancellationToken) -> Result<Settled, WorktreeError> {
        let home = git.bind(Place::Of { folder: self.repository.clone() }, cut).await?;
        let root = self.root.display();
        if !home.has_branch(&self.branch).await? {
            home.ask(&["update-ref", &self.reference(), &self.base]).await?;
        }
        if self.is_there().await {
            self.commit(git, cut).await?;
        }
        let (mut settled, repositories) = self.compare(&home).await?;
        settled.left = match repositories.first() {
            Some(path) => {
                Some(format!("{path} is a repository of its own, which no branch holds; it is in {root}"))
            }
            None => self.remove(&home.past_cut(), settled.branch.is_some()).await?,
        };
        Ok(settled)
    }

    async fn is_there(&self) -> bool {
        tokio::fs::symlink_metadata(&self.root).await.is_ok_and(|found| found.is_dir())
    }

    fn reference(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }

    /// Has the branch say what the folder says, wherever the folder's `HEAD` was led.
    async fn commit(&self, git: &Git, cut: &CancellationToken) -> Result<(), WorktreeError> {
        let place = Place::Told { folder: self.root.clone(), git_folder: self.git_folder.clone() };
        let there = git.bind(place, cut).await?;
        let reference = self.reference();
        if there.try_ask(&["symbolic-ref", "--quiet", "HEAD"]).await?.as_ref() != Some(&reference) {
            there.ask(&["symbolic-ref", "HEAD", &reference]).await?;
        }
        there.ask(&["add", "--all"]).await?;
        let is_same =
            there.try_ask(&["diff", "--cached", "--quiet", "--no-ext-diff", "HEAD"]).await?.is_some();
        if !is_same {
            let message = format!("crow: {}", self.name);
            there.ask(&["commit", "--quiet", "--no-verify", "--no-gpg-sign", "--message", &message]).await?;
        }
        Ok(())
    }

    /// Says what differs, and which of it is a repository.
    async fn compare(&self, home: &Repository<'_>) -> Result<(Settled, Vec<String>), WorktreeError> {
        let tip = home.ask(&["rev-parse", "--verify", &format!("{}^{{commit}}", self.reference())]).await?;
        if tip == self.base {
            return Ok((Settled::default(), Vec::new()));
        }
        let diff = async |how: &[&str]| {
            let diff = ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=none"];
            home.ask(&[&diff, how, &[self.base.as_str(), tip.as_str()]].concat()).await
        };
        let (raw, stat) = (diff(&["--raw"]).await?, diff(&STAT).await?);
        let (mut files, mut repositories) = (Vec::new(), Vec::new());
        for (mode, file) in raw.lines().filter_map(changed) {
            if mode == REPOSITORY_MODE {
                repositories.push(file.path.clone());
            }
            if files.len() < FILES_MAX {
                files.push(file);
            }
        }
        let settled = Settled {
            branch: Some(self.branch.clone()),
            n_files: counted(&stat),
            files,
            stat,
            diff: diff(&["--patch"]).await?,
            left: None,
        };
        Ok((settled, repositories))
    }

    /// Removes the folder, and the branch if there is nothing on it; gives a sentence when that cannot be.
    async fn remove(
        &self,
        home: &Repository<'_>,
        keeps_branch: bool,
    ) -> Result<Option<String>, WorktreeError> {
        let root = spelled(&self.root)?;
        let is_there = self.is_there().await;
        let removed = async {
            if is_there {
                // From here on nobody may take it for work that was left: half of it may be gone.
                home.ask(&["worktree", "lock", "--reason", SETTLED, root]).await?;
                let remove = ["worktree", "remove", "--force", "--force", root];
                if home.ask(&remove).await.is_err() {
                    // The child may have changed what says in the folder whose it is.
                    home.tidy(&["worktree", "repair", root]).await;
                    home.ask(&remove).await?;
                }
            } else {
                home.ask(&["worktree", "prune"]).await?;
            }
            if !keeps_branch {
                home.ask(&["branch", "-D", &self.branch]).await?;
            }
            Ok::<(), WorktreeError>(())
        };
        Ok(match removed.await {
            Err(error) => Some(format!("the worktree {root} could not be removed: {error}")),
            Ok(()) if is_there => None,
            Ok(()) => Some(format!("the folder {root} was gone: what was not committed in it is lost")),
        })
    }
}

/// Reads a line of a raw diff, and the mode that the file has now.
fn changed(line: &str) -> Option<(&str, ChangedFile)> {
    let (facts, paths) = line.strip_prefix(':')?.split_once('\t')?;
    let (mode, letter) = (facts.split(' ').nth(1)?, facts.rsplit(' ').next()?);
    let (before, path) = match paths.split_once('\t') {
        Some((before, path)) => (Some(before.to_owned()), path.to_owned()),
        None => (None, paths.to_owned()),
    };
    let how = match letter.as_bytes().first()? {
        b'A' | b'C' => FileChange::Added,
        b'D' => FileChange::Deleted,
        b'R' => FileChange::Renamed,
        _ => FileChange::Modified,
    };
    Some((mode, ChangedFile { how, path, before }))
}

/// Reads how many files the last line of a picture counts.
fn counted(stat: &str) -> usize {
    let last = stat.lines().next_back().unwrap_or_default();
    last.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or_default()
}
