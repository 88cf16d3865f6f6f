//! Snapshots: the files of a task as a commit for another machine, while the task runs. They are made in a repository of their
//! own, so that neither the files nor their repository change. Files that git ignores are in none.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use super::Worktree;
use super::bundle::{BundleRequest, HEAD_REFERENCE, WORK};
use super::error::WorktreeError;
use super::git::{GitCli, GitLocation, GitRepository};
use super::import::{BranchImport, write_alternates};

/// Bytes of a snapshot.
const SNAPSHOT_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Bytes of the new and changed files in one, before they are compressed.
const FILES_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The longest list of new and changed files: some ten thousand of them.
const LISTING_BYTES_MAX: usize = 1024 * 1024;

/// The files of a task.
#[derive(Debug, Clone)]
pub enum SnapshotFiles {
    /// All that are in a directory.
    Directory(PathBuf),
    /// Those of a worktree, and its branch, without what a commit has that is known where it is restored.
    Worktree {
        /// The worktree.
        worktree: Box<Worktree>,
        /// The commit.
        base: String,
    },
}

/// A request for a snapshot.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotRequest<'a> {
    /// The files.
    pub files: &'a SnapshotFiles,
    /// The last snapshot of them: another one with the same is not made.
    pub last: Option<&'a SnapshotContent>,
    /// A path outside of the files, for a repository that is removed in the end. Anything that was there before is removed first.
    pub scratch: &'a Path,
}

/// The content of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotContent {
    tree: String,
    /// The last commit of the branch.
    parent: Option<String>,
}

/// The files of a task at one moment.
#[derive(Debug, Clone)]
pub struct BundledSnapshot {
    /// Its content.
    pub content: SnapshotContent,
    /// A bundle of one commit with all files, on top of those of the branch.
    pub bundle: Vec<u8>,
}

impl SnapshotFiles {
    fn root(&self) -> &Path {
        match self {
            Self::Directory(directory) => directory,
            Self::Worktree { worktree, .. } => &worktree.root,
        }
    }

    /// The reference of the bundle.
    fn reference(&self) -> String {
        match self {
            Self::Directory(_) => HEAD_REFERENCE.to_owned(),
            Self::Worktree { worktree, .. } => worktree.branch_ref(),
        }
    }
}

impl GitCli {
    /// Takes a snapshot, unless it would be equal to the last one.
    ///
    /// A repository within the files cannot be in it, and more than 64 MiB of changes are not.
    pub async fn take_snapshot(
        &self,
        request: SnapshotRequest<'_>,
        cancel: &CancellationToken,
    ) -> Result<Option<BundledSnapshot>, WorktreeError> {
        // A task that was killed may have left one.
        remove_scratch(request.scratch).await?;
        let git = self.init_repository(request.scratch, cancel).await?;
        let taken = self.take_snapshot_in(git, request, cancel).await;
        remove_scratch(request.scratch).await?;
        taken
    }

    async fn take_snapshot_in(
        &self,
        git: GitRepository<'_>,
        SnapshotRequest { files, last, scratch }: SnapshotRequest<'_>,
        cancel: &CancellationToken,
    ) -> Result<Option<BundledSnapshot>, WorktreeError> {
        let parent = match files {
            SnapshotFiles::Directory(_) => None,
            SnapshotFiles::Worktree { worktree, .. } => {
                Some(self.share_objects(worktree, scratch, cancel).await?)
            }
        };
        let git = git.at_location(snapshot_location(files.root(), scratch));
        git.check_changes().await?;
        git.run_checked(&["add", "--all"]).await?;
        let content = SnapshotContent { tree: git.run_checked(&["write-tree"]).await?, parent };
        if last == Some(&content) {
            return Ok(None);
        }
        let mut commit = vec!["commit-tree", "-m", "crow: snapshot", &content.tree];
        commit.extend(content.parent.iter().flat_map(|parent| ["-p", parent]));
        let (commit, reference) = (git.run_checked(&commit).await?, files.reference());
        git.run_checked(&["update-ref", &reference, &commit]).await?;
        let mut revisions = vec![reference.as_str()];
        if let SnapshotFiles::Worktree { base, .. } = files {
            revisions.extend(["--not", base]);
        }
        let request = BundleRequest {
            revisions: &revisions,
            reference: &reference,
            what: WORK,
            file: &scratch.join("bundle"),
            n_bytes_max: SNAPSHOT_BYTES_MAX,
        };
        let bundle = git.bundle(request).await?.bytes;
        Ok(Some(BundledSnapshot { content, bundle }))
    }

    /// Lets a new repository see the objects of a worktree, and what git knows of its files; returns the commit of the branch.
    async fn share_objects(
        &self,
        worktree: &Worktree,
        scratch: &Path,
        cancel: &CancellationToken,
    ) -> Result<String, WorktreeError> {
        let location = GitLocation::Discovered { dir: worktree.repository.clone() };
        let repository = self.open_repository(location, cancel).await?;
        write_alternates(scratch, &repository.objects_dir().await?).await?;
        let (index, copy) = (worktree.git_dir.join("index"), scratch.join(".git/index"));
        let copied = tokio::fs::copy(&index, copy).await;
        copied.map_err(|error| WorktreeError::UnusableDirectory { directory: index, error })?;
        let commit = format!("{}^{{commit}}", worktree.branch_ref());
        let commit = repository.run_optional(&["rev-parse", "--quiet", "--verify", &commit]).await?;
        // Where the branch is gone, the end of the task makes it again.
        Ok(commit.unwrap_or_else(|| worktree.base.clone()))
    }

    /// Restores a snapshot in an empty directory. Its objects are checked at `scratch`.
    pub async fn restore_directory(
        &self,
        directory: &Path,
        bundle: &[u8],
        scratch: &Path,
        cancel: &CancellationToken,
    ) -> Result<(), WorktreeError> {
        let restore = async {
            self.import_base(scratch, bundle, cancel).await?;
            let location = snapshot_location(directory, scratch);
            let git = self.unchecked_repository(location, cancel).with_foreign_objects();
            git.check_checkout(HEAD_REFERENCE).await?;
            git.run_checked(&["read-tree", "--reset", "-u", HEAD_REFERENCE]).await.map(drop)
        };
        let restored = restore.await;
        remove_scratch(scratch).await?;
        restored
    }

    /// Makes the branch of a snapshot of a worktree, which [`Worktree::create`] then continues. Its last commit has the files that
    /// were not committed, see [`Worktree::undo_snapshot_commit`].
    pub async fn restore_branch(
        &self,
        import: BranchImport<'_>,
        cancel: &CancellationToken,
    ) -> Result<(), WorktreeError> {
        let location = GitLocation::Discovered { dir: import.repository.to_owned() };
        let reference = import.reference();
        self.import_branch(import, cancel).await?;
        self.open_repository(location, cancel).await?.check_checkout(&reference).await
    }
}

impl Worktree {
    /// Takes the last commit from the branch; its files stay as they are.
    pub async fn undo_snapshot_commit(
        &self,
        git: &GitCli,
        cancel: &CancellationToken,
    ) -> Result<(), WorktreeError> {
        let location = GitLocation::Discovered { dir: self.root.clone() };
        let git = git.open_repository(location, cancel).await?;
        git.run_checked(&["reset", "--quiet", "HEAD~1"]).await.map(drop)
    }
}

impl GitRepository<'_> {
    /// Checks what has changed since the index: it must be small enough, and without a repository of its own.
    async fn check_changes(&self) -> Result<(), WorktreeError> {
        let list = ["ls-files", "--others", "--modified", "--exclude-standard"];
        let listing = self.run_limited(&list, LISTING_BYTES_MAX).await?;
        let listing = listing.ok_or(WorktreeError::SnapshotTooLarge)?;
        let directory = self.work_dir().to_owned();
        let measured = tokio::task::spawn_blocking(move || measure_files(&directory, &listing)).await;
        match measured.map_err(|_| WorktreeError::Cancelled)?? {
            0..=FILES_BYTES_MAX => Ok(()),
            _ => Err(WorktreeError::SnapshotTooLarge),
        }
    }
}

/// Adds up the sizes of files that git has listed. Those that are gone have none.
fn measure_files(directory: &Path, listing: &str) -> Result<u64, WorktreeError> {
    let mut n_bytes = 0;
    for path in listing.lines() {
        match std::fs::symlink_metadata(directory.join(unquote_path(path))) {
            Ok(metadata) if metadata.is_dir() => {
                return Err(WorktreeError::InnerRepository { path: path.trim_end_matches('/').to_owned() });
            }
            Ok(metadata) => n_bytes += metadata.len(),
            Err(_) => {}
        }
    }
    Ok(n_bytes)
}

/// Returns a path that git has quoted like a string of C, with octal numbers for bytes.
fn unquote_path(path: &str) -> PathBuf {
    let Some(quoted) = path.strip_prefix('"').and_then(|path| path.strip_suffix('"')) else {
        return PathBuf::from(path);
    };
    let (mut bytes, mut rest) = (Vec::new(), quoted.as_bytes());
    while let [first, after @ ..] = rest {
        let (byte, after) = match (first, after) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                ((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'), after)
            }
            (b'\\', [letter, after @ ..]) => {
                let letters = [b'a', b'b', b't', b'n', b'v', b'f', b'r'];
                let control = (7_u8..).zip(letters).find(|(_, known)| known == letter);
                (control.map_or(*letter, |(byte, _)| byte), after)
            }
            (byte, after) => (*byte, after),
        };
        bytes.push(byte);
        rest = after;
    }
    PathBuf::from(String::from_utf8_lossy(&bytes).into_owned())
}

/// The files at one place with the repository at another.
fn snapshot_location(root: &Path, scratch: &Path) -> GitLocation {
    GitLocation::Explicit { dir: root.to_owned(), git_dir: scratch.join(".git") }
}

async fn remove_scratch(scratch: &Path) -> Result<(), WorktreeError> {
    match tokio::fs::remove_dir_all(scratch).await {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(WorktreeError::UnusableDirectory { directory: scratch.to_owned(), error })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
