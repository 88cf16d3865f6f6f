//! The reasons why a worktree or a bundle failed, as sentences for a person.

use std::path::PathBuf;

use crow_core::GitBundleError;

const MIB: u64 = 1024 * 1024;

/// Reason why a worktree failed.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    /// Git is not installed.
    #[error("git is not installed; install it, or work without a worktree")]
    NoGit,
    /// The directory is in no repository.
    #[error("{} is not in a git repository", directory.display())]
    NoRepository {
        /// The directory.
        directory: PathBuf,
    },
    /// There is no commit to start from.
    #[error("the repository {} has no commit yet; commit something first", directory.display())]
    NoCommit {
        /// The repository.
        directory: PathBuf,
    },
    /// It was cancelled.
    #[error("it was cancelled")]
    Cancelled,
    /// The path of the worktree is taken.
    #[error("{} already exists; remove it if it is not needed", directory.display())]
    PathOccupied {
        /// The path.
        directory: PathBuf,
    },
    /// The working directory is not below the worktree.
    #[error("{} leads out of the worktree", directory.display())]
    OutsideWorktree {
        /// The directory.
        directory: PathBuf,
    },
    /// The repository's configuration would run programs.
    #[error("the configuration of the repository {} has programs that cannot be disabled", directory.display())]
    UnsafeConfig {
        /// The repository.
        directory: PathBuf,
    },
    /// The name is not valid in a branch name.
    #[error("`{name}` is not a valid name for a worktree: use lower-case letters, digits and hyphens")]
    InvalidName {
        /// The requested name.
        name: String,
    },
    /// The path cannot be passed to git.
    #[error("{} is not valid UTF-8", path.display())]
    NotUtf8 {
        /// The path.
        path: PathBuf,
    },
    /// A directory cannot be used.
    #[error("the directory {} cannot be used: {error}", directory.display())]
    UnusableDirectory {
        /// The directory.
        directory: PathBuf,
        /// The reason.
        error: std::io::Error,
    },
    /// The history is not complete.
    #[error(
        "the repository {} is a shallow clone, whose history cannot be sent; get the rest of it with `git fetch --unshallow`",
        directory.display()
    )]
    ShallowRepository {
        /// The repository.
        directory: PathBuf,
    },
    /// A bundle is too large to be sent or taken.
    #[error("{what} has {} MiB, and {} are allowed", n_bytes.div_ceil(MIB), n_bytes_max / MIB)]
    BundleTooLarge {
        /// A name of its content.
        what: &'static str,
        /// Its size, or what its objects need on disk.
        n_bytes: u64,
        /// The largest size.
        n_bytes_max: u64,
    },
    /// The changed files are too large for a snapshot.
    #[error("the changed files are too many or too large: more than 64 MiB, or ten thousand files")]
    SnapshotTooLarge,
    /// A repository is within the files of a snapshot.
    #[error("{path} is a repository of its own")]
    InnerRepository {
        /// Its path.
        path: String,
    },
    /// The files of a commit are too large to be checked out.
    #[error("the files of the commit are too many or too large for the worker")]
    CheckoutTooLarge,
    /// A bundle is not what was agreed on.
    #[error("the bundle was rejected: {0}")]
    Bundle(#[from] GitBundleError),
    /// A bundle is not what was agreed on.
    #[error("the bundle was rejected: {reason}")]
    UnexpectedBundle {
        /// The reason.
        reason: &'static str,
    },
    /// A branch that was to be made exists.
    #[error("the branch {branch} exists already, with another commit; rename or delete it")]
    BranchExists {
        /// The branch.
        branch: String,
    },
    /// A git command failed.
    #[error("git {subcommand} failed: {reason}")]
    Git {
        /// The git command.
        subcommand: String,
        /// Git's error message.
        reason: String,
    },
}
