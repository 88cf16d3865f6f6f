//! Runs git so that a repository cannot have it run anything: no hooks, no filters or drivers of its own, no pager,
//! editor, signing, password question or network.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crow_process::{CommandSpec, ExitReason, FilterLimits, ProcessGroups, SpawnError, run_filter};
use tokio_util::sync::CancellationToken;

use crate::{ToolRegistry, Workspace};

/// Checking out a large repository on a slow disk; everything else takes milliseconds.
const TIME_MAX: Duration = Duration::from_mins(5);

/// A diff that somebody reads is shorter, and so is a list of files.
const ANSWER_BYTES: usize = 256 * 1024;

/// What git complains of stands in the last lines.
const COMPLAINT_BYTES: usize = 4 * 1024;

/// What a repository's own configuration may not choose.
const CHOSEN: [&str; 21] = [
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

/// The variables that say the same, and in whose name a commit is made.
const VARIABLES: [(&str, &str); 12] = [
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

/// Variables that lead git elsewhere: whoever starts Crow from a hook has some.
const MISLEADING: [&str; 19] = [
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

/// What runs a program under a name that the configuration chooses.
const RUNS: &str = r"^(filter|hook)\.";

/// The same under a name that cannot be passed on as it is.
const RUNS_ODDLY: &str = r"^(filter|hook)\..*[^A-Za-z0-9._-]";

/// Why there is no worktree.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    /// There is no git.
    #[error("there is no program git; install it, or work without a worktree")]
    NoGit,
    /// The folder is in no repository.
    #[error("{} is in no git repository", folder.display())]
    NoRepository {
        /// The folder.
        folder: PathBuf,
    },
    /// There is nothing to start from.
    #[error("the repository {} has no commit yet; commit something first", folder.display())]
    NoCommit {
        /// The repository.
        folder: PathBuf,
    },
    /// It was cancelled.
    #[error("it was cancelled")]
    Cancelled,
    /// Something is where the worktree has to be.
    #[error("{} is in the way; remove it if nobody needs it", folder.display())]
    InTheWay {
        /// What is there.
        folder: PathBuf,
    },
    /// The folder to work in is not below the worktree.
    #[error("{} leads out of the worktree", folder.display())]
    LeadsOut {
        /// The folder.
        folder: PathBuf,
    },
    /// The repository would run programs.
    #[error("the configuration of the repository {} names programs that cannot be turned off", folder.display())]
    RunsPrograms {
        /// The repository.
        folder: PathBuf,
    },
    /// The name is no part of a branch's name.
    #[error("`{name}` is no name for a worktree: small letters, digits and hyphens are")]
    BadName {
        /// What was asked for.
        name: String,
    },
    /// The path cannot be passed to git.
    #[error("{} is not spelled in UTF-8", path.display())]
    NotText {
        /// The path.
        path: PathBuf,
    },
    /// A folder cannot be used.
    #[error("the folder {} cannot be used: {error}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// Git failed.
    #[error("git {what} failed: {why}")]
    Git {
        /// What it was to do.
        what: String,
        /// What it said.
        why: String,
    },
}

/// The git of this machine.
#[derive(Debug, Clone)]
pub struct GitCli {
    groups: ProcessGroups,
    env_removed: Vec<String>,
}

/// How git knows which repository is meant.
#[derive(Debug, Clone)]
pub(super) enum GitLocation {
    /// It finds it from this folder.
    Of { folder: PathBuf },
    /// It is told, and believes nothing that is in the folder.
    Told { folder: PathBuf, git_folder: PathBuf },
}

/// Git for one repository, whose own programs are off.
#[derive(Debug, Clone)]
pub(super) struct GitRepository<'a> {
    git: &'a GitCli,
    place: GitLocation,
    /// What this very configuration names and may not run.
    turned_off: Vec<String>,
    cut: CancellationToken,
}

struct GitOutput {
    code: i32,
    stdout: String,
    stderr: String,
}

impl ToolRegistry {
    /// The git that worktrees of this workspace are made with.
    pub fn git_for(&self, workspace: &Workspace) -> GitCli {
        GitCli::new(self.process_groups().clone(), workspace.secret_variables())
    }
}

impl GitCli {
    /// The program `git`, without the variables that hold secrets.
    pub fn new(groups: ProcessGroups, secret_variables: &[String]) -> Self {
        let misleading = MISLEADING.iter().copied().map(str::to_owned);
        Self { groups, env_removed: misleading.chain(secret_variables.iter().cloned()).collect() }
    }

    /// Finds the repository that a folder is in, and where in it the folder is.
    pub(super) async fn find_repository(
        &self,
        folder: &Path,
        cut: &CancellationToken,
    ) -> Result<(PathBuf, PathBuf), WorktreeError> {
        let none = || WorktreeError::NoRepository { folder: folder.to_owned() };
        let git = self.unchecked_repository(GitLocation::Of { folder: folder.to_owned() }, cut);
        let answer = git.run(&["rev-parse", "--show-toplevel", "--show-prefix"]).await?;
        if answer.code != 0 {
            // Somebody else's repository is one that git does not touch, and says so.
            let is_other = answer.stderr.contains("dubious ownership");
            return Err(if is_other { git_error("rev-parse", &answer.stderr) } else { none() });
        }
        let (root, prefix) = answer.stdout.split_once('\n').ok_or_else(none)?;
        let (root, prefix) = (PathBuf::from(root), PathBuf::from(prefix.trim_end_matches('\n')));
        // A configuration can claim any folder.
        let real = tokio::fs::canonicalize(folder).await.map_err(|_| none())?;
        let claimed = tokio::fs::canonicalize(root.join(&prefix)).await.map_err(|_| none())?;
        if real == claimed { Ok((root, prefix)) } else { Err(none()) }
    }

    /// Reads what the repository's own configuration would run, and turns it off.
    pub(super) async fn open_repository<'a>(
        &'a self,
        place: GitLocation,
        cut: &CancellationToken,
    ) -> Result<GitRepository<'a>, WorktreeError> {
        let mut git = self.unchecked_repository(place, cut);
        if !git.local_config_keys(RUNS_ODDLY).await?.is_empty() {
            return Err(WorktreeError::RunsPrograms { folder: git.place.work_dir().to_owned() });
        }
        let keys = git.local_config_keys(RUNS).await?;
        git.turned_off = keys.iter().filter_map(|key| disabling_setting(key)).collect();
        Ok(git)
    }

    fn unchecked_repository(&self, place: GitLocation, cut: &CancellationToken) -> GitRepository<'_> {
        GitRepository { git: self, place, turned_off: Vec::new(), cut: cut.clone() }
    }
}

/// Says of a key that would run a program that it does not.
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
            Self::Of { folder } | Self::Told { folder, .. } => folder,
        }
    }

    fn location_args(&self) -> Vec<String> {
        match self {
            Self::Of { .. } => Vec::new(),
            Self::Told { folder, git_folder } => vec![
                format!("--git-dir={}", git_folder.display()),
                format!("--work-tree={}", folder.display()),
            ],
        }
    }
}

impl<'a> GitRepository<'a> {
    /// The same configuration seen from another of its folders.
    pub(super) fn at_location(&self, place: GitLocation) -> Self {
        Self { place, ..self.clone() }
    }

    /// For what has to be done even though it was cancelled.
    pub(super) fn ignoring_cancel(&self) -> GitRepository<'a> {
        GitRepository { cut: CancellationToken::new(), ..self.clone() }
    }

    /// Asks what has an answer; anything else is a failure.
    pub(super) async fn run_checked(&self, args: &[&str]) -> Result<String, WorktreeError> {
        let answer = self.run(args).await?;
        if answer.code != 0 {
            return Err(git_error(args.first().copied().unwrap_or_default(), &answer.stderr));
        }
        Ok(answer.stdout.trim_end_matches('\n').to_owned())
    }

    /// Asks what may have no answer, which git says with 1.
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

    /// Does what need not be possible.
    pub(super) async fn run_best_effort(&self, args: &[&str]) {
        if let Err(error) = self.run_checked(args).await {
            tracing::debug!(%error, "there was nothing to tidy");
        }
    }

    /// The keys like this that the repository has itself; those of the person and of the system are not hostile.
    async fn local_config_keys(&self, like: &str) -> Result<Vec<String>, WorktreeError> {
        let keys =
            self.run_optional(&["config", "--show-scope", "--name-only", "--get-regexp", like]).await?;
        let keys = keys.unwrap_or_default();
        let own = keys.lines().filter_map(|line| match line.split_once('\t') {
            Some(("local" | "worktree", key)) => Some(key.to_owned()),
            Some(_) | None => None,
        });
        Ok(own.collect())
    }

    async fn run(&self, args: &[&str]) -> Result<GitOutput, WorktreeError> {
        let chosen = CHOSEN.iter().copied().chain(self.turned_off.iter().map(String::as_str));
        let mut all: Vec<String> = chosen.flat_map(|setting| ["-c".to_owned(), setting.to_owned()]).collect();
        all.extend(self.place.location_args());
        all.extend(args.iter().copied().map(str::to_owned));
        let command = CommandSpec {
            program: "git".into(),
            args: all,
            cwd: self.place.work_dir().to_owned(),
            env: VARIABLES.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            env_removed: self.git.env_removed.clone(),
        };
        let bounds =
            FilterLimits { timeout: TIME_MAX, stdout_bytes: ANSWER_BYTES, stderr_bytes: COMPLAINT_BYTES };
        let what = args.first().copied().unwrap_or_default();
        let filtered = run_filter(&self.git.groups, command, Vec::new(), bounds, &self.cut).await;
        let filtered = filtered.map_err(|error| match error {
            SpawnError::NoProgram { .. } => WorktreeError::NoGit,
            SpawnError::NoFolder { cwd } => WorktreeError::NoRepository { folder: cwd },
            SpawnError::Closed => WorktreeError::Cancelled,
            SpawnError::System(error) => git_error(what, &error.to_string()),
        })?;
        let code = match filtered.ended {
            ExitReason::Exited(code) => code,
            ExitReason::Cancelled => return Err(WorktreeError::Cancelled),
            ExitReason::TimedOut => return Err(git_error(what, "it took too long")),
            ExitReason::Signalled(signal) => {
                return Err(git_error(what, &format!("signal {signal} ended it")));
            }
        };
        Ok(GitOutput { code, stdout: filtered.stdout.text, stderr: filtered.stderr.text })
    }
}

/// What git says first with such a word is why; hints follow.
fn git_error(what: &str, stderr: &str) -> WorktreeError {
    let told = |line: &str| line.strip_prefix("fatal: ").or(line.strip_prefix("error: ")).map(str::to_owned);
    let last = || stderr.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned);
    let why = stderr.lines().find_map(told).or_else(last).unwrap_or_else(|| "it did not say why".to_owned());
    WorktreeError::Git { what: what.to_owned(), why }
}
