//! The worktree of an agent: here, or on the machine of a worker from where its work comes back.

use std::path::{Path, PathBuf};

use crow_core::{AgentServer, AgentTransport};
use crow_fleet::{CodeRequest, FarmConnections, FetchedCode, SentCode};
use crow_tools::{BranchImport, GitCli, SettledWorktree, Worktree};
use tokio_util::sync::CancellationToken;

use crate::report::{describe_lost_worktree, describe_worktree};

/// The worktree of an agent.
#[derive(Debug, Clone)]
pub enum AgentWorktree {
    Here(Worktree),
    /// At a worker, until it comes back as a branch.
    Elsewhere(Box<SentCode>),
}

/// A request for a worktree.
#[derive(Debug, Clone, Copy)]
pub struct WorktreeRequest<'a> {
    pub git: &'a GitCli,
    pub farms: &'a FarmConnections,
    /// A directory in the repository.
    pub directory: &'a Path,
    /// The directory of the worktrees on this machine.
    pub worktrees_dir: &'a Path,
    /// The name of the worktree; its branch is `crow/name`.
    pub name: &'a str,
}

/// The work in a worktree after its turn.
#[derive(Debug, Default)]
pub struct WorktreeEnd {
    pub branch: Option<String>,
    /// The directory, if something in it that git ignores was kept.
    pub kept: Option<PathBuf>,
    /// The reason why the work is not on a branch, or not all of it.
    pub problem: Option<String>,
    /// Its description in the report.
    pub(crate) text: String,
    pub(crate) diff: String,
    /// Code at the server, which is deleted once the end of the task is stored.
    pub fetched: Option<FetchedCode>,
}

impl AgentWorktree {
    /// Begins a worktree where an agent works; the error is the reason.
    pub async fn begin(
        agent: &AgentServer,
        request: WorktreeRequest<'_>,
        cancel: &CancellationToken,
    ) -> Result<Self, String> {
        match &agent.transport {
            AgentTransport::Program { .. } if agent.cwd.is_none() => Self::begin_here(request, cancel).await,
            AgentTransport::Farm(address) => {
                let WorktreeRequest { git, farms, directory, worktrees_dir: scratch_dir, name } = request;
                let code = CodeRequest { git, directory, scratch_dir, name };
                let sent = Box::pin(farms.send_code(address, code, cancel)).await;
                let sent =
                    sent.map_err(|error| format!("could not send the code to {}: {error}", agent.name))?;
                Ok(Self::Elsewhere(Box::new(sent)))
            }
            AgentTransport::Program { .. } | AgentTransport::Socket { .. } => {
                Err(format!("{} does not work on this machine, so it cannot have a worktree", agent.name))
            }
        }
    }

    /// Begins a worktree on this machine; the error is the reason.
    pub async fn begin_here(
        request: WorktreeRequest<'_>,
        cancel: &CancellationToken,
    ) -> Result<Self, String> {
        let WorktreeRequest { git, directory, worktrees_dir, name, farms: _ } = request;
        let worktree = Worktree::create(git, directory, worktrees_dir, name, cancel).await;
        worktree.map(Self::Here).map_err(|error| format!("could not create a worktree: {error}"))
    }

    /// Returns the working directory, if it is on this machine.
    pub fn local_path(&self) -> Option<&Path> {
        match self {
            Self::Here(worktree) => Some(&worktree.path),
            Self::Elsewhere(_) => None,
        }
    }

    /// Returns the code at the server, if the worktree is at a worker.
    pub fn sent_code(&self) -> Option<&SentCode> {
        match self {
            Self::Here(_) => None,
            Self::Elsewhere(code) => Some(code),
        }
    }

    /// Puts the work on a branch and describes it.
    pub async fn settle(&self, git: &GitCli, farms: &FarmConnections, scratch_dir: &Path) -> WorktreeEnd {
        // This is short, and cancelling the child must not interrupt it.
        let cancel = CancellationToken::new();
        match self {
            Self::Here(worktree) => {
                WorktreeEnd::new(worktree.settle(git, &cancel).await, worktree.n_uncommitted)
            }
            Self::Elsewhere(code) => {
                let fetched = match farms.fetch_code(code).await {
                    Ok(Some(fetched)) => fetched,
                    Ok(None) => return WorktreeEnd::new(SettledWorktree::default(), code.head.n_uncommitted),
                    Err(reason) => return WorktreeEnd::lost(&reason),
                };
                let import = BranchImport {
                    repository: &code.head.repository,
                    base: &code.head.commit,
                    name: &code.name,
                    bundle: &fetched.bundle,
                    quarantine: &scratch_dir.join(format!("{}.import", code.name)),
                };
                match git.import_branch(import, &cancel).await {
                    Ok(settled) => {
                        // The worker knows best where the rest is.
                        let leftover = fetched.leftover.clone().or(settled.leftover);
                        let settled = SettledWorktree { leftover, ..settled };
                        let end = WorktreeEnd::new(settled, code.head.n_uncommitted);
                        WorktreeEnd { fetched: Some(fetched), ..end }
                    }
                    Err(error) => WorktreeEnd::lost(&error.to_string()),
                }
            }
        }
    }
}

impl WorktreeEnd {
    fn new(settled: SettledWorktree, n_uncommitted: usize) -> Self {
        let text = describe_worktree(n_uncommitted, &settled);
        let SettledWorktree { branch, leftover: problem, diff, kept, .. } = settled;
        Self { branch, kept, problem, text, diff, fetched: None }
    }

    fn lost(reason: &str) -> Self {
        let problem = format!("its changes did not come back: {reason}");
        Self { text: describe_lost_worktree(reason), problem: Some(problem), ..Self::default() }
    }
}
