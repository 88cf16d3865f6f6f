//! The directories in which the tasks of a batch work.

use std::path::{Path, PathBuf};

use crow_core::AgentServer;

use super::task_line::{BatchTask, LineError};
use crate::{failure::CliError, run};

/// The directories in which tasks work.
#[derive(Debug)]
pub(super) struct TaskDirs {
    default: PathBuf,
    /// Whether they are on the machine of another agent.
    is_remote: bool,
}

impl TaskDirs {
    pub(super) fn new(
        cwd: Option<&Path>,
        external: Option<&AgentServer>,
        current_dir: &Path,
    ) -> Result<Self, CliError> {
        let remote = external.and_then(|server| server.cwd.as_ref());
        let default = match (cwd, remote) {
            (Some(dir), Some(_)) => run::remote_dir(dir)?,
            (None, Some(dir)) => dir.clone(),
            (Some(dir), None) => run::local_dir(dir)?,
            (None, None) => current_dir.to_owned(),
        };
        Ok(Self { default, is_remote: remote.is_some() })
    }

    /// Returns the directory of a task.
    pub(super) fn resolve(&self, task: &BatchTask) -> Result<PathBuf, CliError> {
        match &task.cwd {
            None => Ok(self.default.clone()),
            Some(dir) if self.is_remote => run::remote_dir(dir),
            Some(dir) => run::local_dir(&self.default.join(dir)),
        }
    }

    pub(super) fn check(&self, task: &BatchTask) -> Result<(), LineError> {
        let dir = self
            .resolve(task)
            .map_err(|error| LineError::new(format!("cwd: {}", error.message().unwrap_or_default())))?;
        if !task.worktree {
            return Ok(());
        }
        if self.is_remote {
            return Err(LineError::new("worktree: the agent works on another machine"));
        }
        match crow_project::repository_root(&dir).join(".git").exists() {
            true => Ok(()),
            false => Err(LineError::new(format!("worktree: {} is in no git repository", dir.display()))),
        }
    }
}
