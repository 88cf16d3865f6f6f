//! The worktree of a child: here, or on the machine of a worker from where its work comes back.

use crow_fleet::{FarmConnections, FetchedCode, SentCode};
use crow_tools::{BranchImport, GitCli, SettledWorktree, Worktree};
use tokio_util::sync::CancellationToken;

use crate::report::{describe_lost_worktree, describe_worktree};

/// The worktree of a child.
#[derive(Debug, Clone)]
pub(crate) enum ChildWorktree {
    Here(Worktree),
    /// At a worker, until it comes back as a branch.
    Elsewhere(Box<SentCode>),
}

/// The work in a worktree after its turn.
#[derive(Debug, Default)]
pub(crate) struct WorktreeEnd {
    pub(crate) branch: Option<String>,
    /// Its description in the report.
    pub(crate) text: String,
    pub(crate) diff: String,
    /// Code at the server, which is deleted once the end of the task is stored.
    pub(crate) fetched: Option<FetchedCode>,
}

impl ChildWorktree {
    /// Puts the work on a branch and describes it.
    pub(crate) async fn settle(
        &self,
        git: &GitCli,
        farms: &FarmConnections,
        scratch_dir: &std::path::Path,
    ) -> WorktreeEnd {
        // This is short, and cancelling the child must not interrupt it.
        let cancel = CancellationToken::new();
        match self {
            Self::Here(worktree) => {
                let settled = worktree.settle(git, &cancel).await;
                WorktreeEnd::new(settled, worktree.n_uncommitted)
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
        Self { branch: settled.branch, text, diff: settled.diff, fetched: None }
    }

    fn lost(reason: &str) -> Self {
        Self { text: describe_lost_worktree(reason), ..Self::default() }
    }
}
