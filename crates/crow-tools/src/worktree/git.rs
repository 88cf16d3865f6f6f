//! Runs git so that a repository cannot run anything: no hooks, filters, drivers, pager, editor, signing, password
//! prompt or network.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crow_process::{CommandSpec, ExitReason, FilterLimits, ProcessGroups, SpawnError, run_filter};
use tokio_util::sync::CancellationToken;

use super::error::WorktreeError;
use crate::{ToolRegistry, Workspace};

/// Time to check out a large repository on a slow disk; other commands take milliseconds.
const GIT_TIMEOUT: Duration = Duration::from_mins(5);

/// A readable diff is shorter, and so is a list of files.
const STDOUT_BYTES_MAX: usize = 256 * 1024;

/// The memory that one step may ask for where objects are foreign: a few bytes of a pack can claim to become gigabytes.
const FOREIGN_MEMORY_MAX: (&str, &str) = ("GIT_ALLOC_LIMIT", "512m");

/// Prefix of the branches of tasks.
pub(super) const BRANCH_PREFIX: &str = "crow/";

/// Git's errors are in the last lines.
const STDERR_BYTES_MAX: usize = 4 * 1024;

/// Settings that override the repository's configuration.
const CONFIG_OVERRIDES: [&str; 21] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.editor=false",
    "core.askPass=",
    "core.sshCommand=false",
    "core.alternateRefsCommand=",
    "core.quotePath=true",
    "credential.helper=",
    "commit.gpgSign=false",
    "gpg.program=false",
    "protocol.allow=never",
    "submodule.recurse=false",
    "status.submoduleSummary=false",
    "worktree.guessRemote=false",
    "advice.addEmbeddedRepo=false",
    "diff.renames=true",
    "color.ui=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "log.showSignature=false",
];

/// Variables with the same effect, and the author of commits.
const GIT_VARIABLES: [(&str, &str); 12] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "false"),
    ("SSH_ASKPASS", "false"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_AUTHOR_NAME", "crow"),
    ("GIT_AUTHOR_EMAIL", "crow@localhost"),
    ("GIT_COMMITTER_NAME", "crow"),
    ("GIT_COMMITTER_EMAIL", "crow@localhost"),
    ("LC_ALL", "C"),
];

/// Variables that direct git elsewhere, such as those that git sets for a hook that starts Crow.
const REMOVED_VARIABLES: [&str; 19] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_CEILING_DIRECTORIES",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_EXTERNAL_DIFF",
    "GIT_DIFF_OPTS",
    "GIT_ATTR_SOURCE",
    "GIT_LITERAL_PATHSPECS",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_DATE",
    "GIT_TRACE",
];

/// Configuration keys that run a program under a configured name.
const PROGRAM_KEYS: &str = r"^(filter|hook)\.";

/// The same with a name that cannot be passed on the command line.
const UNQUOTABLE_PROGRAM_KEYS: &str = r"^(filter|hook)\..*[^A-Za-z0-9._-]";

/// Runs the git program of this machine.
#[derive(Debug, Clone)]
pub struct GitCli {
    groups: ProcessGroups,
    env_removed: Vec<String>,
}

/// A directory in a repository.
pub(super) struct RepositoryPath {
    pub(super) root: PathBuf,
    /// The directory, relative to the root.
    pub(super) prefix: PathBuf,
}

/// The way in which git locates a repository.
#[derive(Debug, Clone)]
pub(super) enum GitLocation {
    /// Git discovers it from this directory.
    Discovered { dir: PathBuf },
    /// Both paths are given, and files in the directory cannot change them.
    Explicit { dir: PathBuf, git_dir: PathBuf },
}

/// Git for one repository, with its programs disabled.
#[derive(Debug, Clone)]
pub(super) struct GitRepository<'a> {
    git: &'a GitCli,
    location: GitLocation,
    /// Settings that disable the programs of this repository.
    overrides: Vec<String>,
    /// Whether it reads objects that were not checked: its memory is limited.
    is_foreign: bool,
    cancel: CancellationToken,
}

/// A git command.
struct GitCall<'a> {
    args: &'a [&'a str],
    input: Vec<u8>,
    /// Bytes of its output that are read.
    stdout_bytes: usize,
}

struct GitOutput {
    code: i32,
    stdout: String,
    /// Whether there was more.
    is_truncated: bool,
    stderr: String,
}

impl GitOutput {
    /// Returns the output of a command that must succeed.
    fn checked(self, args: &[&str]) -> Result<String, WorktreeError> {
        if self.code != 0 {
            return Err(git_error(args.first().copied().unwrap_or_default(), &self.stderr));
        }
        Ok(self.stdout.trim_end_matches('\n').to_owned())
    }
}

impl ToolRegistry {
    /// Git for the worktrees of this workspace.
    pub fn git_for(&self, workspace: &Workspace) -> GitCli {
        GitCli::new(self.process_groups().clone(), workspace.secret_variables())
    }
}

impl GitCli {
    /// Creates it for a program whose processes end with it and that has no variables with secrets.
    pub fn standalone() -> Self {
        Self::new(ProcessGroups::new(), &[])
    }

    /// Creates it without the variables that contain secrets.
    pub fn new(groups: ProcessGroups, secret_variables: &[String]) -> Self {
        let removed = REMOVED_VARIABLES.iter().copied().map(str::to_owned);
        Self { groups, env_removed: removed.chain(secret_variables.iter().cloned()).collect() }
    }

    /// Finds the repository that a directory is in.
    pub(super) async fn find_repository(
        &self,
        dir: &Path,
        cancel: &CancellationToken,
    ) -> Result<RepositoryPath, WorktreeError> {
        let no_repository = || WorktreeError::NoRepository { directory: dir.to_owned() };
        let git = self.unchecked_repository(GitLocation::Discovered { dir: dir.to_owned() }, cancel);
        let answer = git.run(&["rev-parse", "--show-toplevel", "--show-prefix"]).await?;
        if answer.code != 0 {
            // Git refuses another user's repository with this message.
            let is_foreign = answer.stderr.contains("dubious ownership");
            return Err(if is_foreign { git_error("rev-parse", &answer.stderr) } else { no_repository() });
        }
        let (root, prefix) = answer.stdout.split_once('\n').ok_or_else(no_repository)?;
        let (root, prefix) = (PathBuf::from(root), PathBuf::from(prefix.trim_end_matches('\n')));
        // A configuration can claim any directory.
        let real_dir = tokio::fs::canonicalize(dir).await.map_err(|_| no_repository())?;
        let claimed_dir = tokio::fs::canonicalize(root.join(&prefix)).await.map_err(|_| no_repository())?;
        if real_dir == claimed_dir { Ok(RepositoryPath { root, prefix }) } else { Err(no_repository()) }
    }

    /// Opens a repository and disables the programs in its configuration.
    pub(super) async fn open_repository<'a>(
        &'a self,
        location: GitLocation,
        cancel: &CancellationToken,
    ) -> Result<GitRepository<'a>, WorktreeError> {
        let mut git = self.unchecked_repository(location, cancel);
        if !git.local_config_keys(UNQUOTABLE_PROGRAM_KEYS).await?.is_empty() {
            return Err(WorktreeError::UnsafeConfig { directory: git.location.work_dir().to_owned() });
        }
        let keys = git.local_config_keys(PROGRAM_KEYS).await?;
        git.overrides = keys.iter().filter_map(|key| disabling_setting(key)).collect();
        Ok(git)
    }

    pub(super) fn unchecked_repository(
        &self,
        location: GitLocation,
        cancel: &CancellationToken,
    ) -> GitRepository<'_> {
        GitRepository {
            git: self,
            location,
            overrides: Vec::new(),
            is_foreign: false,
            cancel: cancel.clone(),
        }
    }
}

/// Returns the setting that disables a key's program.
fn disabling_setting(key: &str) -> Option<String> {
    let (name, last) = key.rsplit_once('.')?;
    match last {
        "clean" | "smudge" | "process" => Some(format!("{key}=")),
        "required" => Some(format!("{key}=false")),
        _ if name.starts_with("hook.") => Some(format!("{name}.enabled=false")),
        _ => None,
    }
}

impl GitLocation {
    fn work_dir(&self) -> &Path {
        match self {
            Self::Discovered { dir } | Self::Explicit { dir, .. } => dir,
        }
    }

    fn location_args(&self) -> Vec<String> {
        match self {
            Self::Discovered { .. } => Vec::new(),
            Self::Explicit { dir, git_dir } => {
                vec![format!("--git-dir={}", git_dir.display()), format!("--work-tree={}", dir.display())]
            }
        }
    }
}

impl<'a> GitRepository<'a> {
    /// The same configuration for another of its directories.
    pub(super) fn at_location(&self, location: GitLocation) -> Self {
        Self { location, ..self.clone() }
    }

    /// The directory in which it runs.
    pub(super) fn work_dir(&self) -> &Path {
        self.location.work_dir()
    }

    /// Returns the commit of `HEAD`.
    pub(super) async fn head_commit(&self) -> Result<String, WorktreeError> {
        let head = self.run_optional(&["rev-parse", "--quiet", "--verify", "HEAD^{commit}"]).await?;
        head.ok_or_else(|| WorktreeError::NoCommit { directory: self.work_dir().to_owned() })
    }

    /// Counts the uncommitted files.
    pub(super) async fn count_uncommitted(&self) -> Result<usize, WorktreeError> {
        let status = ["status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=all"];
        Ok(self.run_checked(&status).await?.lines().count())
    }

    /// For objects that were not checked.
    pub(super) fn with_foreign_objects(&self) -> Self {
        Self { is_foreign: true, ..self.clone() }
    }

    /// For steps that must run even after a cancellation.
    pub(super) fn ignoring_cancel(&self) -> GitRepository<'a> {
        GitRepository { cancel: CancellationToken::new(), ..self.clone() }
    }

    /// Runs a command that must succeed.
    pub(super) async fn run_checked(&self, args: &[&str]) -> Result<String, WorktreeError> {
        self.run(args).await?.checked(args)
    }

    /// Runs a command with an input, which must succeed.
    pub(super) async fn run_with_input(
        &self,
        args: &[&str],
        input: Vec<u8>,
    ) -> Result<String, WorktreeError> {
        self.run_call(GitCall { args, input, stdout_bytes: STDOUT_BYTES_MAX }).await?.checked(args)
    }

    /// Runs a command that must succeed; `None` if its output is longer than `stdout_bytes`.
    pub(super) async fn run_limited(
        &self,
        args: &[&str],
        stdout_bytes: usize,
    ) -> Result<Option<String>, WorktreeError> {
        let answer = self.run_call(GitCall { args, input: Vec::new(), stdout_bytes }).await?;
        let is_truncated = answer.is_truncated;
        answer.checked(args).map(|stdout| (!is_truncated).then_some(stdout))
    }

    /// Runs a command that may have no result, which git reports with 1.
    pub(super) async fn run_optional(&self, args: &[&str]) -> Result<Option<String>, WorktreeError> {
        let answer = self.run(args).await?;
        match answer.code {
            0 => Ok(Some(answer.stdout.trim_end_matches('\n').to_owned())),
            1 => Ok(None),
            _ => Err(git_error(args.first().copied().unwrap_or_default(), &answer.stderr)),
        }
    }

    pub(super) async fn has_branch(&self, branch: &str) -> Result<bool, WorktreeError> {
        let branch = format!("refs/heads/{branch}");
        Ok(self.run_optional(&["show-ref", "--verify", "--quiet", &branch]).await?.is_some())
    }

    /// Runs a command that may fail.
    pub(super) async fn run_best_effort(&self, args: &[&str]) {
        if let Err(error) = self.run_checked(args).await {
            tracing::debug!(%error, "a cleanup command failed");
        }
    }

    /// The matching keys of the repository's own configuration; the user's and the system's are trusted.
    async fn local_config_keys(&self, pattern: &str) -> Result<Vec<String>, WorktreeError> {
        let keys =
            self.run_optional(&["config", "--show-scope", "--name-only", "--get-regexp", pattern]).await?;
        let keys = keys.unwrap_or_default();
        let local_keys = keys.lines().filter_map(|line| match line.split_once('\t') {
            Some(("local" | "worktree", key)) => Some(key.to_owned()),
            Some(_) | None => None,
        });
        Ok(local_keys.collect())
    }

    async fn run(&self, args: &[&str]) -> Result<GitOutput, WorktreeError> {
        self.run_call(GitCall { args, input: Vec::new(), stdout_bytes: STDOUT_BYTES_MAX }).await
    }

    async fn run_call(
        &self,
        GitCall { args, input, stdout_bytes }: GitCall<'_>,
    ) -> Result<GitOutput, WorktreeError> {
        let settings = CONFIG_OVERRIDES.iter().copied().chain(self.overrides.iter().map(String::as_str));
        let mut git_args: Vec<String> =
            settings.flat_map(|setting| ["-c".to_owned(), setting.to_owned()]).collect();
        git_args.extend(self.location.location_args());
        git_args.extend(args.iter().copied().map(str::to_owned));
        let command = CommandSpec {
            program: "git".into(),
            args: git_args,
            cwd: self.location.work_dir().to_owned(),
            env: GIT_VARIABLES
                .into_iter()
                .chain(self.is_foreign.then_some(FOREIGN_MEMORY_MAX))
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            env_removed: self.git.env_removed.clone(),
        };
        let limits = FilterLimits { timeout: GIT_TIMEOUT, stdout_bytes, stderr_bytes: STDERR_BYTES_MAX };
        let subcommand = args.first().copied().unwrap_or_default();
        let output = run_filter(&self.git.groups, command, input, limits, &self.cancel).await;
        let output = output.map_err(|error| match error {
            SpawnError::NoProgram { .. } => WorktreeError::NoGit,
            SpawnError::NoDirectory { cwd } => WorktreeError::NoRepository { directory: cwd },
            SpawnError::Closed => WorktreeError::Cancelled,
            SpawnError::System(error) => git_error(subcommand, &error.to_string()),
        })?;
        let code = match output.exit {
            ExitReason::Exited(code) => code,
            ExitReason::Cancelled => return Err(WorktreeError::Cancelled),
            ExitReason::TimedOut => return Err(git_error(subcommand, "it took too long")),
            ExitReason::Signalled(signal) => {
                return Err(git_error(subcommand, &format!("signal {signal} ended it")));
            }
        };
        Ok(GitOutput {
            code,
            stdout: output.stdout.text,
            is_truncated: output.stdout.n_omitted > 0,
            stderr: output.stderr.text,
        })
    }
}

/// Git's first line with such a prefix is the reason; hints follow.
fn git_error(subcommand: &str, stderr: &str) -> WorktreeError {
    let message =
        |line: &str| line.strip_prefix("fatal: ").or(line.strip_prefix("error: ")).map(str::to_owned);
    let last_line = || stderr.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned);
    let reason =
        stderr.lines().find_map(message).or_else(last_line).unwrap_or_else(|| "no reason given".to_owned());
    WorktreeError::Git { subcommand: subcommand.to_owned(), reason }
}

pub(super) fn path_str(path: &Path) -> Result<&str, WorktreeError> {
    path.to_str().ok_or_else(|| WorktreeError::NotUtf8 { path: path.to_owned() })
}
