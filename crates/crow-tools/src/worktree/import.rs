//! Takes commits that were made on another machine. Git is never asked to fetch or to unbundle: its own reader of bundles
//! takes references and objects that nothing has checked.

#[cfg(test)]
mod tests;

use std::path::{Component, Path, PathBuf};

use crow_core::{GIT_BUNDLE_BYTES_MAX, GitBundle};
use tokio_util::sync::CancellationToken;

use super::bundle::HEAD_REFERENCE;
use super::error::WorktreeError;
use super::git::{BRANCH_PREFIX, GitCli, GitLocation, GitRepository, path_str};
use super::settle::{SettledWorktree, describe_branch};

/// Objects in one pack: ten times those of a repository whose bundle is as large as may be.
const OBJECTS_MAX: u32 = 2_000_000;

/// Bytes of the files of a commit that is checked out: they are compressed in its bundle.
const CHECKOUT_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;

/// The longest list of the files of a commit: a hundred thousand of them.
const LISTING_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The directory of the packs of a repository.
const PACKS_DIR: &str = ".git/objects/pack";

/// The value of a reference that must not exist.
const NO_OBJECT: &str = "0000000000000000000000000000000000000000";

/// The branch of a task that worked on another machine.
#[derive(Debug, Clone, Copy)]
pub struct BranchImport<'a> {
    pub repository: &'a Path,
    /// The commit that it started from.
    pub base: &'a str,
    /// The name of the task; its branch is `crow/name`.
    pub name: &'a str,
    pub bundle: &'a [u8],
    /// A free path, at which the objects are checked.
    pub quarantine: &'a Path,
}

/// A repository for a task whose parent is on another machine.
#[derive(Debug, Clone, Copy)]
pub struct RepositoryImport<'a> {
    /// An empty directory.
    pub directory: &'a Path,
    /// A repository that was made by [`GitCli::import_base`].
    pub base: &'a Path,
    pub commit: &'a str,
    /// A bundle with what the commit has beyond the base, if that is not its own.
    pub bundle: Option<&'a [u8]>,
    /// The directory of the task below the root of the repository.
    pub prefix: &'a Path,
}

impl BranchImport<'_> {
    /// Returns the reference that its bundle must have.
    pub(super) fn reference(&self) -> String {
        format!("refs/heads/{BRANCH_PREFIX}{}", self.name)
    }
}

impl GitCli {
    /// Makes the branch of a task, and nothing else, after all was checked; describes what it changes.
    ///
    /// If the branch is already what it would become, that is no error: the end of a task may be handled twice.
    pub async fn import_branch(
        &self,
        import: BranchImport<'_>,
        cancel: &CancellationToken,
    ) -> Result<SettledWorktree, WorktreeError> {
        let BranchImport { repository, base, name, bundle, quarantine } = import;
        let (branch, reference) = (format!("{BRANCH_PREFIX}{name}"), import.reference());
        let bundle = parse_bundle(bundle, &reference)?;
        let location = GitLocation::Discovered { dir: repository.to_owned() };
        let git = self.open_repository(location, cancel).await?.with_foreign_objects();
        let existing = git.run_optional(&["rev-parse", "--quiet", "--verify", &reference]).await?;
        if existing.as_ref().is_some_and(|existing| existing != bundle.commit) {
            return Err(WorktreeError::BranchExists { branch });
        }
        git.check_prerequisites(&bundle, base).await?;
        let objects = git.objects_dir().await?;
        let checked = self.check_objects(&bundle, base, [quarantine, &objects], cancel).await;
        if let Err(error) = tokio::fs::remove_dir_all(quarantine).await {
            tracing::warn!(%error, directory = %quarantine.display(), "a checked bundle was not removed");
        }
        checked?;
        // The same bytes, now that they are known to be harmless.
        git.index_pack(&bundle).await?;
        if existing.is_none() {
            git.run_checked(&["update-ref", &reference, bundle.commit, NO_OBJECT]).await?;
        }
        let (mut settled, repositories) = describe_branch(&git, &branch, [base, bundle.commit]).await?;
        settled.leftover = repositories.first().map(|path| {
            format!("{path} is a repository of its own, which cannot be on the branch; it was not sent")
        });
        Ok(settled)
    }

    /// Checks a bundle in a repository of its own, which sees the objects of another one.
    async fn check_objects(
        &self,
        bundle: &GitBundle<'_>,
        base: &str,
        [quarantine, objects]: [&Path; 2],
        cancel: &CancellationToken,
    ) -> Result<(), WorktreeError> {
        let git = self.init_repository(quarantine, cancel).await?;
        write_alternates(quarantine, objects).await?;
        git.index_pack(bundle).await?;
        git.check_history(bundle.commit, &["--not", base]).await
    }

    /// Makes a repository of a bundle with a whole history, with its commit as `HEAD` and without files.
    pub async fn import_base(
        &self,
        directory: &Path,
        bundle: &[u8],
        cancel: &CancellationToken,
    ) -> Result<(), WorktreeError> {
        let bundle = parse_bundle(bundle, HEAD_REFERENCE)?;
        if !bundle.prerequisites.is_empty() {
            return Err(unexpected("it requires a commit that was not sent"));
        }
        let git = self.init_repository(directory, cancel).await?;
        git.index_pack(&bundle).await?;
        git.check_history(bundle.commit, &[]).await?;
        git.set_head(bundle.commit).await
    }

    /// Makes a repository of a base and a bundle, with a commit as `HEAD` and without files; returns the directory of the task
    /// in it.
    pub async fn import_repository(
        &self,
        import: RepositoryImport<'_>,
        cancel: &CancellationToken,
    ) -> Result<PathBuf, WorktreeError> {
        let RepositoryImport { directory, base, commit, bundle, prefix } = import;
        let is_plain = |part: Component<'_>| match part {
            Component::Normal(name) => !name.eq_ignore_ascii_case(".git"),
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => false,
        };
        if !prefix.components().all(is_plain) {
            return Err(unexpected("its directory is not in the repository"));
        }
        let base_git = self.unchecked_repository(GitLocation::Discovered { dir: base.to_owned() }, cancel);
        let base_commit = base_git.head_commit().await?;
        let bundle = bundle.map(|bytes| parse_bundle(bytes, HEAD_REFERENCE)).transpose()?;
        if bundle.as_ref().map_or(base_commit.as_str(), |bundle| bundle.commit) != commit {
            return Err(unexpected("it has another commit than the one that was announced"));
        }
        let git = self.init_repository(directory, cancel).await?;
        copy_packs(base, directory).await?;
        if let Some(bundle) = &bundle {
            git.check_prerequisites(bundle, &base_commit).await?;
            git.index_pack(bundle).await?;
            git.check_history(commit, &["--not", &base_commit]).await?;
        }
        git.check_checkout(commit).await?;
        git.set_head(commit).await?;
        let task_directory = directory.join(prefix);
        let made = tokio::fs::create_dir_all(&task_directory).await;
        made.map_err(|error| WorktreeError::UnusableDirectory { directory: directory.to_owned(), error })?;
        Ok(task_directory)
    }

    /// Makes an empty repository for objects that were not checked, without templates.
    pub(super) async fn init_repository(
        &self,
        directory: &Path,
        cancel: &CancellationToken,
    ) -> Result<GitRepository<'_>, WorktreeError> {
        let made = tokio::fs::create_dir_all(directory).await;
        made.map_err(|error| WorktreeError::UnusableDirectory { directory: directory.to_owned(), error })?;
        let git = self.unchecked_repository(GitLocation::Discovered { dir: directory.to_owned() }, cancel);
        git.run_checked(&["init", "--quiet", "--template=", "--object-format=sha1", "."]).await?;
        Ok(git.with_foreign_objects())
    }
}

impl GitRepository<'_> {
    /// Reads the pack of a bundle into the repository. Git checks each object, and that what it names exists.
    async fn index_pack(&self, bundle: &GitBundle<'_>) -> Result<(), WorktreeError> {
        if bundle.n_objects > OBJECTS_MAX {
            return Err(unexpected("it has too many objects"));
        }
        let limit = format!("--max-input-size={GIT_BUNDLE_BYTES_MAX}");
        self.run_with_input(
            &["index-pack", "--stdin", "--fix-thin", "--strict", &limit],
            bundle.pack.to_vec(),
        )
        .await
        .map(drop)
    }

    /// Checks that a bundle requires nothing but the history of a commit.
    async fn check_prerequisites(&self, bundle: &GitBundle<'_>, base: &str) -> Result<(), WorktreeError> {
        for required in &bundle.prerequisites {
            let is_known = self.run_optional(&["merge-base", "--is-ancestor", required, base]).await;
            if !matches!(is_known, Ok(Some(_))) {
                return Err(unexpected("it requires a commit that was not sent"));
            }
        }
        Ok(())
    }

    /// Returns the directory of the objects.
    pub(super) async fn objects_dir(&self) -> Result<PathBuf, WorktreeError> {
        let objects = self.run_checked(&["rev-parse", "--git-path", "objects"]).await?;
        Ok(self.work_dir().join(objects))
    }

    async fn set_head(&self, commit: &str) -> Result<(), WorktreeError> {
        self.run_checked(&["update-ref", "--no-deref", "HEAD", commit]).await.map(drop)
    }

    /// Checks that a name is that of a commit whose history is complete.
    async fn check_history(&self, commit: &str, known: &[&str]) -> Result<(), WorktreeError> {
        let object =
            self.run_optional(&["rev-parse", "--quiet", "--verify", &format!("{commit}^{{commit}}")]).await?;
        if object.as_deref() != Some(commit) {
            return Err(unexpected("its reference is no commit"));
        }
        self.run_checked(&[&["rev-list", "--objects", "--quiet", commit], known].concat()).await.map(drop)
    }

    /// Checks that the files of a commit are not too large.
    pub(super) async fn check_checkout(&self, commit: &str) -> Result<(), WorktreeError> {
        let listing =
            self.run_limited(&["ls-tree", "-r", "-l", "--full-tree", commit], LISTING_BYTES_MAX).await?;
        let listing = listing.ok_or(WorktreeError::CheckoutTooLarge)?;
        // A line is `MODE TYPE OBJECT SIZE\tPATH`; a submodule has no size.
        let sizes = listing.lines().filter_map(|line| {
            line.split_once('\t')?.0.split_ascii_whitespace().next_back()?.parse::<u64>().ok()
        });
        match sizes.fold(0, u64::saturating_add) {
            0..=CHECKOUT_BYTES_MAX => Ok(()),
            _ => Err(WorktreeError::CheckoutTooLarge),
        }
    }
}

/// Lets a new repository see objects of another one.
pub(super) async fn write_alternates(repository: &Path, objects: &Path) -> Result<(), WorktreeError> {
    let alternates = repository.join(".git/objects/info/alternates");
    let line = format!("{}\n", path_str(objects)?);
    let written = tokio::fs::write(&alternates, line).await;
    written.map_err(|error| WorktreeError::UnusableDirectory { directory: alternates, error })
}

/// Copies the packs of a repository to another one. They are no links: what works there could change them.
async fn copy_packs(from: &Path, to: &Path) -> Result<(), WorktreeError> {
    let (from, to) = (from.join(PACKS_DIR), to.join(PACKS_DIR));
    let copied = async {
        tokio::fs::create_dir_all(&to).await?;
        let mut entries = tokio::fs::read_dir(&from).await?;
        while let Some(entry) = entries.next_entry().await? {
            tokio::fs::copy(entry.path(), to.join(entry.file_name())).await?;
        }
        Ok(())
    };
    copied.await.map_err(|error| WorktreeError::UnusableDirectory { directory: from.clone(), error })
}

fn unexpected(reason: &'static str) -> WorktreeError {
    WorktreeError::UnexpectedBundle { reason }
}

fn parse_bundle<'a>(bytes: &'a [u8], reference: &str) -> Result<GitBundle<'a>, WorktreeError> {
    if bytes.len() as u64 > GIT_BUNDLE_BYTES_MAX {
        let (what, n_bytes, n_bytes_max) = ("the bundle", bytes.len() as u64, GIT_BUNDLE_BYTES_MAX);
        return Err(WorktreeError::BundleTooLarge { what, n_bytes, n_bytes_max });
    }
    Ok(GitBundle::parse(bytes, reference)?)
}
